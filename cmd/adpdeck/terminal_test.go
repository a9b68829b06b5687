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

// mostBytes is what a screen of 120 by 40 cells may cost its terminal in a
// second: the budget of 20 kB and half as much again.
const mostBytes = 30_000

// A signal reaches both the program's context and whoever else listens for it;
// once in two times that ended in a wait for ever, so it is sent several times.
func TestASignalAlwaysEndsTheProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	path := build(t)
	for range 8 {
		cmd := exec.Command(path, "--log", filepath.Join(t.TempDir(), "log"))
		cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=", "LC_ALL=C.UTF-8")
		s := ptytest.Start(t, cmd, 80, 24)
		s.Until("w1/7")
		s.Signal(syscall.SIGTERM)
		s.Ended()
		s.LeftClean()
	}
}

// TestTheFakeClusterEnds: its router reads no settings file, so a hang-up is no
// wish to read it again; a terminal that is closed takes the cluster with it.
func TestTheFakeClusterEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	path := build(t)
	for name, leave := range map[string]func(*ptytest.Session){
		"SIGTERM": func(s *ptytest.Session) { s.Signal(syscall.SIGTERM) },
		"SIGHUP":  func(s *ptytest.Session) { s.Signal(syscall.SIGHUP) },
		"quit": func(s *ptytest.Session) {
			s.Keys("q")
			s.Until("Stop")
			s.Pause(300 * time.Millisecond)
			s.Keys("y")
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(path, "dev", "cluster", "--listen", "127.0.0.1:0", "--feed", "127.0.0.1:0", "--clients", "4", "--ranks", "2", "--log", filepath.Join(t.TempDir(), "log"))
			cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=", "LC_ALL=C.UTF-8")
			s := ptytest.Start(t, cmd, 80, 24)
			s.Until("w1/1")
			leave(s)
			s.Ended()
			s.LeftClean()
		})
	}
}

func TestTheScreenCostsFewBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program and watches it for some seconds")
	}
	cmd := exec.Command(build(t), "--log", filepath.Join(t.TempDir(), "log"))
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "TMUX=", "NO_COLOR=", "LC_ALL=C.UTF-8")
	s := ptytest.Start(t, cmd, 120, 40)
	s.Until("w1/7")
	s.Pause(2 * time.Second)
	const watch = 4
	before := len(s.Seen())
	s.Pause(watch * time.Second)
	rate := (len(s.Seen()) - before) / watch
	t.Logf("%d bytes a second", rate)
	if rate == 0 || rate > mostBytes {
		t.Errorf("%d bytes a second, want some and at most %d", rate, mostBytes)
	}
}
