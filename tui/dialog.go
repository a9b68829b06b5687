package tui

import (
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"adpdeck/themes"
	"adpdeck/tui/cell"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// A dialog that can start something takes no key for holdTime after it opened,
// and not the key that opened it for repeatTime: a key held down never confirms.
const (
	holdTime   = 150 * time.Millisecond
	repeatTime = 500 * time.Millisecond
)

// maxDialogs bounds the stack.
const maxDialogs = 4

// opened is a dialog on the stack.
type opened struct {
	view.Dialog
	at time.Time
	by string // the key that opened it
}

// show opens a dialog over those that are open.
func (m *Model) show(d view.Dialog) {
	if len(m.dialogs) < maxDialogs {
		m.dialogs = append(m.dialogs, opened{Dialog: d, at: m.opt.Now(), by: m.lastKey})
		m.refresh()
	}
}

// dialogKey gives a key to the dialog on top; esc closes exactly that.
func (m *Model) dialogKey(k view.Key) tea.Cmd {
	top := m.dialogs[len(m.dialogs)-1]
	if k.Name == "esc" || (k.Name == "ctrl+c" && !top.leaves()) {
		m.close(top.Dialog)
		return nil
	}
	if age := m.opt.Now().Sub(top.at); top.Acts() && (age < holdTime || (age < repeatTime && k.Name == top.by)) {
		return nil
	}
	in, done := top.Key(&m.frame, k)
	if done {
		m.close(top.Dialog)
	}
	return m.carry(in)
}

// leaves says that ctrl+c in the dialog means the dialog's own action.
func (o opened) leaves() bool {
	_, quit := o.Dialog.(*quitDialog)
	return quit
}

func (m *Model) close(d view.Dialog) {
	for i, o := range m.dialogs {
		if o.Dialog == d {
			m.dialogs = append(m.dialogs[:i:i], m.dialogs[i+1:]...)
			break
		}
	}
	m.refresh()
}

// overlay lays the open dialogs over the finished lines.
func (m *Model) overlay(lines []string) []string {
	for i, o := range m.dialogs {
		if i == len(m.dialogs)-1 {
			lines = m.dim(lines)
		}
		lines = m.lay(o.Dialog, lines)
	}
	return lines
}

// dim takes the colours from what lies behind a dialog, but not from the link's
// badge and the toast.
func (m *Model) dim(lines []string) []string {
	out := append([]string(nil), lines...)
	dim := m.ink.Theme.SGR(cell.Dim)
	for i, l := range out {
		if m.screen.Form != layout.Summary && (i == m.screen.Header.Y || i == m.screen.Status.Y) {
			continue
		}
		out[i] = dim + ansi.Strip(l) + themes.Reset
	}
	return out
}

func (m *Model) lay(d view.Dialog, lines []string) []string {
	area := layout.Rect{Y: m.screen.Body.Y, W: m.screen.W, H: m.screen.Body.H}
	if m.screen.Form != layout.Full {
		area = layout.Rect{W: m.screen.W, H: m.screen.H}
	}
	w, h := d.Size(&m.frame)
	r := layout.Centre(area, w+2, h+2)
	if r.W < 4 || r.H < 3 {
		r = area // too small for a border: the content has it all
		return paste(lines, r, d.Draw(&m.frame, r.W, r.H))
	}
	return paste(lines, r, m.box(d, r.W, r.H))
}

// box draws a dialog with its border: title above, foot below.
func (m *Model) box(d view.Dialog, w, h int) []string {
	g := &m.ink.Glyphs
	edge := func(left, right string, text cell.Text, atRight bool) string {
		b := cell.NewBlock(m.ink, w)
		b.Begin(cell.Normal)
		b.Put(cell.RuleLine, cell.Glyph(left))
		tw := min(text.Width(), w-6)
		switch {
		case text.Empty() || tw < 1:
		case atRight:
			b.Repeat(cell.RuleLine, g.HLine, w-5-tw)
			b.Gap(1)
			b.Left(cell.Dim, tw, text)
			b.Gap(1)
		default:
			b.Repeat(cell.RuleLine, g.HLine, 1)
			b.Gap(1)
			b.Left(cell.Title, tw, text)
			b.Gap(1)
		}
		b.Repeat(cell.RuleLine, g.HLine, w-1-b.At())
		b.Put(cell.RuleLine, cell.Glyph(right))
		return b.Lines(1)[0]
	}
	out := make([]string, 0, h)
	out = append(out, edge(g.TopLeft, g.TopRight, d.Title(), false))
	side := m.ink.Theme.SGR(cell.RuleLine) + g.VLine + themes.Reset
	for _, line := range d.Draw(&m.frame, w-2, h-2) {
		out = append(out, side+line+side)
	}
	return append(out, edge(g.BottomLeft, g.BottomRight, d.Foot(&m.frame), true))
}

// paste lays a box of finished lines over others, which keep their width.
func paste(lines []string, r layout.Rect, box []string) []string {
	out := append([]string(nil), lines...)
	for i, line := range box {
		y := r.Y + i
		if y >= len(out) {
			break
		}
		under := out[y]
		left := ansi.Truncate(under, r.X, "")
		right := ansi.TruncateLeft(under, r.X+r.W, "")
		// A wide sign on the border is cut away whole: blanks stand in for it.
		padLeft := r.X - ansi.StringWidth(left)
		padRight := ansi.StringWidth(under) - r.X - r.W - ansi.StringWidth(right)
		out[y] = left + themes.Reset + blanks(padLeft) + line + blanks(padRight) + right + themes.Reset
	}
	return out
}

func blanks(n int) string { return strings.Repeat(" ", max(n, 0)) }
