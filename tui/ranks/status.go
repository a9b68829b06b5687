package ranks

import (
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// Status is the count, the order and the sentence on skew; the editor or the
// filter stands in its place while it is open.
func (v *View) Status(f *view.Frame) (left, right []cell.Run) {
	v.update(f)
	x := gather(f.State)
	if v.editor != nil {
		return v.editor.Line(f.Ink), nil
	}
	if f.Form != layout.Full {
		return v.compactStatus(f, &x), nil
	}
	sep := cell.Run{Role: cell.Dim, Text: cell.Lit(" · ")}
	if v.list.Typing() || v.list.Filtered() {
		left = append(table.FilterLine(v.list), cell.Run{Text: cell.Lit("  ")})
	}
	left = append(left, cell.Run{Role: cell.Plain, Text: v.countText(f)}, sep, cell.Run{Role: cell.Dim, Text: table.OrderText(v.list)})
	role := cell.Dim
	if x.skew >= hotSkew {
		role = cell.Warn
	}
	room := f.ScreenW - 1
	for _, r := range left {
		room -= r.Text.Width()
	}
	left = append(left, sep, cell.Run{Role: role, Text: skewSentence(f.State, &x, room-sep.Text.Width())})
	if v.hidden > 0 && f.ScreenW < 78 {
		left = append(left, sep, cell.Run{Role: cell.Dim, Text: cell.Say("+%s columns: %s", cell.Int(v.hidden), f.KeyOf(command.Columns))})
	}
	return left, nil
}

// countText is 16 ranks, or 5 of 16 ranks under a filter or in a short window.
func (v *View) countText(f *view.Frame) cell.Text {
	n := len(v.list.Rows())
	all := cell.Full(len(f.State.Ranks))
	switch {
	case n != len(f.State.Ranks):
		return cell.Say("%s of %s ranks", cell.Full(n), all)
	case v.page < n:
		return cell.Say("%s of %s ranks shown", cell.Full(v.page), all)
	}
	return cell.Say("%s ranks", all)
}

// compactStatus is the sentence alone, short.
func (v *View) compactStatus(f *view.Frame, x *facts) []cell.Run {
	if v.list.Typing() || v.list.Filtered() {
		return table.FilterLine(v.list)
	}
	return []cell.Run{{Role: cell.Warn, Text: shortSentence(f, x)}}
}

// shortSentence is the sentence on skew for narrow screens.
func shortSentence(f *view.Frame, x *facts) cell.Text {
	skew := float64(f.State.Totals.Skew)
	switch {
	case f.Lost != nil:
		return cell.Say("feed lost %s ago: numbers are old", cell.Seconds(f.Lost.Age))
	case x.reported == 0:
		return cell.Lit("no rank has reported yet")
	case x.busiest != nil && skew >= even:
		return cell.Say("%s %s holds every step", cell.Glyph(f.Ink.Glyphs.Up), target(x.busiest.Target))
	}
	return cell.Lit("the ranks are even")
}
