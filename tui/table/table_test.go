package table

import (
	"errors"
	"testing"

	"adpdeck/tui/cell"
	"adpdeck/tui/list"
)

type line struct {
	text    string
	err     error
	typing  bool
	name    string
	falling bool
}

func (l line) Typing() bool                 { return l.typing }
func (l line) FilterText() (string, error)  { return l.text, l.err }
func (l line) Order() (name string, f bool) { return l.name, l.falling }

func flat(runs []cell.Run) string {
	s := ""
	for _, r := range runs {
		s += r.Text.String()
	}
	return s
}

func TestFilterLine(t *testing.T) {
	for name, c := range map[string]struct {
		line line
		want string
	}{
		"in force": {line{text: "rank:w0/3"}, "/ rank:w0/3"},
		"typed":    {line{text: "ra", typing: true}, "/ ra▏"},
		"wrong":    {line{text: "x:1", typing: true, err: errors.New("no column x")}, "/ x:1▏ no column x"},
		"hostile":  {line{text: "\x1b[m"}, `/ \x1b[m`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := flat(FilterLine(c.line)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOrderText(t *testing.T) {
	if got := OrderText(line{name: "cached", falling: true}).String(); got != "sort cached ▼" {
		t.Errorf("got %q", got)
	}
	if got := OrderText(line{name: "rank"}).String(); got != "sort rank ▲" {
		t.Errorf("got %q", got)
	}
}

// What Quote writes finds the value again, whatever it is made of.
func TestQuoteIsReadBack(t *testing.T) {
	fields := []list.Field[string]{{Name: "rank", Exact: true, Text: func(s string) string { return s }}}
	for _, s := range []string{"w0/3", "a b/1", "a|b/1", "a:b/1", "!a/1", "a>b/1", "-", "Ä/1", `a"b/1`, `a\b/1`, `a\"/1`, `"/1`, `\`, "a\u00a0b/1", "a\x1b[2J/1"} {
		l := list.New(list.Config[string, string]{Key: func(s string) string { return s }, Fields: fields, Sort: "rank"})
		l.Update([]string{s, "other/1"}, false)
		if err := l.SetFilter("rank:" + Quote(s)); err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if rows := l.Rows(); len(rows) != 1 || rows[0] != s {
			t.Errorf("%q: found %q", s, rows)
		}
	}
}
