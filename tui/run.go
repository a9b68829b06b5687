package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/term"
)

// Terminal is where the console runs: usually os.Stdin, os.Stdout and
// os.Environ().
type Terminal struct {
	In  io.Reader
	Out *os.File
	Env []string
}

// ErrNoTerminal is returned by Run when its output is a file or a pipe.
var ErrNoTerminal = errors.New("the console needs a terminal: its output is none")

// lockedFile writes one piece after another, so that a copy to the clipboard
// never lands in the middle of a frame.
type lockedFile struct {
	*os.File
	mu sync.Mutex // guards writes
}

// Write writes b whole before anything else is written.
func (f *lockedFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.File.Write(b)
}

// WriteString goes the same way as Write.
func (f *lockedFile) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// PanicError is a panic of a goroutine that Run started; the terminal has been
// restored. Stack is for the log.
type PanicError struct {
	Name  string // of the goroutine
	Value any
	Stack []byte
}

// Error names the goroutine and the panic.
func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.Name, e.Value) }

// Job is a goroutine that lives as long as the console, such as the embedded
// router's. Its context ends when the console does.
type Job struct {
	Name string
	Run  func(ctx context.Context) error
}

// Run shows the console until the operator quits, ctx ends or a job fails. The
// terminal is as it was before when Run returns, on every way out; a panic, of
// the console or of a job, is logged and returned as an error. Run waits for
// the jobs to end.
func Run(ctx context.Context, t Terminal, opt Options, jobs ...Job) error {
	if !term.IsTerminal(t.Out.Fd()) {
		return ErrNoTerminal
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	m := New(opt)
	out := &lockedFile{File: t.Out}
	m.out = out
	m.multiplexer(t.Env)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(out), tea.WithEnvironment(t.Env),
		tea.WithAltScreen(), tea.WithFPS(30), tea.WithReportFocus(), tea.WithoutCatchPanics())

	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() {
			if err := guard(j.Name, func() error { return j.Run(ctx) }); err != nil && ctx.Err() == nil {
				stop(err)
			}
		})
	}
	err := guard("console", func() error { _, err := p.Run(); return err })
	if err != nil && isPanic(err) {
		p.Kill()
		if restore := p.ReleaseTerminal(); restore != nil {
			m.opt.Log.Error("restore the terminal", "err", restore)
		}
	}
	cause := context.Cause(ctx)
	stop(nil)
	wg.Wait()
	return m.verdict(err, cause)
}

// verdict is what Run returns: the panic or failure behind the end, nil for a
// wanted one.
func (m *Model) verdict(err, cause error) error {
	var p *PanicError
	for _, e := range []error{err, cause} {
		if errors.As(e, &p) {
			m.opt.Log.Error("panic", "in", p.Name, "value", fmt.Sprint(p.Value), "stack", string(p.Stack))
			return e
		}
	}
	if cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func isPanic(err error) bool {
	var p *PanicError
	return errors.As(err, &p)
}

// guard turns a panic of f into an error.
func guard(name string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Name: name, Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// multiplexer notes what stands between us and the terminal: copies must be
// wrapped for it.
func (m *Model) multiplexer(env []string) {
	for _, e := range env {
		switch {
		case strings.HasPrefix(e, "TMUX=") && e != "TMUX=":
			m.tmux = true
		case strings.HasPrefix(e, "TERM=screen"):
			m.screenTerm = true
		}
	}
	m.screenTerm = m.screenTerm && !m.tmux
}
