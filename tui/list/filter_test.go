package list

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

type thing struct {
	id, rank string
	cached   float64
}

func things() []thing {
	return []thing{
		{"conv-8f2c", "w0/3", 18400},
		{"conv-1b77", "w0/1", 16900},
		{"run-2291/agent-3", "w0/13", 13600},
		{"Batch:77", "w1/2", math.NaN()},
		{"Müller", "w0/3", 200},
	}
}

func newList() *List[string, thing] {
	l := New(Config[string, thing]{
		Key: func(t thing) string { return t.id },
		Fields: []Field[thing]{
			{Name: "conversation", Text: func(t thing) string { return t.id }},
			{Name: "rank", Text: func(t thing) string { return t.rank }, Exact: true},
			{Name: "cached", Number: func(t thing) float64 { return t.cached }, Falling: true},
		},
		Sort: "cached",
	})
	l.Update(things(), false)
	return l
}

func ids(l *List[string, thing]) string {
	var out []string
	for _, t := range l.Rows() {
		out = append(out, t.id)
	}
	return strings.Join(out, " ")
}

func TestFilterLanguage(t *testing.T) {
	for name, c := range map[string]struct{ filter, want string }{
		"empty":            {"", "conv-8f2c conv-1b77 run-2291/agent-3 Müller Batch:77"},
		"text":             {"conv", "conv-8f2c conv-1b77"},
		"any case":         {"BATCH", "Batch:77"},
		"umlaut any case":  {"MÜLLER", "Müller"},
		"exact":            {"rank:w0/1", "conv-1b77"},
		"and":              {"rank:w0/3 conv", "conv-8f2c"},
		"not":              {"!conv !rank:w0/3", "run-2291/agent-3 Batch:77"},
		"or":               {"rank:w0/1 | rank:w1/2", "conv-1b77 Batch:77"},
		"or without space": {"rank:w0/1|Müller", "conv-1b77 Müller"},
		"above":            {"cached>16k", "conv-8f2c conv-1b77"},
		"below":            {"cached<13,600.5", "run-2291/agent-3 Müller"},
		"unknown neither":  {"!cached>0", "Batch:77"},
		"quoted":           {`"batch:77"`, "Batch:77"},
		"quoted in term":   {`conversation:"h:7"`, "Batch:77"},
		"bang alone":       {"!", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newList()
			if err := l.SetFilter(c.filter); err != nil {
				t.Fatal(err)
			}
			if got := ids(l); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestFilterErrorsNameCauseAndWayOut(t *testing.T) {
	for filter, want := range map[string]string{
		"colour:red":                  "no column colour: columns are conversation rank cached",
		"rank>3":                      "rank is not a number: use rank:text",
		"cached>lots":                 `"lots" is not a number: write 12, 0.5, 48k, 80%, 30s or 183ms`,
		"cached>":                     "nothing stands after cached>",
		"| a":                         "nothing stands before |",
		"a |":                         "nothing stands after |",
		`"a`:                          `a quote " is not closed`,
		strings.Repeat("a ", 40) + "": "filter is too long",
		strings.Repeat("a", 300):      "filter is too long",
		"cached>1e999":                `"1e999" is not a number: write 12, 0.5, 48k, 80%, 30s or 183ms`,
		"cached>5%%":                  `"5%%" is not a number: write 12, 0.5, 48k, 80%, 30s or 183ms`,
	} {
		if err := newList().SetFilter(filter); err == nil || err.Error() != want {
			t.Errorf("%.20q: got %v, want %s", filter, err, want)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{"", "a", "!a", "rank:w0/3", "cached>1k | b", `"x y"`, "!|!", "a:b:c", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l := newList()
		err := l.SetFilter(s)
		if err != nil && len(l.Rows()) != len(things()) {
			t.Fatalf("%q: refused with %v and still filters", s, err)
		}
		if got, _ := l.FilterText(); err == nil && got != s {
			t.Fatalf("%q reads back as %q", s, got)
		}
	})
}

func TestCursorAndMarksAreIdentities(t *testing.T) {
	l := newList()
	l.Do(command.Down, 10)
	l.Do(command.Mark, 10) // marks conv-1b77, moves on
	if it, _ := l.Selected(); it.id != "run-2291/agent-3" || !l.Marked("conv-1b77") || !l.Held() {
		t.Fatalf("selected %v", it)
	}
	turned := things()
	slices.Reverse(turned)
	turned[0].cached = 1e6
	l.Update(append(turned, thing{"new", "w0/0", 5e6}), false)
	if got := ids(l); got != "conv-8f2c conv-1b77 run-2291/agent-3 Müller Batch:77 new" {
		t.Errorf("order was not held: %s", got)
	}
	if it, _ := l.Selected(); it.id != "run-2291/agent-3" {
		t.Errorf("cursor moved to %v", it)
	}
	l.ClearMarks()
	if got := ids(l); got != "new Müller conv-8f2c conv-1b77 run-2291/agent-3 Batch:77" {
		t.Errorf("order after letting go: %s", got)
	}
	if it, _ := l.Selected(); it.id != "run-2291/agent-3" || l.Line() != 4 {
		t.Errorf("cursor on %v in line %d", it, l.Line())
	}
	l.Update(turned[:2], false)
	if it, ok := l.Selected(); !ok || it.id != "Batch:77" {
		t.Errorf("cursor after its item left: %v", it)
	}
}

func TestMarksSurviveTheFilterAndDieWithTheirItems(t *testing.T) {
	l := newList()
	l.Do(command.MarkAll, 5)
	if err := l.SetFilter("conv"); err != nil {
		t.Fatal(err)
	}
	if l.Marks() != 5 || len(l.Targets()) != 5 {
		t.Errorf("%d marks, %d targets", l.Marks(), len(l.Targets()))
	}
	l.Update(things()[:2], false)
	if l.Marks() != 2 {
		t.Errorf("%d marks of two items", l.Marks())
	}
	l.ClearMarks()
	l.Do(command.First, 5)
	l.Do(command.Mark, 5)
	l.Do(command.Last, 5)
	l.Do(command.MarkRange, 5)
	if l.Marks() != 2 {
		t.Errorf("range marks %d", l.Marks())
	}
}

func TestTypingActsAtOnceAndEscGoesBack(t *testing.T) {
	l := newList()
	if err := l.SetFilter("conv"); err != nil {
		t.Fatal(err)
	}
	l.Do(command.Filter, 5)
	for _, r := range "-8" {
		l.Key(view.Key{Name: string(r), Runes: []rune{r}})
	}
	if text, err := l.FilterText(); text != "conv-8" || err != nil || len(l.Rows()) != 1 {
		t.Errorf("typed %q: %v, %d rows", text, err, len(l.Rows()))
	}
	for _, r := range " x:" {
		l.Key(view.Key{Name: string(r), Runes: []rune{r}})
	}
	l.Key(view.Key{Name: "enter"})
	if _, err := l.FilterText(); err == nil || !l.Typing() {
		t.Error("enter took a filter with an error")
	}
	l.Back()
	if text, _ := l.FilterText(); text != "conv" || l.Typing() || len(l.Rows()) != 2 {
		t.Errorf("esc left %q", text)
	}
	for i, want := range []bool{true, false} {
		if got := l.Back(); got != want {
			t.Errorf("back %d: %v", i, got)
		}
	}
}

func TestOrder(t *testing.T) {
	l := newList()
	l.Do(command.Reverse, 5)
	if got := ids(l); got != "Müller run-2291/agent-3 conv-1b77 conv-8f2c Batch:77" {
		t.Errorf("rising, unknown last: %s", got)
	}
	l.Do(command.SortRight, 5)
	if name, falling := l.Order(); name != "conversation" || falling {
		t.Errorf("next column is %s", name)
	}
	if !l.SortBy("rank") || l.SortBy("nothing") {
		t.Error("sort by name")
	}
	if got := fmt.Sprint(l.FieldNames()); got != "[conversation rank cached]" {
		t.Error(got)
	}
}

func BenchmarkFilter10000(b *testing.B) {
	items := make([]thing, 10000)
	for i := range items {
		items[i] = thing{fmt.Sprintf("conv-%08x", i*7919), fmt.Sprintf("w%d/%d", i%2, i%8), float64(i * 31 % 20000)}
	}
	l := newList()
	b.ReportAllocs()
	for b.Loop() {
		l.Update(items, false)
		_ = l.SetFilter("rank:w0/2 cached>5k")
		_ = l.SetFilter("")
	}
}

func TestTheCursorShowsTheFirstRowUntilItIsUsed(t *testing.T) {
	l := newList()
	turned := things()
	turned[4].cached = 1e6
	l.Update(turned, false)
	if it, _ := l.Selected(); it.id != "Müller" {
		t.Errorf("nobody aims, and yet the cursor is on %v", it)
	}
	l.Touch()
	l.Update(things(), false)
	if it, _ := l.Selected(); it.id != "Müller" || l.Line() != 3 {
		t.Errorf("aimed at Müller, cursor on %v", it)
	}
}
