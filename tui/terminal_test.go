package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"adpdeck/themes"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/ptytest"
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

// openSession starts a console on a terminal that never answers a question.
func openSession(t *testing.T, mode, term string) *ptytest.Session {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), consoleVar+"="+mode, "TERM="+term, "COLORTERM=truecolor", "TMUX=", "NO_COLOR=")
	return ptytest.Start(t, cmd, 80, 24)
}

func TestFirstFrameOnASilentTerminal(t *testing.T) {
	for _, term := range []string{"xterm-256color", "xterm-kitty", "linux"} {
		t.Run(term, func(t *testing.T) {
			s := openSession(t, "plain", term)
			took := s.Until("w1/7")
			t.Logf("first frame after %v", took)
			if took > 2*time.Second { // budget 0.3 s, with room for a loaded machine
				t.Errorf("first frame after %v", took)
			}
			s.Keys("q")
			s.Until("bye")
			s.AskedNothing()
			s.LeftClean()
		})
	}
}

func TestAPanicRestoresTheTerminal(t *testing.T) {
	for mode, want := range map[string]string{"view": "ended: console panicked: a view failed", "job": "ended: embedded router panicked: a job failed"} {
		t.Run(mode, func(t *testing.T) {
			s := openSession(t, mode, "xterm-256color")
			s.Until("w1/7")
			if mode == "view" { // once is forgiven
				s.Keys("j")
				s.Until("the screen failed and was started again")
				s.Keys("j")
			}
			s.Until(want + "\r\n") // the carriage return says that raw mode is off
			s.LeftClean()
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
