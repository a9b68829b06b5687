package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"adpdeck/tui/ptytest"
)

// build makes the program that users get.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "adpdeck")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// TestTheProgramOnASilentTerminal starts the finished program where no question
// is ever answered: it shows a frame soon, asks nothing, and leaves the terminal
// as it was on every way out.
func TestTheProgramOnASilentTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	path := build(t)
	open := func(t *testing.T, term string) *ptytest.Session {
		cmd := exec.Command(path, "--log", filepath.Join(t.TempDir(), "log"))
		cmd.Env = append(os.Environ(), "TERM="+term, "COLORTERM=truecolor", "TMUX=", "NO_COLOR=", "LC_ALL=C.UTF-8")
		return ptytest.Start(t, cmd, 80, 24)
	}
	for name, leave := range map[string]func(*ptytest.Session){
		"quit": func(s *ptytest.Session) {
			s.Keys("q")
			s.Until("Stop")
			s.Pause(300 * time.Millisecond) // a question takes no key for its first 150 ms
			s.Keys("y")
		},
		"interrupt": func(s *ptytest.Session) {
			s.Keys("\x03")
			s.Until("Stop")
			s.Pause(700 * time.Millisecond) // nor the key that opened it for 500 ms
			s.Keys("\x03")
		},
		"SIGTERM": func(s *ptytest.Session) { s.Signal(syscall.SIGTERM) },
		"SIGINT":  func(s *ptytest.Session) { s.Signal(syscall.SIGINT) },
		"SIGHUP":  func(s *ptytest.Session) { s.Signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			term := "xterm-256color"
			if name == "SIGINT" {
				term = "linux"
			}
			s := open(t, term)
			took := s.Until("w1/7")
			t.Logf("first frame after %v", took)
			if took > 2*time.Second { // budget 0.3 s, with room for a loaded machine
				t.Errorf("first frame after %v", took)
			}
			leave(s)
			s.Ended()
			s.AskedNothing()
			s.LeftClean()
		})
	}
}
