package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// maxListed bounds the rows that list says, maxTold the alerts said at a time.
const (
	maxListed = 20
	maxTold   = 5
)

// say writes one sentence.
func (p *plain) say(format string, args ...any) {
	fmt.Fprintln(p.out, speak(fmt.Sprintf(format, args...)))
}

// prompt asks for a command, when the last one is done and somebody is there.
func (p *plain) prompt() {
	if p.po.Prompt && p.out.Buffered() > 0 && p.running == 0 {
		_, _ = p.out.WriteString("> ") // Flush tells
	}
}

// speak makes a text of the screen a sentence that can be read aloud: foreign
// controls visible, no signs that readers spell.
func speak(s string) string {
	s = signs().Replace(cell.Foreign(s).String())
	s = strings.Join(strings.Fields(s), " ")
	for _, twice := range []string{"..", ".,", "?.", ":."} {
		s = strings.ReplaceAll(s, twice, twice[:1])
	}
	return s
}

func signs() *strings.Replacer {
	return strings.NewReplacer(
		" · apply applies", ". To apply it type: apply; to drop it: discard", ". apply applies on top", ". To do it all the same type: apply",
		" · undo undo", ". To take it back type: undo", " · undo redo", ". To do it again type: undo",
		"tab shows", "help shows", " · ", ", ", "→", "to", "×", " times", "β", "beta", "—", "unknown", "…", "", " %", " percent", "%", " percent",
		"undo undo or ", "undo: undo or ", "undo undo ", "undo: ", "▸", "chosen: ", "✓", "", "━", "", "╸", "", "─", "", "┿", "", "┼", "", "µs", "microseconds", "÷", "over",
	)
}

// spoken is a duration in words.
func spoken(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', 3, 64) + " s" }

// tell says what has changed since it was called last.
func (p *plain) tell() {
	m := p.m
	if m.toast.shown && m.toast.until != p.toast {
		kind := map[view.Level]string{view.Note: "note: ", view.Alert: "alert: ", view.Failed: "not done: "}[m.toast.Level]
		p.say("%s%s.", kind, m.toast.Text)
		m.toast.until = m.opt.Now().Add(toastHolds)
		p.toast = m.toast.until
	}
	if n := len(m.dialogs); n > 0 && p.asked == nil {
		p.ask(m.dialogs[n-1].Dialog)
	}
	p.tellLink()
	if m.frame.State == nil || m.link == command.LinkStale {
		return
	}
	p.tellAlerts()
	p.tellRevisions()
	p.tellFigures()
}

// tellLink says when the figures go stale, come back, or never came.
func (p *plain) tellLink() {
	m := p.m
	if err := m.live.Link.Err; err != p.fault {
		if p.fault = err; err != "" && m.frame.State == nil {
			p.say("connecting: %s.", err)
		}
	}
	was := p.link
	if p.link = m.link; p.link == was || m.frame.State == nil {
		return
	}
	switch p.link {
	case command.LinkStale:
		p.say("%s stale: the feed is lost, these figures are old, actions are off. %s.", cell.Clock(m.frame.State.At), cmp.Or(m.live.Link.Err, "nothing comes"))
	case command.LinkSlow:
	default:
		if was != command.LinkSlow {
			p.status()
		}
	}
}

// tellAlerts says the findings and warnings that are new. What was there before
// the console is only counted, but for what still stands.
func (p *plain) tellAlerts() {
	first, n, more := p.version == 0, 0, 0
	stands := map[alertKey]bool{}
	eachAlert(p.m.frame.State, func(k alertKey, x *model.Finding, e *model.Event) bool {
		stands[k] = true
		switch {
		case p.told[k] || first && e != nil:
		case n >= maxTold:
			more++
		case x != nil:
			n++
			p.say("alert: %s. %s.", x.Message, x.Next)
		default:
			n++
			p.say("%s %s, %s: %s.", cell.Clock(e.At), e.Level, e.Who, e.What)
		}
		return true
	})
	if p.told = stands; more > 0 {
		p.say("alert: %d more. Type: alert", more)
	}
}

// tellRevisions says what others changed.
func (p *plain) tellRevisions() {
	s := p.m.frame.State
	for _, r := range slices.Backward(s.Revisions) {
		if p.version != 0 && r.Version > p.version && r.Actor != p.m.opt.Actor {
			p.say("%s version %d by %s: %s.", cell.Clock(r.At), r.Version, r.Actor, r.What)
		}
	}
	p.version = s.Version
}

// status is the whole summary in one line.
func (p *plain) status() {
	s := p.m.frame.State
	if s == nil {
		p.say("nothing has arrived yet.")
		return
	}
	t := &s.Totals
	p.say("%s %s. Version %d, %d ranks, %s requests per second, first token %s, hit %s, %d queued, skew %s.", cell.Clock(s.At), linkWord(p.m.link), s.Version, len(s.Ranks),
		cell.Count(float64(t.RequestsPerSec)), cell.Ms(float64(t.TTFTMsP50)), cell.PercentShort(float64(t.Hit)), t.Queued, p.skew(s))
	p.said, p.saidAt = *t, p.m.opt.Now()
}

func linkWord(l command.Link) string {
	return [...]string{"nothing has arrived", "live", "slow", "stale", "frozen", "recording"}[l]
}

// skew is the figure, and who holds every step if it says something.
func (p *plain) skew(s *model.State) string {
	text := cell.Fixed(float64(s.Totals.Skew), 2).String()
	if b := busiest(s); b != "" && s.Totals.Skew >= 1.1 {
		text += ": " + b + " holds every step"
	}
	return text
}

// busiest is the rank with the most tokens, empty when none has any.
func busiest(s *model.State) string {
	name, most := "", int64(0)
	for i := range s.Ranks {
		if r := &s.Ranks[i]; !r.ReportedAt.IsZero() && int64(r.Tokens) > most {
			name, most = r.Target.String(), int64(r.Tokens)
		}
	}
	return name
}

// tellFigures says the figures that have moved by more than their step.
func (p *plain) tellFigures() {
	now, s := p.m.opt.Now(), p.m.frame.State
	if p.saidAt.IsZero() || now.Sub(p.saidAt) < p.po.Every || p.m.past.held != nil {
		return
	}
	t, was := &s.Totals, p.said
	var parts []string
	part := func(moved bool, format string, args ...any) {
		if moved {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	part(apart(float64(t.RequestsPerSec), float64(was.RequestsPerSec), 0.1), "%s requests per second, was %s", cell.Count(float64(t.RequestsPerSec)), cell.Count(float64(was.RequestsPerSec)))
	part(apart(float64(t.TTFTMsP50), float64(was.TTFTMsP50), 0.1), "first token %s, was %s", cell.Ms(float64(t.TTFTMsP50)), cell.Ms(float64(was.TTFTMsP50)))
	part(off(float64(t.Hit), float64(was.Hit), 0.02), "hit %s, was %s", cell.PercentShort(float64(t.Hit)), cell.PercentShort(float64(was.Hit)))
	part(apart(float64(t.Queued), float64(was.Queued), 0.1), "%d queued, was %d", t.Queued, was.Queued)
	part(off(float64(t.Skew), float64(was.Skew), 0.05), "skew %s, was %s", p.skew(s), cell.Fixed(float64(was.Skew), 2))
	if len(parts) == 0 {
		return
	}
	p.say("%s %s.", cell.Clock(s.At), strings.Join(parts, ". "))
	p.said, p.saidAt = *t, now
}

// apart reports that a differs from b by more than a share of b, and by 1 at
// least; off that it differs by more than step. What is known differs from what
// is not.
func apart(a, b, share float64) bool { return off(a, b, math.Max(share*math.Abs(b), 0.999)) }

func off(a, b, step float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) != math.IsNaN(b)
	}
	return math.Abs(a-b) > step
}

// help says what can be typed: everything, or what begins with a word.
func (p *plain) help(args []string) {
	if len(args) == 0 {
		p.say("status: all figures in one line.")
		p.say("list VIEW: the rows of a view, filtered and ordered; without VIEW those of %s.", p.m.current().ID())
		p.say("export csv, or export json: the same rows into a file.")
	}
	head := strings.Join(args, " ")
	for _, e := range newPalette(p.m).entries() {
		if strings.HasPrefix(e.name, head) {
			p.say("%s: %s.", e.usage, e.does)
		}
	}
}

// list says the rows of a view, one a line.
func (p *plain) list(args []string) {
	if len(args) > 0 {
		in, err := runView(p.m, args)
		if err != nil {
			p.say("not done: %s.", err)
			return
		}
		_ = p.m.carry(in) // shows a view, starts nothing
	}
	v, ok := p.m.current().(view.Exporter)
	if !ok {
		p.say("not done: this view has no rows.")
		return
	}
	t := v.Export(&p.m.frame)
	for _, row := range t.Rows[:min(len(t.Rows), maxListed)] {
		var parts []string
		for i, x := range row {
			switch v := x.(type) {
			case float64:
				x = math.Round(v*1000) / 1000
			case time.Time:
				if x = ""; !v.IsZero() {
					x = cell.Clock(v).String()
				}
			}
			if text := plainValue(x); text != "" {
				parts = append(parts, strings.ReplaceAll(t.Columns[i], "_", " ")+" "+text)
			}
		}
		p.say("%s.", strings.Join(parts, ", "))
	}
	if more := len(t.Rows) - maxListed; more > 0 {
		p.say("%d more rows. filter and sort choose others.", more)
	} else if len(t.Rows) == 0 {
		p.say("no rows.")
	}
}
