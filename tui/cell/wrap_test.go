package cell

import (
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		w    int
		want string
	}{
		"fits":        {"a few words", 20, "a few words"},
		"breaks":      {"a few words", 6, "a few|words"},
		"exactly":     {"a few words", 5, "a few|words"},
		"long word":   {"abcdefgh ij", 3, "abc|def|gh|ij"},
		"wide signs":  {"会話会話", 5, "会話|会話"},
		"empty":       {"", 5, ""},
		"no room":     {"a", 0, ""},
		"many blanks": {"a   b", 9, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range Wrap(Foreign(c.text), c.w) {
				got = append(got, l.String())
				if l.Width() > c.w {
					t.Errorf("%q is %d cells wide", l, l.Width())
				}
			}
			if g := strings.Join(got, "|"); g != c.want {
				t.Errorf("got %q, want %q", g, c.want)
			}
		})
	}
}
