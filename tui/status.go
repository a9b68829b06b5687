package tui

import (
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// toast is the one sentence that stands in the status row for six seconds.
type toast struct {
	view.Toast
	until time.Time
	shown bool
	// again is a command that was refused because the version had moved on, and
	// that A offers once more.
	again *model.Command
}

// errorHolds is how long an error stands even against the answer to a key.
const errorHolds = time.Second

// show puts a new toast up. While an error stands only another error takes its
// place, or, after a second, what answers a key that was just pressed.
func (t *toast) show(n view.Toast, now time.Time) {
	if t.shown && now.Before(t.until) && t.Level == view.Failed && n.Level != view.Failed {
		if n.Level == view.Alert || now.Before(t.until.Add(errorHolds-toastTime)) {
			return
		}
	}
	*t = toast{Toast: n, until: now.Add(toastTime), shown: true}
}

// expire takes the toast down when its time is over and reports that it did.
func (t *toast) expire(now time.Time) bool {
	if t.shown && !now.Before(t.until) {
		t.shown = false
		return true
	}
	return false
}

// toastRuns paints the toast, if one is up.
func (m *Model) toastRuns() ([]cell.Run, bool) {
	if !m.toast.shown {
		return nil, false
	}
	g := &m.ink.Glyphs
	role, sign := cell.OK, g.Good
	switch m.toast.Level {
	case view.Note:
		role, sign = cell.Staged, "·"
	case view.Alert:
		role, sign = cell.Warn, g.Alert
	case view.Failed:
		role, sign = cell.Crit, g.Bad
	}
	return []cell.Run{{Role: role, Text: cell.Glyph(sign)}, {Role: cell.Plain, Text: cell.Lit(" ")}, {Role: cell.Plain, Text: m.toast.Text}}, true
}

// status paints the toast, or what the link or the view has to say.
func (m *Model) status(w int) string {
	b := cell.NewBlock(m.ink, w)
	b.Begin(cell.Normal)
	b.Gap(1)
	if runs, ok := m.toastRuns(); ok {
		b.Runs(runs...)
		return b.Lines(1)[0]
	}
	left, right := m.statusRuns()
	for len(left) > 1 && width(left) > w-1 { // a remark that is cut says nothing
		left = left[:len(left)-1]
	}
	rightW := width(right)
	if width(left)+rightW+4 > w {
		right, rightW = nil, 0
	}
	b.Runs(left...)
	if rightW > 0 {
		b.To(w - rightW - 1)
		b.Runs(right...)
	}
	return b.Lines(1)[0]
}

func (m *Model) statusRuns() (left, right []cell.Run) {
	f := &m.frame
	if f.State == nil {
		return nil, nil
	}
	switch m.link {
	case command.LinkStale:
		from := cell.Clock(f.State.At)
		if m.screen.W < 78 {
			return []cell.Run{{Role: cell.Warn, Text: cell.Say("figures from %s, not live", from)}, {Role: cell.Warn, Text: cell.Lit(" · actions are off")}}, nil
		}
		return []cell.Run{{Role: cell.Warn, Text: cell.Say("these figures are from %s, not live · actions are off until it returns", from)}}, nil
	case command.LinkFrozen:
		ago := m.opt.Now().Sub(m.past.held.at)
		live := cell.Unknown()
		if m.live.State != nil {
			live = cell.Ratio(float64(m.live.State.Totals.Skew))
		}
		return []cell.Run{
			{Role: cell.Plain, Text: cell.Say("%s, %s s ago", cell.Clock(f.State.At), cell.Int(int(ago/time.Second)))},
			{Role: cell.Plain, Text: cell.Say(" · live goes on behind: skew %s", live)},
		}, nil
	}
	if v := m.current(); v != nil {
		return v.Status(f)
	}
	return nil, nil
}

// say shows a toast.
func (m *Model) say(l view.Level, t cell.Text) {
	m.toast.show(view.Toast{Level: l, Text: t}, m.opt.Now())
	m.dirty = true
}
