// Package edit is the one-line editor of a settings value: what was in force,
// what is typed, and beside it why that cannot be staged. It judges a value
// with the same rules as the router, keeps nothing but its own line, and is
// used by the views that stage values.
package edit

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// maxBytes bounds what can be typed.
const maxBytes = 32

// Value edits one field, of one rank where the field is a rank's.
type Value struct {
	Field  model.Field
	Target *model.Target
	// Now is the value in force, as text.
	Now  string
	text string
	// fresh says that nothing was typed yet: the first rune replaces the text.
	fresh bool
	trial model.Settings
	why   string
}

// New opens an editor for a field of s; staged is what it begins with, empty
// for the value in force.
func New(s *model.Settings, field model.Field, t *model.Target, staged string) *Value {
	at := model.Target{}
	if t != nil {
		at = *t
	}
	v := &Value{Field: field, Target: t, Now: model.FieldText(s, field.Name, at), trial: *s, fresh: true}
	v.text = staged
	if staged == "" {
		v.text = v.Now
	}
	return v
}

// Outcome is what a key did to the editor.
type Outcome uint8

// The outcomes.
const (
	Open   Outcome = iota // goes on
	Closed                // left without a value
	Staged                // FieldValue holds the value to stage
)

// Key takes a key. Enter is refused while the value is out of bounds.
func (v *Value) Key(k view.Key) Outcome {
	switch k.Name {
	case "esc", "ctrl+c":
		return Closed
	case "enter":
		if v.check(); v.why != "" {
			return Open
		}
		return Staged
	case "up", "down":
		v.step(k.Name == "up")
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(v.text)
		v.text, v.fresh = v.text[:len(v.text)-size], false
	case "ctrl+u":
		v.text, v.fresh = "", false
	default:
		v.typed(k.Runes)
	}
	v.check()
	return Open
}

func (v *Value) typed(rs []rune) {
	for _, r := range rs {
		if r <= 0x20 || r == 0x7f || !utf8.ValidRune(r) {
			continue
		}
		if v.fresh {
			v.text, v.fresh = "", false
		}
		if len(v.text)+utf8.RuneLen(r) <= maxBytes {
			v.text += string(r)
		}
	}
}

func (v *Value) step(up bool) {
	if next, ok := Step(&v.Field, v.text, up, false); ok {
		v.text, v.fresh = next, false
	}
}

// check keeps the reason why the text cannot be staged.
func (v *Value) check() {
	v.why = Refused(&v.trial, v.FieldValue())
}

// FieldValue is the value as it stands.
func (v *Value) FieldValue() model.FieldValue {
	return model.FieldValue{Field: v.Field.Name, Target: v.Target, Value: v.text}
}

// Refused says why a value cannot be staged on s, empty when it can. Rules that
// span fields are left to the moment of applying, when all values are known.
func Refused(s *model.Settings, fv model.FieldValue) string {
	trial := *s
	if field, ok := model.ClusterField(fv.Field); ok {
		cluster := trial.Cluster()
		if !model.PutClusterField(&cluster, fv.Field, fv.Value) {
			return "give " + field.Allowed()
		}
		return ""
	}
	trial.AttentionDpConfig.EnableBalance = false
	_, err := model.SetField(&trial, fv)
	if err == nil {
		return ""
	}
	var ref *model.Refusal
	if errors.As(err, &ref) && ref.Next != "" {
		return ref.Next
	}
	return err.Error()
}

// Line paints the editor into the status row.
func (v *Value) Line(ink cell.Ink) []cell.Run {
	name := cell.Foreign(v.Field.Label)
	if v.Target != nil {
		name = cell.Say("%s %s", cell.Foreign(v.Target.String()), name)
	}
	runs := []cell.Run{
		{Role: cell.Strong, Text: name},
		{Role: cell.Dim, Text: cell.Say(" %s → ", Pretty(&v.Field, v.Now))},
		{Role: cell.Input, Text: cell.Foreign(v.text)},
		{Role: cell.Key, Text: cell.Lit("▏")},
	}
	if v.why != "" {
		return append(runs, cell.Run{Role: cell.Warn, Text: cell.Say(" %s", cell.Foreign(v.why))})
	}
	return append(runs, cell.Run{Role: cell.Dim, Text: cell.Say(" %s stage · esc · %s", cell.Glyph(ink.Glyphs.Enter), cell.Foreign(v.Field.Allowed()))})
}

// Step returns the value one small or large step from text, held inside the
// bounds. Switches and choices step to the next option. ok is false when text
// is not a value of the field.
func Step(f *model.Field, text string, up, large bool) (next string, ok bool) {
	switch f.Kind {
	case model.KindBool:
		return strconv.FormatBool(up), true
	case model.KindChoice:
		return stepChoice(f.Options, text, up), true
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", false
	}
	// Downwards, the step is the one that led here: 2.00 − 0.05, not 2.00 − 0.25.
	at := x
	if !up {
		at = x - 1e-9
	}
	d := f.Step(at, large)
	if !up {
		d = -d
	}
	x = min(f.Max, max(f.Min, x+d))
	if f.Kind == model.KindInt {
		return strconv.FormatInt(int64(x), 10), true
	}
	// Steps are hundredths, so sums of them are rounded to those.
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'f', 4, 64), 64)
	return strconv.FormatFloat(x, 'f', -1, 64), true
}

func stepChoice(options []string, text string, up bool) string {
	n := len(options)
	at := 0
	for i, o := range options {
		if o == text {
			at = i
		}
	}
	if n == 0 {
		return text
	}
	if up {
		return options[(at+1)%n]
	}
	return options[(at+n-1)%n]
}

// Pretty writes a value as the screen shows it: 1.00, off, least_tokens, 65,536.
func Pretty(f *model.Field, text string) cell.Text {
	switch f.Kind {
	case model.KindBool:
		switch strings.ToLower(text) {
		case "true":
			return cell.Lit("on")
		case "false":
			return cell.Lit("off")
		}
	case model.KindInt:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return cell.Full(n)
		}
	case model.KindFloat:
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return cell.Short(x)
		}
	}
	return cell.Foreign(text)
}

// Same reports whether two texts are the same value of the field.
func Same(f *model.Field, a, b string) bool {
	if a == b {
		return true
	}
	return Pretty(f, a) == Pretty(f, b)
}
