package tui

import (
	"strings"

	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
)

// Lines draws the whole screen: exactly as many lines as it is high, each
// exactly as wide.
func (m *Model) Lines() []string {
	s := m.screen
	if s.W == 0 || s.H == 0 {
		return nil
	}
	if s.Form == layout.Summary {
		return m.overlay(m.summary())
	}
	lines := make([]string, 0, s.H)
	lines = append(lines, m.header(s.W))
	if !s.Tabs.Empty() {
		lines = append(lines, m.tabs(s.W))
	}
	lines = append(lines, m.body(s.Body.W, s.Body.H)...)
	lines = append(lines, m.status(s.W), m.hints(s.W))
	return m.overlay(lines)
}

// body draws the view, or what stands in its place before anything has come.
func (m *Model) body(w, h int) []string {
	v := m.current()
	if m.frame.State == nil {
		return m.waiting(w, h)
	}
	if v == nil {
		b := cell.NewBlock(m.frame.Ink, w)
		b.Begin(cell.Normal)
		b.Gap(1)
		m.figures(b)
		return b.Lines(h)
	}
	return v.Draw(&m.frame, w, h)
}

// waiting says why there is nothing to see yet.
func (m *Model) waiting(w, h int) []string {
	l := &m.live.Link
	b := cell.NewBlock(m.ink, w)
	b.Blank(max(0, h/3))
	say := func(r cell.Role, t cell.Text) {
		b.Begin(cell.Normal)
		b.Gap(2)
		b.Put(r, t)
	}
	say(cell.Strong, cell.Say("connecting to %s", cell.Foreign(m.opt.Address)))
	if l.Err != "" {
		say(cell.Warn, cell.Foreign(l.Err))
	}
	if l.Attempt > 1 {
		next := cell.Lit("now")
		if d := l.NextTry.Sub(m.opt.Now()); d > 0 {
			next = cell.Say("in %s", cell.Seconds(d))
		}
		say(cell.Dim, cell.Say("try %s %s · %s tries at once", cell.Int(l.Attempt), next, m.keyOf(command.Retry)))
	}
	return b.Lines(h)
}

// summary is all that fits into a tiny screen.
func (m *Model) summary() []string {
	b := cell.NewBlock(m.frame.Ink, m.screen.W)
	b.Begin(cell.Normal)
	b.Gap(1)
	badge := m.badgeText(m.opt.Now())
	b.Put(m.badgeRole(), badge)
	if s := m.frame.State; s != nil {
		b.Gap(1)
		b.Put(cell.Dim, cell.Say("v%s", cell.Int(s.Version)))
		b.Begin(cell.Normal)
		b.Gap(1)
		m.figures(b)
	}
	if t, ok := m.toastRuns(); ok && m.screen.H > 2 {
		b.Begin(cell.Normal)
		b.Gap(1)
		b.Runs(t...)
	}
	return b.Lines(m.screen.H)
}

// figures paints the totals in one line: 412/s 183 ms 87% 1.38× q8.
func (m *Model) figures(b *cell.Block) {
	t := &m.frame.State.Totals
	for i, x := range []cell.Text{
		cell.Say("%s/s", cell.Count(float64(t.RequestsPerSec))),
		cell.Ms(float64(t.TTFTMsP50)),
		cell.PercentShort(float64(t.Hit)),
		cell.Ratio(float64(t.Skew)),
		cell.Say("q%s", cell.Int(t.Queued)),
	} {
		if i > 0 {
			b.Gap(1)
		}
		b.Put(cell.Plain, x)
	}
}

// hints paints the keys of this view and selection, as many as fit.
func (m *Model) hints(w int) string {
	b := cell.NewBlock(m.ink, w)
	b.Begin(cell.Normal)
	b.Gap(1)
	gap := 2
	if w >= 150 {
		gap = 3
	}
	hints := m.table.Hints(m.situation())
	if v := m.current(); v != nil && v.Typing() && len(m.dialogs) == 0 {
		hints = command.TypingHints()
	}
	for i, h := range m.fitting(hints, w-2, gap) {
		if i > 0 {
			b.Gap(gap)
		}
		b.Put(cell.Key, keyText(b.Ink(), h.Key))
		b.Gap(1)
		b.Put(cell.Dim, cell.Foreign(h.Word))
	}
	return b.Lines(1)[0]
}

// fitting drops the least important hints until the rest fits.
func (m *Model) fitting(hints []command.Hint, w, gap int) []command.Hint {
	width := func() int {
		n := -gap
		for _, h := range hints {
			n += keyText(m.ink, h.Key).Width() + 1 + cell.Foreign(h.Word).Width() + gap
		}
		return n
	}
	for len(hints) > 0 && width() > w {
		least := 0
		for i, h := range hints {
			if h.Weight <= hints[least].Weight {
				least = i
			}
		}
		hints = append(hints[:least:least], hints[least+1:]...)
	}
	return hints
}

// keyText is a key's name; the sign for enter is a word where signs are ASCII.
func keyText(ink cell.Ink, key string) cell.Text {
	if ink.Glyphs.ASCII {
		key = strings.ReplaceAll(key, "⏎", "enter")
	}
	return cell.Foreign(key)
}
