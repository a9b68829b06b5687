package command

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Set names a ready-made set of keys.
type Set string

// The sets.
const (
	Vim   Set = "vim"   // the table's own
	Plain Set = "plain" // arrows and function keys in place of letters that move
)

// Sets returns the sets by name, the default first.
func Sets() []Set { return []Set{Vim, Plain} }

// plainKeys are the keys in which Plain differs from Vim.
func plainKeys() map[ID][]string {
	return map[ID][]string{
		Down: {"down"}, Up: {"up"}, First: {"home"}, Last: {"end"}, PageDown: {"pgdown"}, PageUp: {"pgup"},
		SortLeft: {"left"}, SortRight: {"right"},
		Help: {"f1", "?"}, Palette: {"f2", ":"}, NextMatch: {"f3", "n"}, Filter: {"f4", "/"}, Freeze: {"f5", "z"},
		Sort: {"f6", "s"}, StepLess: {"f7", "-"}, StepMore: {"f8", "+", "="}, Odd: {"f9", "e"}, Quit: {"f10", "q"},
	}
}

// NewSet returns the table with the keys of a set.
func NewSet(set Set) *Table {
	t := New()
	if set == Plain {
		t.put(plainKeys())
	}
	return t
}

func (t *Table) put(binds map[ID][]string) {
	for id, keys := range binds {
		if c := t.Get(id); c != nil {
			c.Keys = slices.Clone(keys)
		}
	}
}

// Clash is a key that would start two commands in one view.
type Clash struct {
	Key         string // as Bubble Tea names it
	View        View
	First, Then ID // in the order of the table
}

// Error says which key starts what.
func (c *Clash) Error() string {
	return fmt.Sprintf("key %s starts %s and %s in %s", KeyName(c.Key), c.First, c.Then, c.View)
}

// Rebind returns t with other keys for the commands of binds, or a *Clash. It
// does not ask Forbids.
func (t *Table) Rebind(binds map[ID][]string) (*Table, error) {
	next := &Table{Commands: slices.Clone(t.Commands), byID: t.byID}
	next.put(binds)
	for _, v := range Views() {
		owner := map[string]ID{}
		for i := range next.Commands {
			c := &next.Commands[i]
			if !c.Applies(v) {
				continue
			}
			for _, k := range c.Keys {
				if first, taken := owner[k]; taken {
					return nil, &Clash{k, v, first, c.ID}
				}
				owner[k] = c.ID
			}
		}
	}
	return next, nil
}

// Acts reports that c changes what others see: its key is an upper-case letter
// and nothing else, so that no slip of a finger starts it.
func (c *Command) Acts() bool {
	return c.Class >= Moves || (c.Group == GroupAct && len(c.Keys) > 0 && upper(c.Keys[0]))
}

// Forbids says why the command id may not have these keys; empty when it may.
// The rules hold for every set: upper case acts and nothing else does, no key
// with ctrl or alt stages or acts, and what moves the cursor is no answer to a
// dialog.
func Forbids(id ID, keys []string) string {
	c := New().Get(id)
	switch {
	case c == nil:
		return fmt.Sprintf("no command %s", id)
	case id == Interrupt:
		return "ctrl+c always leaves: it cannot be given away"
	case len(keys) == 0 && id == Palette:
		return "the palette needs a key: through it every other command has a name"
	}
	for _, k := range keys {
		if why := c.forbids(k); why != "" {
			return why
		}
	}
	return ""
}

func (c *Command) forbids(key string) string {
	name := KeyName(key)
	switch {
	case key == "ctrl+c":
		return "ctrl+c always leaves: it cannot be given away"
	case key == "enter" && c.Acts():
		return fmt.Sprintf("%s acts, and enter answers dialogs: give it an upper-case letter", c.ID)
	case c.Group == GroupAct && (strings.HasPrefix(key, "ctrl+") || strings.HasPrefix(key, "alt+")):
		return fmt.Sprintf("%s changes something, and %s belongs to shells and multiplexers: no such command sits on ctrl or alt", c.ID, name)
	case c.Acts() && !upper(key):
		return fmt.Sprintf("%s acts, and only upper case acts: give it an upper-case letter, not %s", c.ID, name)
	case !c.Acts() && upper(key) && !slices.Contains(c.Keys, key):
		return fmt.Sprintf("%s does not act, and upper case acts: give it another key than %s", c.ID, name)
	case c.moves() && slices.Contains(answers(), key):
		return fmt.Sprintf("%s answers dialogs, in which %s moves: give it another key", name, c.ID)
	}
	return ""
}

// moves reports that c moves the cursor, in choosers of dialogs too.
func (c *Command) moves() bool {
	return slices.Contains([]ID{Down, Up, First, Last, PageDown, PageUp}, c.ID)
}

// answers are the keys that dialogs take for themselves.
func answers() []string {
	return []string{"enter", "esc", "tab", "shift+tab", "y", "n", "q", "r", "i", "h", "l", "left", "right", "backspace"}
}

func upper(key string) bool {
	r, size := utf8.DecodeRuneInString(key)
	return size == len(key) && unicode.IsUpper(r)
}

// ParseKey reads a key as people write it, and as KeyName does: j, G, space,
// enter, pgdn, f5, ^d or ctrl+d, alt+x. It returns Bubble Tea's name.
func ParseKey(text string) (string, error) {
	if utf8.RuneCountInString(text) == 1 {
		r, _ := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError || !unicode.IsPrint(r) || unicode.IsSpace(r) {
			return "", fmt.Errorf("%q is no key that can be typed; the space bar is space", text)
		}
		switch text { // as KeyName writes them
		case "⏎":
			return "enter", nil
		case "↑":
			return "up", nil
		case "↓":
			return "down", nil
		case "←":
			return "left", nil
		case "→":
			return "right", nil
		}
		return text, nil
	}
	if rest, ok := strings.CutPrefix(text, "^"); ok {
		text = "ctrl+" + rest
	}
	if rest, ok := strings.CutPrefix(text, "alt+"); ok && utf8.RuneCountInString(rest) == 1 {
		if _, err := ParseKey(rest); err == nil {
			return text, nil
		}
	}
	key := strings.ToLower(text)
	if rest, ok := strings.CutPrefix(key, "ctrl+"); ok && len(rest) == 1 && rest[0] >= 'a' && rest[0] <= 'z' {
		switch rest {
		case "i":
			return "", fmt.Errorf("%s: a terminal sends tab for it; write tab", text)
		case "m":
			return "", fmt.Errorf("%s: a terminal sends enter for it; write enter", text)
		}
		return key, nil
	}
	switch key {
	case "space":
		return " ", nil
	case "pgdn":
		return "pgdown", nil
	case "escape":
		return "esc", nil
	}
	if slices.Contains(namedKeys(), key) {
		return key, nil
	}
	return "", fmt.Errorf("no key %q; want one character, ctrl+a to ctrl+z, alt+CHARACTER, f1 to f12, or one of %s", text, strings.Join(namedKeys()[12:], " "))
}

// namedKeys are Bubble Tea's names of keys that are no character, the function
// keys first.
func namedKeys() []string {
	return []string{
		"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
		"enter", "esc", "tab", "shift+tab", "up", "down", "left", "right", "home", "end", "pgup", "pgdown", "insert", "delete", "backspace",
	}
}
