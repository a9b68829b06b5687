package events

import (
	"strings"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// chips paints a row of kinds with their counts; the one that the filter names
// is in front.
func (v *View) chips(b *cell.Block, f *view.Frame) {
	c, now := &v.counts, v.kindShown()
	b.Begin(cell.Normal)
	b.Gap(1)
	chip := func(name cell.Text, n int, on bool) {
		role := cell.Tab
		if on {
			role = cell.TabActive
			name = cell.Concat(cell.Glyph(b.Ink().Glyphs.Now), cell.Lit(" "), name)
		}
		b.Put(role, cell.Say("%s %s", name, cell.Full(n)))
		b.Gap(3)
	}
	chip(cell.Lit("all"), c.all, now == "")
	for i, k := range kinds() {
		chip(cell.Foreign(k), c.kind[i], now == k)
	}
	b.Gap(2)
	b.Put(cell.Key, f.KeyOf(command.OneKind))
	b.Put(cell.Dim, cell.Lit(" one kind   "))
	b.Put(cell.Key, f.KeyOf(command.Filter))
	b.Put(cell.Dim, cell.Lit(" who:ann level:warn rank:w0/3 age<5m"))
}

// kindShown is the kind that the filter lets pass alone, empty for all.
func (v *View) kindShown() string {
	text, _ := v.list.FilterText()
	for _, w := range strings.Fields(text) {
		if k, ok := strings.CutPrefix(w, "kind:"); ok && !strings.Contains(text, "|") {
			return k
		}
	}
	return ""
}

// nextKind filters for the next kind of which there is an event; after the last
// all are shown. The filter's other terms stay, but not alternatives: there the
// term would count for the last one only.
func (v *View) nextKind() {
	now, next := v.kindShown(), ""
	past := now == ""
	for i, k := range kinds() {
		if past && v.counts.kind[i] > 0 {
			next = k
			break
		}
		past = past || k == now
	}
	text, _ := v.list.FilterText()
	var terms []string
	if !strings.Contains(text, "|") {
		for _, w := range strings.Split(text, " ") {
			if w != "" && !strings.HasPrefix(w, "kind:") {
				terms = append(terms, w)
			}
		}
	}
	if next != "" {
		terms = append(terms, "kind:"+next)
	}
	v.SetFilter(strings.Join(terms, " "))
}

// tailOf is the tail in which an event stands: 0 operators, 1 machine.
func tailOf(e *entry) int {
	if e.kind == model.EventOperator {
		return 0
	}
	return 1
}
