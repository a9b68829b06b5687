package tui

import (
	"slices"
	"strings"

	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// palette runs any command by its name.
type palette struct {
	m      *Model
	text   string
	err    string
	recent int // how far up goes back, 0 is the text being typed
}

// maxPalette bounds what can be typed, maxRecent what is remembered.
const (
	maxPalette = 512
	maxRecent  = 20
)

func newPalette(m *Model) *palette { return &palette{m: m} }

// Title implements view.Dialog.
func (d *palette) Title() cell.Text { return cell.Lit("Command") }

// Foot implements view.Dialog.
func (d *palette) Foot(*view.Frame) cell.Text { return cell.Lit("tab completes · enter runs · esc") }

// Size implements view.Dialog.
func (d *palette) Size(*view.Frame) (w, h int) { return 62, 13 }

// Acts implements view.Dialog.
func (d *palette) Acts() bool { return false }

// entry is a name that can be typed.
type entry struct{ name, usage, does string }

// entries are the verbs with arguments and the names of the table's commands.
func (d *palette) entries() []entry {
	var out []entry
	for _, v := range verbs() {
		out = append(out, entry{v.name, v.usage, v.does})
	}
	s := d.m.situation()
	for i := range d.m.table.Commands {
		c := &d.m.table.Commands[i]
		if c.Applies(s.View) && !slices.ContainsFunc(out, func(e entry) bool { return e.name == string(c.ID) }) {
			does := c.Help
			if why := c.Reason(s); why != "" {
				does = "off: " + why
			}
			out = append(out, entry{string(c.ID), string(c.ID), does})
		}
	}
	return out
}

// words splits the text into a name and its arguments; open says that the last
// word is still being typed.
func (d *palette) words() (words []string, open bool) {
	return strings.Fields(d.text), d.text != "" && !strings.HasSuffix(d.text, " ")
}

// completions are the words that the last one can become.
func (d *palette) completions() []string {
	words, open := d.words()
	head := ""
	if open {
		head, words = words[len(words)-1], words[:len(words)-1]
	}
	var all []string
	if len(words) == 0 {
		for _, e := range d.entries() {
			all = append(all, e.name)
		}
	} else if d.m.frame.State != nil {
		for _, v := range verbs() {
			if v.name == words[0] && v.args != nil {
				all = v.args(d.m, len(words)-1)
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, head) || strings.ContainsAny(s, " \t\n") })
}

// complete extends the last word by what all completions share.
func (d *palette) complete() {
	all := d.completions()
	if len(all) == 0 {
		return
	}
	common := all[0]
	for _, s := range all[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	words, open := d.words()
	if open {
		words = words[:len(words)-1]
	}
	if len(all) == 1 {
		common += " "
	}
	d.text = strings.Join(append(words, common), " ")
}

// Draw implements view.Dialog.
func (d *palette) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	b.Begin(cell.Normal)
	b.Gap(2)
	b.Put(cell.Key, cell.Lit(": "))
	b.Put(cell.Input, cell.Foreign(d.text))
	b.Put(cell.Plain, cell.Glyph(f.Ink.Glyphs.Caret))
	b.Begin(cell.Normal)
	if d.err != "" {
		b.Gap(2)
		b.Put(cell.Crit, cell.Foreign(d.err))
	}
	words, open := d.words()
	if len(words) > 1 || (len(words) == 1 && !open) {
		d.arguments(b, words[0], h-2)
	} else {
		d.names(b, words, h-2)
	}
	return b.Lines(h)
}

// names lists the commands that the typed letters can become.
func (d *palette) names(b *cell.Block, words []string, h int) {
	head := strings.Join(words, "")
	for _, e := range d.entries() {
		if h > 0 && strings.HasPrefix(e.name, head) {
			h--
			b.Begin(cell.Normal)
			b.Gap(2)
			d.entry(b, cell.Plain, e)
		}
	}
}

// entry paints how a command is written and, where there is room, what it does.
func (d *palette) entry(b *cell.Block, r cell.Role, e entry) {
	b.Left(r, 26, cell.Foreign(e.usage))
	if b.Width() >= 56 {
		b.Gap(1)
		b.Put(cell.Dim, cell.Foreign(e.does))
	}
}

// arguments shows how a command is written and what can come next.
func (d *palette) arguments(b *cell.Block, name string, h int) {
	for _, e := range d.entries() {
		if e.name == name {
			b.Begin(cell.Normal)
			b.Gap(2)
			d.entry(b, cell.Strong, e)
			h--
		}
	}
	b.Begin(cell.Normal)
	all := d.completions()
	for i := 0; i < len(all) && i < h-1; i++ {
		b.Begin(cell.Normal)
		b.Gap(4)
		b.Put(cell.Plain, cell.Foreign(all[i]))
	}
}

// Key implements view.Dialog.
func (d *palette) Key(_ *view.Frame, k view.Key) (view.Intent, bool) {
	switch k.Name {
	case "tab":
		d.complete()
	case "backspace":
		if r := []rune(d.text); len(r) > 0 {
			d.text = string(r[:len(r)-1])
		}
	case "ctrl+u":
		d.text = ""
	case "up", "down":
		d.recall(k.Name == "up")
	case "enter":
		return d.run()
	default:
		for _, r := range k.Runes {
			if r >= 0x20 && r != 0x7f && len(d.text) < maxPalette {
				d.text += string(r)
			}
		}
	}
	d.err = ""
	return nil, false
}

func (d *palette) recall(older bool) {
	n := len(d.m.recent)
	if older {
		d.recent = min(d.recent+1, n)
	} else {
		d.recent = max(d.recent-1, 0)
	}
	d.text = ""
	if d.recent > 0 {
		d.text = d.m.recent[n-d.recent]
	}
}

// run carries out what was typed; an error stays on the palette.
func (d *palette) run() (view.Intent, bool) {
	words, _ := d.words()
	if len(words) == 0 {
		return nil, true
	}
	in, err := d.m.runNamed(words[0], words[1:])
	if err != nil {
		d.err = err.Error()
		return nil, false
	}
	d.m.recent = append(d.m.recent, strings.Join(words, " "))
	d.m.recent = d.m.recent[max(0, len(d.m.recent)-maxRecent):]
	return in, true
}
