package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/dialog"
	"adpdeck/tui/view"
)

// PlainOptions tune the console of sentences; zero fields take the defaults
// named.
type PlainOptions struct {
	// Every (10 s) is the least time between two lines on figures that moved.
	Every time.Duration
	// Prompt writes "> " where a command can be typed: for people, not for pipes.
	Prompt bool
}

// ErrNoFeed is returned, wrapped with the address and the cause, by RunPlain
// when a pipe's commands cannot be carried out because nothing answers.
var ErrNoFeed = errors.New("no feed")

// The bounds of the console of sentences.
const (
	maxLineBytes = 4096             // of a command
	feedWait     = 10 * time.Second // for a first state, when nobody is there to wait
	toastHolds   = 10 * time.Minute // a refused command can be applied on top that long
)

// RunPlain is the console without a screen: one sentence a line, newest last,
// written when something changed by more than a step that it states; commands,
// the same as the palette's, are read from in, one a line. It writes no escape
// sequence and moves no cursor, so that screen readers, braille displays, pipes
// and logs can take it. It runs until a quit, the end of in, ctx's end or a job's
// failure, and waits for the jobs like Run.
//
// The goroutine that reads in outlives RunPlain when in neither ends nor is
// closed.
func RunPlain(ctx context.Context, in io.Reader, out io.Writer, opt Options, po PlainOptions, jobs ...Job) error {
	opt.defaults()
	if po.Every <= 0 {
		po.Every = 10 * time.Second
	}
	return beside(ctx, opt.Log, jobs, func(ctx context.Context) error {
		return guard("console", func() error { return newPlain(out, opt, po).run(ctx, in) })
	})
}

// plain is the console of sentences around a Model that is never drawn.
type plain struct {
	m    *Model
	out  *bufio.Writer
	po   PlainOptions
	msgs chan tea.Msg

	running int  // commands of Bubble Tea under way
	ended   bool // in has ended, or a quit
	began   time.Time
	fault   string // of the link, as said last
	link    command.Link
	asked   view.Dialog // the question that the next line answers
	toast   time.Time   // until, of the toast said last
	said    model.Totals
	saidAt  time.Time
	version uint64
	told    map[alertKey]bool
}

func newPlain(out io.Writer, opt Options, po PlainOptions) *plain {
	opt.Keys = namesOnly()
	p := &plain{m: New(opt), out: bufio.NewWriter(out), po: po, msgs: make(chan tea.Msg), began: opt.Now(), told: map[alertKey]bool{}}
	p.m.resize(200, 60) // nothing is cut
	return p
}

// namesOnly is the table with every command's name in place of its keys, so that
// texts that name a key name the command.
func namesOnly() *command.Table {
	t := command.New()
	for i := range t.Commands {
		t.Commands[i].Keys = []string{string(t.Commands[i].ID)}
	}
	return t
}

// run is the one goroutine that owns the model.
func (p *plain) run(ctx context.Context, in io.Reader) error {
	lines := make(chan string)
	go read(ctx, in, lines)
	tick := time.NewTicker(tickPeriod)
	defer tick.Stop()
	p.say("adpdeck %s. A line comes at most every %s, when a figure has moved by a tenth, hit by 2 points or skew by 0.05. Type: help",
		p.m.opt.Address, spoken(p.po.Every))
	for {
		p.tell()
		if p.prompt(); p.out.Flush() != nil || p.ended && p.running == 0 {
			return nil // who listened is gone, or it was told to end
		}
		ready := lines
		if p.m.frame.State == nil || p.running > 0 || p.m.expected != 0 && p.m.link == command.LinkLive {
			ready = nil // the next line may be about what the last one did
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			p.m.onTick()
		case msg := <-p.msgs:
			p.running--
			p.take(ctx, msg)
		case line, ok := <-ready:
			if p.ended = !ok; ok {
				p.do(ctx, line)
			}
		}
		if p.m.frame.State == nil && !p.po.Prompt && p.m.opt.Now().Sub(p.began) > feedWait {
			return fmt.Errorf("%w at %s within %s: %s", ErrNoFeed, p.m.opt.Address, spoken(feedWait), p.m.live.Link.Err)
		}
	}
}

// read hands on lines until in or ctx ends; a line too long ends it too.
func read(ctx context.Context, in io.Reader, lines chan<- string) {
	defer close(lines)
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLineBytes)
	for s.Scan() {
		select {
		case lines <- s.Text():
		case <-ctx.Done():
			return
		}
	}
}

// start carries out what Bubble Tea would.
func (p *plain) start(ctx context.Context, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	p.running++
	go func() {
		msg := cmd()
		select {
		case p.msgs <- msg:
		case <-ctx.Done():
		}
	}()
}

func (p *plain) take(ctx context.Context, msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
	case tea.QuitMsg:
		p.ended = true
	case tea.BatchMsg:
		for _, cmd := range msg {
			p.start(ctx, cmd)
		}
	default:
		_, cmd := p.m.Update(msg)
		p.start(ctx, cmd)
	}
}

// do carries out one line.
func (p *plain) do(ctx context.Context, line string) {
	words := strings.Fields(line)
	if p.asked != nil {
		p.answer(ctx, words)
		return
	}
	if len(words) == 0 {
		return
	}
	p.m.read(p.m.opt.Now())
	name, args := words[0], words[1:]
	if name != string(command.Apply) { // which may repeat what a conflict refused
		p.m.toast.shown = false
	}
	switch name {
	case "help":
		p.help(args)
		return
	case "status":
		p.status()
		return
	case "list":
		p.list(args)
		return
	case "export":
		if len(args) != 1 || args[0] != "csv" && args[0] != "json" {
			p.say("not done: want export csv, or export json.")
			return
		}
		p.start(ctx, p.m.export(args[0]))
		return
	case string(command.Palette), string(command.Theme), string(command.Redraw), string(command.Suspend), string(command.Side), string(command.Columns), string(command.Mouse):
		p.say("not done: %s is for a screen.", name)
		return
	}
	before := p.place()
	in, err := p.m.runNamed(name, args)
	if err != nil {
		p.say("not done: %s.", err)
		return
	}
	p.start(ctx, p.m.carry(in))
	if now := p.place(); now != before {
		p.say("%s.", now)
	}
	if in == nil {
		p.say("done.")
	}
}

// place is the view in front and what its cursor is on.
func (p *plain) place() string {
	v := p.m.current()
	if v == nil || p.m.frame.State == nil {
		return ""
	}
	at := "view " + string(v.ID())
	if c, ok := v.(view.Copier); ok {
		if text := c.CopyText(&p.m.frame); text != "" {
			at += ", on " + cell.Fit(strings.Join(strings.Fields(text), " "), 100).String()
		}
	}
	return at
}

// ask says what a dialog asks, or how to say at once what it would ask for.
func (p *plain) ask(d view.Dialog) {
	switch d := d.(type) {
	case *dialog.Box:
		p.say("%s?", d.Title())
		w, h := d.Size(&p.m.frame)
		lines := d.Draw(&p.m.frame, w, h)
		for _, l := range lines[:len(lines)-1] { // the last has the buttons
			if l := speak(ansi.Strip(l)); l != "" && !strings.HasPrefix(l, "reason") {
				p.say("%s.", l)
			}
		}
		if word := d.Word(); word != "" {
			p.say("This is a wide change. Type %s to do it, with a reason behind it if you like; anything else keeps things as they are.", word)
		} else {
			p.say("Type yes, with a reason behind it if you like, or no.")
		}
	case *quitDialog:
		p.say("Quit? %s requests per second run through this process and would end; settings and pins would be forgotten. Type yes or no.",
			cell.Count(float64(p.m.frame.State.Totals.RequestsPerSec)))
	default:
		p.m.close(d)
		p.say("not done: it needs more words. Type: help, and the command's name.")
		return
	}
	p.asked = d
}

// answer takes the line after a question.
func (p *plain) answer(ctx context.Context, words []string) {
	d := p.asked
	p.asked = nil
	p.m.close(d)
	want := "yes"
	box, isBox := d.(*dialog.Box)
	if isBox && box.Word() != "" {
		want = box.Word()
	}
	if len(words) == 0 || words[0] != want && !(want == "yes" && words[0] == "y") {
		p.say("nothing was done.")
		return
	}
	if !isBox {
		p.start(ctx, p.m.carry(leaveIntent{}))
		return
	}
	in, _ := box.Answer(&p.m.frame, words[0], strings.Join(words[1:], " "))
	p.start(ctx, p.m.carry(in))
}
