package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"adpdeck/themes"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// The test binary is its own console: started with this variable it runs one
// on its standard input and output.
const consoleVar = "ADPDECK_TEST_CONSOLE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(consoleVar); mode != "" {
		runConsole(mode)
		return
	}
	os.Exit(m.Run())
}

// panicView panics when a key reaches it.
type panicView struct{ fakeView }

func (v *panicView) Do(*view.Frame, command.ID) (view.Intent, bool) { panic("a view failed") }

func runConsole(mode string) {
	client := testClient()
	client.view.Link.Period = 0 // never late
	v := &panicView{fakeView: fakeView{id: command.Ranks, title: cell.Lit("Ranks")}}
	opt := testOptions(client, v)
	opt.Theme, opt.Depth = loadTheme("night"), themes.TrueColour
	var jobs []Job
	if mode == "job" {
		jobs = append(jobs, Job{Name: "embedded router", Run: func(ctx context.Context) error {
			select {
			case <-time.After(300 * time.Millisecond):
				panic("a job failed")
			case <-ctx.Done():
				return nil
			}
		}})
	}
	err := Run(context.Background(), Terminal{In: os.Stdin, Out: os.Stdout, Env: os.Environ()}, opt, jobs...)
	var p *PanicError
	switch {
	case errors.As(err, &p):
		fmt.Println("ended:", err)
	case err != nil:
		fmt.Println("error:", err)
	default:
		fmt.Println("bye")
	}
}

// session is a console on a terminal that never answers a question.
type session struct {
	t     *testing.T
	tty   *os.File
	out   chan []byte
	seen  bytes.Buffer
	begun time.Time
}

func openSession(t *testing.T, mode, term string) *session {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), consoleVar+"="+mode, "TERM="+term, "COLORTERM=truecolor", "TMUX=", "NO_COLOR=")
	begun := time.Now()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Skipf("no pseudo terminal here: %v", err)
	}
	s := &session{t: t, tty: tty, out: make(chan []byte, 64), begun: begun}
	go func() {
		defer close(s.out)
		for {
			b := make([]byte, 4096)
			n, err := tty.Read(b)
			if n > 0 {
				s.out <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = tty.Close()
		for range s.out { // let the reader end
		}
		_ = cmd.Wait()
	})
	return s
}

// until reads until text has appeared, and returns how long that took.
func (s *session) until(text string) time.Duration {
	s.t.Helper()
	late := time.After(10 * time.Second)
	for !strings.Contains(s.seen.String(), text) {
		select {
		case b, ok := <-s.out:
			if !ok {
				s.t.Fatalf("ended without %q; saw %.4000q", text, s.seen.String())
			}
			s.seen.Write(b)
		case <-late:
			s.t.Fatalf("no %q after 10 s; saw %.4000q", text, s.seen.String())
		}
	}
	return time.Since(s.begun)
}

func (s *session) keys(k string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(k); err != nil {
		s.t.Fatal(err)
	}
}

// leftClean fails unless the terminal was put back: main screen, cursor shown,
// no bracketed paste, no focus reports.
func (s *session) leftClean() {
	s.t.Helper()
	for on, off := range map[string]string{
		"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?1004h": "\x1b[?1004l",
	} {
		all := s.seen.String()
		if strings.LastIndex(all, on) > strings.LastIndex(all, off) {
			s.t.Errorf("the terminal was left with %q on", on)
		}
	}
}

func TestFirstFrameOnASilentTerminal(t *testing.T) {
	for _, term := range []string{"xterm-256color", "xterm-kitty", "linux"} {
		t.Run(term, func(t *testing.T) {
			s := openSession(t, "plain", term)
			took := s.until("w1/7")
			t.Logf("first frame after %v", took)
			if took > 1500*time.Millisecond { // budget 0.3 s, with room for a loaded machine
				t.Errorf("first frame after %v", took)
			}
			s.keys("q")
			s.until("bye")
			if strings.Contains(s.seen.String(), "\x1b]11") {
				t.Error("the terminal was asked for its background")
			}
			s.leftClean()
		})
	}
}

func TestAPanicRestoresTheTerminal(t *testing.T) {
	for mode, want := range map[string]string{"view": "ended: console panicked: a view failed", "job": "ended: embedded router panicked: a job failed"} {
		t.Run(mode, func(t *testing.T) {
			s := openSession(t, mode, "xterm-256color")
			s.until("w1/7")
			if mode == "view" { // once is forgiven
				s.keys("j")
				s.until("the screen failed and was started again")
				s.keys("j")
			}
			s.until(want + "\r\n") // the carriage return says that raw mode is off
			s.leftClean()
		})
	}
}

func TestRunNeedsATerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Run(context.Background(), Terminal{In: os.Stdin, Out: f}, testOptions(testClient())); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("got %v", err)
	}
}
