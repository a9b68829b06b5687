package command

import (
	"cmp"
	"slices"
	"strings"
)

// KeyName returns a key as people write it: ⏎ for enter, ^d for ctrl+d.
func KeyName(key string) string {
	switch key {
	case "enter":
		return "⏎"
	case " ":
		return "space"
	case "up":
		return "↑"
	case "down":
		return "↓"
	case "left":
		return "←"
	case "right":
		return "→"
	case "pgdown":
		return "pgdn"
	}
	if letter, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return "^" + letter
	}
	if n, ok := strings.CutPrefix(key, "f"); ok && n != "" && n[0] <= '9' {
		return "F" + n
	}
	return key
}

// Hint is one entry of the hints row.
type Hint struct {
	Key, Word string
	Weight    int
	at        int
}

// Hints returns what the hints row of a view offers now, in order: commands
// that are off are left out.
func (t *Table) Hints(s *Situation) []Hint {
	if s.Compact {
		return t.compactHints(s)
	}
	var out []Hint
	for i := range t.Commands {
		c := &t.Commands[i]
		word := cmp.Or(c.Words[s.View], c.Hint)
		if word == "" || !c.Applies(s.View) || c.Reason(s) != "" {
			continue
		}
		if len(c.Keys) == 0 && c.HintKey == "" {
			continue // by name only
		}
		h := Hint{t.hintKey(c), word, c.Weight, c.HintAt}
		switch {
		case c.ID == Freeze && s.Link == LinkFrozen:
			h.Word = "live again"
		case c.ID == Freeze && s.Link == LinkStale:
			h.Word = "look back"
		}
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b Hint) int { return cmp.Compare(a.at, b.at) })
	return out
}

// hintKey is what stands for c in hints: n/N for two commands in one.
func (t *Table) hintKey(c *Command) string {
	if c.HintKey != "" {
		return c.HintKey
	}
	key := KeyName(c.Keys[0])
	if with := t.Get(c.HintWith); with != nil && len(with.Keys) > 0 {
		key += c.HintJoin + KeyName(with.Keys[0])
	}
	return key
}

// TypingHints are the keys that act while a view reads text: all others are
// text.
func TypingHints() []Hint {
	return []Hint{
		{Key: "⏎", Word: "keep", Weight: 5},
		{Key: "esc", Word: "back", Weight: 4},
		{Key: "^u", Word: "clear", Weight: 3},
		{Key: "↑ ↓", Word: "move or step", Weight: 2},
	}
}

// compactHints are those for a screen with few columns: how to get elsewhere and
// how to learn more, before what can be done here.
func (t *Table) compactHints(s *Situation) []Hint {
	var out []Hint
	for i, h := range [...]struct {
		id   ID
		word string
		with ID
	}{
		{PrevView, "view", NextView},
		{Retry, "retry", ""},
		{Filter, "filter", ""},
		{StepLess, "step", StepMore},
		{Palette, "cmd", ""},
		{Help, "keys", ""},
		{Quit, "", ""},
	} {
		c := t.Get(h.id)
		if !c.Applies(s.View) || c.Reason(s) != "" || (len(c.Keys) == 0 && c.HintKey == "") {
			continue
		}
		key := cmp.Or(c.HintKey, t.KeyOf(h.id))
		if h.with != "" {
			key += " " + t.KeyOf(h.with)
		}
		out = append(out, Hint{Key: key, Word: h.word, Weight: 10 * i, at: i})
	}
	return out
}

// Line is one line of the help overlay.
type Line struct {
	Group Group
	Keys  []string
	Help  string
	// Off says why all its commands are off, with the first one's key.
	Off string
	// ID is the first command of the line.
	ID ID
}

// Lines returns the help overlay's lines for a view. A search shows one line
// per command that has the text in its key, name or help.
func (t *Table) Lines(s *Situation, search string) []Line {
	search = strings.ToLower(search)
	led := map[ID]bool{}
	for i := range t.Commands {
		if c := &t.Commands[i]; !c.Applies(s.View) || len(c.Keys) == 0 {
			continue // without a key of its own it leads no line
		}
		for _, id := range t.Commands[i].Leads {
			led[id] = true
		}
	}
	var out []Line
	for i := range t.Commands {
		c := &t.Commands[i]
		if !c.Applies(s.View) || (search == "" && (led[c.ID] || len(c.Keys) == 0)) {
			continue
		}
		if search != "" {
			if c.matches(search) {
				out = append(out, Line{c.Group, names(c.Keys), c.Help, c.Reason(s), c.ID})
			}
			continue
		}
		out = append(out, t.line(c, s))
	}
	return out
}

func (c *Command) matches(search string) bool {
	for _, k := range c.Keys {
		if strings.ToLower(k) == search || strings.ToLower(KeyName(k)) == search {
			return true
		}
	}
	return strings.Contains(strings.ToLower(c.Help), search) || strings.Contains(string(c.ID), search)
}

func (t *Table) line(c *Command, s *Situation) Line {
	l := Line{c.Group, names(c.Keys), c.Help, c.Reason(s), c.ID}
	if len(c.Leads) > 0 {
		l.Keys = []string{KeyName(c.Keys[0])}
		for _, id := range c.Leads {
			if other := t.Get(id); other != nil && other.Applies(s.View) && len(other.Keys) > 0 {
				l.Keys = append(l.Keys, KeyName(other.Keys[0]))
				if other.Reason(s) == "" {
					l.Off = ""
				}
			}
		}
	}
	if c.Line != "" {
		l.Help = c.Line
	}
	l.Keys = ranges(l.Keys)
	return l
}

// ranges writes digits that follow each other as 1–3.
func ranges(keys []string) []string {
	n := 0
	for n < len(keys) && len(keys[n]) == 1 && keys[n][0] == byte('1'+n) {
		n++
	}
	if n < 3 {
		return keys
	}
	return append([]string{keys[0] + "–" + keys[n-1]}, keys[n:]...)
}

func names(keys []string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = KeyName(k)
	}
	return out
}

// Count returns how many commands apply in a view.
func (t *Table) Count(v View) int {
	n := 0
	for i := range t.Commands {
		if t.Commands[i].Applies(v) {
			n++
		}
	}
	return n
}
