package dialog

import (
	"strconv"
	"unicode/utf8"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// Key takes a key. Enter fires the button that has the focus; y fires the
// acting one unless a word has to be typed.
func (x *Box) Key(f *view.Frame, k view.Key) (in view.Intent, done bool) {
	if x.focus == onReason || x.focus == onWord {
		return x.typing(k)
	}
	switch k.Name {
	case "enter":
		if x.focus == onCancel {
			return nil, true
		}
		return x.send(f)
	case "y":
		if x.word == "" {
			return x.send(f)
		}
	case "n", "esc", "q", "ctrl+c":
		return nil, true
	case "tab", "shift+tab":
		x.turn(k.Name == "tab")
	case "h", "left":
		x.focus = onCancel
	case "l", "right":
		x.toButton()
	case "r":
		if !x.noReason {
			x.focus = onReason
		}
	case "backspace":
		if x.word != "" {
			x.focus = onWord
			return x.typing(k)
		}
	default:
		x.body.key(f, k)
		if c, ok := x.body.(counter); ok && x.counted {
			x.word = strconv.Itoa(c.count())
		}
	}
	return nil, false
}

// counter is a content whose keys change how many items are meant.
type counter interface{ count() int }

// toButton gives the acting button the focus, once the word is there.
func (x *Box) toButton() {
	if x.word == "" || x.typed == x.word {
		x.focus = onButton
	}
}

// turn moves the focus along: cancel, button, reason, word.
func (x *Box) turn(on bool) {
	ring := []focus{onCancel}
	if x.word == "" || x.typed == x.word {
		ring = append(ring, onButton)
	}
	if !x.noReason {
		ring = append(ring, onReason)
	}
	if x.word != "" {
		ring = append(ring, onWord)
	}
	at := 0
	for i, p := range ring {
		if p == x.focus {
			at = i
		}
	}
	step := len(ring) - 1
	if on {
		step = 1
	}
	x.focus = ring[(at+step)%len(ring)]
}

// typing takes a key for the reason or the word.
func (x *Box) typing(k view.Key) (view.Intent, bool) {
	text, most := &x.reason, model.MaxReasonBytes
	if x.focus == onWord {
		text, most = &x.typed, 64
	}
	switch k.Name {
	case "esc", "ctrl+c":
		if x.focus == onWord {
			return nil, true
		}
		x.focus = onCancel
	case "enter":
		if x.focus == onWord {
			return nil, true // not the word: things stay as they are
		}
		x.focus = onCancel
	case "tab", "shift+tab":
		x.turn(k.Name == "tab")
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(*text)
		*text = (*text)[:len(*text)-size]
	case "ctrl+u":
		*text = ""
	default:
		for _, r := range k.Runes {
			if r >= 0x20 && r != 0x7f && utf8.ValidRune(r) && len(*text)+utf8.RuneLen(r) <= most {
				*text += string(r)
			}
		}
	}
	if x.focus == onWord && x.typed == x.word {
		x.focus = onButton
	}
	return nil, false
}

// wants makes the box ask for n typed when n is many.
func (x *Box) wants(n int) {
	if n <= manyItems {
		return
	}
	x.word, x.focus, x.counted = strconv.Itoa(n), onWord, true
	x.ask = cell.Lit("These are many. Type")
}

// Word is what has to be typed before the box does anything; empty for none.
func (x *Box) Word() string { return x.word }

// Answer presses the acting button for who has no keys: with the word that was
// typed, if one is wanted, and a reason for the history.
func (x *Box) Answer(f *view.Frame, word, reason string) (in view.Intent, done bool) {
	x.typed, x.reason = word, reason[:min(len(reason), model.MaxReasonBytes)]
	return x.send(f)
}
