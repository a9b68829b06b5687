package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/term"

	"adpdeck/tui/cell"
	"adpdeck/tui/delta"
	"adpdeck/tui/view"
)

// Terminal is where the console runs: usually os.Stdin, os.Stdout and
// os.Environ().
type Terminal struct {
	In  io.Reader
	Out *os.File
	Env []string
}

// ErrNoTerminal is returned by Run when its output is a file or a pipe.
var ErrNoTerminal = errors.New("the console needs a terminal: its output is a file or a pipe; --plain and replay --headless need none")

// lockedFile writes one piece after another, so that a copy to the clipboard
// never lands in the middle of a frame.
type lockedFile struct {
	*os.File
	mu    sync.Mutex // guards what follows and writes
	delta delta.Writer
}

// Write writes b whole before anything else is written.
func (f *lockedFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.File.Write(f.delta.Next(b)); err != nil {
		f.delta.Forget()
		return 0, err
	}
	return len(b), nil
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
// terminal is as it was before when Run returns, on every way out. A panic of a
// job is logged and returned as an error; a panic of the screen is logged, the
// jobs go on and the screen is started once more, and only a second one is
// returned. Run waits for the jobs to end. Signals are the caller's: it ends ctx.
func Run(ctx context.Context, t Terminal, opt Options, jobs ...Job) error {
	if !term.IsTerminal(t.Out.Fd()) {
		return ErrNoTerminal
	}
	opt.defaults()
	return beside(ctx, opt.Log, jobs, func(ctx context.Context) error {
		err := show(ctx, t, opt, "")
		if p := panicOf(err); p != nil && ctx.Err() == nil {
			logPanic(opt.Log, p)
			err = show(ctx, t, opt, "the screen failed and was started again: the log has the trace")
		}
		return err
	})
}

// beside runs a console and its jobs until the console ends or a job fails.
func beside(ctx context.Context, log *slog.Logger, jobs []Job, console func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() {
			if err := guard(j.Name, func() error { return j.Run(ctx) }); err != nil && ctx.Err() == nil {
				stop(err)
			}
		})
	}
	err := console(ctx)
	cause := context.Cause(ctx)
	stop(nil)
	wg.Wait()
	return verdict(log, err, cause)
}

// show runs one program until it ends; note is a toast to begin with.
func show(ctx context.Context, t Terminal, opt Options, note string) error {
	m := New(opt)
	if note != "" {
		m.say(view.Failed, cell.Foreign(note))
	}
	out := &lockedFile{File: t.Out}
	m.out = out
	m.multiplexer(t.Env)
	g := &guarded{m: m}
	input := tea.WithInput(t.In)
	if f, ok := t.In.(*os.File); ok && !term.IsTerminal(f.Fd()) {
		input = tea.WithInputTTY() // a trace on standard input: keys come from the terminal
	}
	_, err := tea.NewProgram(g, tea.WithContext(ctx), input, tea.WithOutput(out), tea.WithEnvironment(t.Env),
		tea.WithAltScreen(), tea.WithFPS(30), tea.WithReportFocus(),
		// Signals end ctx. Bubble Tea's own handler would hand one to a loop that
		// ctx has ended already, and wait for ever.
		tea.WithoutSignalHandler()).Run()
	if g.failed != nil {
		return g.failed
	}
	return err
}

// guarded ends the program in good order when the model panics.
type guarded struct {
	m      *Model
	failed error
}

// Init implements tea.Model.
func (g *guarded) Init() tea.Cmd { return g.m.Init() }

// Update implements tea.Model.
func (g *guarded) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	if g.failed == nil {
		g.failed = guard("console", func() error { _, cmd = g.m.Update(msg); return nil })
	}
	if g.failed != nil {
		return g, tea.Quit
	}
	return g, cmd
}

// View implements tea.Model. After a panic the next tick ends the program.
func (g *guarded) View() (frame string) {
	if g.failed == nil {
		g.failed = guard("console", func() error { frame = g.m.View(); return nil })
	}
	return frame
}

// verdict is what Run returns: the panic or failure behind the end, nil for a
// wanted one.
func verdict(log *slog.Logger, err, cause error) error {
	for _, e := range []error{err, cause} {
		if p := panicOf(e); p != nil {
			logPanic(log, p)
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

func panicOf(err error) *PanicError {
	var p *PanicError
	errors.As(err, &p)
	return p
}

func logPanic(log *slog.Logger, p *PanicError) {
	log.Error("panic", "in", p.Name, "value", fmt.Sprint(p.Value), "stack", string(p.Stack))
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
