package tui

import (
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// tabs paints the row of views. Where the names of all do not fit the gaps go
// first, then all names but that of the view in front.
func (m *Model) tabs(w int) string {
	b := cell.NewBlock(m.ink, w)
	b.Begin(cell.Normal)
	keys := m.keyOf(command.Help)
	if w >= layout.SideWidth {
		keys = cell.Say("%s keys", keys)
	}
	names, gap := m.tabRow(w)
	b.Gap(1)
	for i, name := range names {
		if i > 0 {
			b.Gap(gap)
		}
		if i != m.shown {
			b.Put(cell.Tab, name)
			continue
		}
		b.Put(cell.TabActive, name)
	}
	if left := w - 1 - keys.Width(); b.At() < left {
		b.To(left)
		b.Put(cell.Dim, keys)
	}
	return b.Lines(1)[0]
}

// tabRow are the names that fit, and the cells between them.
func (m *Model) tabRow(w int) (names []cell.Text, gap int) {
	gap = 2
	if w >= layout.SideWidth {
		gap = 3
	}
	names = m.tabNames(false)
	if tabsWidth(names, gap) > w-1 {
		gap = 1
	}
	if tabsWidth(names, gap) > w-1 {
		names = m.tabNames(true)
	}
	return names, gap
}

// tabAt is the view whose tab covers column x.
func (m *Model) tabAt(x int) (n int, ok bool) {
	names, gap := m.tabRow(m.screen.W)
	at := 1
	for i, name := range names {
		if x >= at && x < at+name.Width() {
			return i, true
		}
		at += name.Width() + gap
	}
	return 0, false
}

func tabsWidth(names []cell.Text, gap int) int {
	n := 1 - gap
	for _, t := range names {
		n += t.Width() + gap
	}
	return n
}

// tabNames are 1 Ranks, 6 Events ², and with its room the one in front.
func (m *Model) tabNames(short bool) []cell.Text {
	names := make([]cell.Text, len(m.opt.Views))
	for i, v := range m.opt.Views {
		name := cell.Int(i + 1)
		if !short || i == m.shown {
			name = cell.Say("%s %s", name, v.Title())
		}
		if n := m.unread(v); n > 0 {
			if !short || i == m.shown {
				name = cell.Concat(name, cell.Lit(" "))
			}
			name = cell.Concat(name, raised(n))
		}
		switch {
		case i != m.shown:
		case m.brackets():
			name = cell.Say("[%s]", name)
		default:
			name = cell.Say(" %s ", name)
		}
		names[i] = name
	}
	return names
}

// unread is what a view counts as not looked at.
func (m *Model) unread(v view.View) int {
	u, ok := v.(view.Unreader)
	if !ok || m.frame.State == nil {
		return 0
	}
	return u.Unread(&m.frame)
}

// raised is a count as one small digit, with a plus above nine.
func raised(n int) cell.Text {
	if n > 9 {
		return cell.Lit("⁹⁺")
	}
	return [...]cell.Text{
		{}, cell.Lit("¹"), cell.Lit("²"), cell.Lit("³"), cell.Lit("⁴"), cell.Lit("⁵"), cell.Lit("⁶"), cell.Lit("⁷"), cell.Lit("⁸"), cell.Lit("⁹"),
	}[n]
}

// brackets says that the tab in front needs more than a colour to be seen.
func (m *Model) brackets() bool { return m.ink.Theme.Colourless() }
