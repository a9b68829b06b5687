// Package ptytest runs a program on a pseudo terminal that never answers a
// question, for tests: what it writes is collected, and nothing comes back but
// the keys that the test sends.
package ptytest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// patience is how long Until and Ended wait; a test that takes so long has
// failed, it is no budget.
const patience = 10 * time.Second

// Session is a program on its terminal. It belongs to the test's goroutine and
// ends with the test.
type Session struct {
	t     testing.TB
	cmd   *exec.Cmd
	tty   *os.File
	out   chan []byte
	seen  bytes.Buffer
	begun time.Time
}

// Start runs cmd on a terminal of cols by rows cells. Where there are no pseudo
// terminals the test is skipped.
func Start(t testing.TB, cmd *exec.Cmd, cols, rows uint16) *Session {
	t.Helper()
	s := &Session{t: t, cmd: cmd, out: make(chan []byte, 64), begun: time.Now()}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: cols})
	if err != nil {
		t.Skipf("no pseudo terminal here: %v", err)
	}
	s.tty = tty
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

// Until reads until text has appeared, and returns how long after the start
// that was.
func (s *Session) Until(text string) time.Duration {
	s.t.Helper()
	late := time.After(patience)
	for !strings.Contains(s.Seen(), text) {
		select {
		case b, ok := <-s.out:
			if !ok {
				s.t.Fatalf("ended without %q; saw %.4000q", text, s.Seen())
			}
			s.seen.Write(b)
		case <-late:
			s.t.Fatalf("no %q after %v; saw %.4000q", text, patience, s.Seen())
		}
	}
	return time.Since(s.begun)
}

// Ended reads until the program has closed its terminal.
func (s *Session) Ended() {
	s.t.Helper()
	late := time.After(patience)
	for {
		select {
		case b, ok := <-s.out:
			if !ok {
				return
			}
			s.seen.Write(b)
		case <-late:
			s.t.Fatalf("still running after %v; saw %.4000q", patience, s.Seen())
		}
	}
}

// Pause goes on reading for d.
func (s *Session) Pause(d time.Duration) {
	over := time.After(d)
	for {
		select {
		case b, ok := <-s.out:
			if !ok {
				return
			}
			s.seen.Write(b)
		case <-over:
			return
		}
	}
}

// Seen is everything written so far.
func (s *Session) Seen() string { return s.seen.String() }

// Keys types.
func (s *Session) Keys(k string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(k); err != nil {
		s.t.Fatal(err)
	}
}

// Resize changes the size of the terminal.
func (s *Session) Resize(cols, rows uint16) {
	s.t.Helper()
	if err := pty.Setsize(s.tty, &pty.Winsize{Rows: rows, Cols: cols}); err != nil {
		s.t.Fatal(err)
	}
}

// Signal sends the program a signal.
func (s *Session) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// LeftClean fails unless the terminal was put back: main screen, cursor shown,
// no bracketed paste, no focus reports.
func (s *Session) LeftClean() {
	s.t.Helper()
	for on, off := range map[string]string{
		"\x1b[?1049h": "\x1b[?1049l", "\x1b[?25l": "\x1b[?25h", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?1004h": "\x1b[?1004l",
	} {
		if strings.LastIndex(s.Seen(), on) > strings.LastIndex(s.Seen(), off) {
			s.t.Errorf("the terminal was left with %q on", on)
		}
	}
}

// AskedNothing fails when the terminal was asked for its background, which
// costs seconds where nothing answers.
func (s *Session) AskedNothing() {
	s.t.Helper()
	if strings.Contains(s.Seen(), "\x1b]11") {
		s.t.Error("the terminal was asked for its background")
	}
}
