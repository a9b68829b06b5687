package list

import (
	"unicode/utf8"

	"adpdeck/tui/view"
)

// input is a line of typed text with a caret at its end.
type input struct{ text string }

// key applies a key to the text and reports whether it was one for it.
func (in *input) key(k view.Key) bool {
	switch k.Name {
	case "backspace":
		if _, size := utf8.DecodeLastRuneInString(in.text); size > 0 {
			in.text = in.text[:len(in.text)-size]
		}
	case "ctrl+u":
		in.text = ""
	case "ctrl+w":
		in.text = cutWord(in.text)
	default:
		if len(k.Runes) == 0 {
			return false
		}
		for _, r := range k.Runes {
			if r >= 0x20 && r != 0x7f && len(in.text)+utf8.RuneLen(max(r, 0)) <= MaxFilterBytes && utf8.ValidRune(r) {
				in.text = string(utf8.AppendRune([]byte(in.text), r))
			}
		}
	}
	return true
}

// cutWord drops the last word and the spaces after it.
func cutWord(s string) string {
	end := len(s)
	for end > 0 && s[end-1] == ' ' {
		end--
	}
	for end > 0 && s[end-1] != ' ' {
		end--
	}
	return s[:end]
}

func (l *List[K, T]) startTyping() {
	l.typing, l.before = true, l.filter
	l.input.text = l.filter.text
}

// stopTyping ends typing and keeps the filter, or goes back to the one before.
func (l *List[K, T]) stopTyping(keep bool) {
	l.typing = false
	if !keep || l.err != nil {
		l.filter = l.before
	}
	l.err = nil
	l.arrange()
}

// Typing reports whether the filter is being typed.
func (l *List[K, T]) Typing() bool { return l.typing }

// Key takes a key while the filter is typed: enter keeps it, esc goes back to
// the one before. It acts as it is typed; while the text has an error the last
// good filter stays in force.
func (l *List[K, T]) Key(k view.Key) {
	l.touched = true
	switch k.Name {
	case "enter":
		if l.err == nil {
			l.stopTyping(true)
		}
	case "esc", "ctrl+c":
		l.stopTyping(false)
	case "down":
		l.move(1)
	case "up":
		l.move(-1)
	default:
		if l.input.key(k) {
			l.err = l.parse(l.input.text)
		}
	}
}

func (l *List[K, T]) parse(text string) error {
	f, err := ParseFilter(text, l.info)
	if err != nil {
		return err
	}
	l.filter = f
	l.arrange()
	return nil
}

// SetFilter replaces the filter; an error leaves the one before.
func (l *List[K, T]) SetFilter(text string) error { return l.parse(text) }

// FilterText returns what to show in the filter's line: the text being typed or
// in force, and what is wrong with it.
func (l *List[K, T]) FilterText() (text string, err error) {
	if l.typing {
		return l.input.text, l.err
	}
	return l.filter.text, nil
}

// Filtered reports whether a filter is in force.
func (l *List[K, T]) Filtered() bool { return !l.filter.Empty() }
