package layout

import (
	"fmt"
	"strings"
	"testing"
)

// sketch draws the parts of a screen, a letter for each cell's part, every
// fourth column and every line.
func sketch(w, h int) string {
	s := Divide(w, h)
	main, line, panel, _ := Side(s.Body, w, h)
	var b strings.Builder
	for y := range h {
		for x := 0; x < w; x += 4 {
			c := '?'
			for _, p := range []struct {
				r    Rect
				name rune
			}{{s.Header, 'H'}, {s.Tabs, 'T'}, {main, '.'}, {Rect{line.X - line.X%4, line.Y, 4 * line.W, line.H}, '|'}, {panel, 's'}, {s.Status, 'S'}, {s.Hints, 'h'}} {
				if !p.r.Empty() && x >= p.r.X && x < p.r.X+p.r.W && y >= p.r.Y && y < p.r.Y+p.r.H && (c == '?' || p.name == '|') {
					c = p.name
				}
			}
			b.WriteRune(c)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestDivideAsDrawn(t *testing.T) {
	for name, c := range map[string]struct {
		w, h int
		want string
	}{
		"full": {60, 14, `
HHHHHHHHHHHHHHH
TTTTTTTTTTTTTTT
...............
...............
...............
...............
...............
...............
...............
...............
...............
...............
SSSSSSSSSSSSSSS
hhhhhhhhhhhhhhh
`},
		"compact": {40, 10, `
HHHHHHHHHH
..........
..........
..........
..........
..........
..........
..........
SSSSSSSSSS
hhhhhhhhhh
`},
		"wide but flat": {80, 11, `
HHHHHHHHHHHHHHHHHHHH
....................
....................
....................
....................
....................
....................
....................
....................
SSSSSSSSSSSSSSSSSSSS
hhhhhhhhhhhhhhhhhhhh
`},
		"summary": {20, 6, `
.....
.....
.....
.....
.....
.....
`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := "\n" + sketch(c.w, c.h); got != c.want {
				t.Errorf("got%swant%s", got, c.want)
			}
		})
	}
}

func TestSidePanelAsDrawn(t *testing.T) {
	want := strings.Repeat("H", 30) + "\n" + strings.Repeat("T", 30) + "\n" +
		strings.Repeat(strings.Repeat(".", 20)+"|"+strings.Repeat("s", 9)+"\n", 36) +
		strings.Repeat("S", 30) + "\n" + strings.Repeat("h", 30) + "\n"
	if got := sketch(120, 40); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	main, line, panel, ok := Side(Divide(120, 40).Body, 120, 40)
	if !ok || main.W != 80 || line.X != 80 || panel.X != 81 || panel.W != 39 {
		t.Errorf("main %v line %v panel %v", main, line, panel)
	}
}

func TestPartsCoverTheScreenOnce(t *testing.T) {
	for w := range 221 {
		for h := range 71 {
			s := Divide(w, h)
			main, line, panel, _ := Side(s.Body, w, h)
			cells := 0
			for _, r := range []Rect{s.Header, s.Tabs, main, line, panel, s.Status, s.Hints} {
				if r.W < 0 || r.H < 0 || r.X < 0 || r.Y < 0 || r.X+r.W > w || r.Y+r.H > h {
					t.Fatalf("%d×%d: part %v leaves the screen", w, h, r)
				}
				cells += r.W * r.H
			}
			if cells != w*h {
				t.Fatalf("%d×%d: parts cover %d cells of %d", w, h, cells, w*h)
			}
		}
	}
}

func TestColumns(t *testing.T) {
	cols := []Column{{Width: 10, Priority: 9, Grow: 1, Most: 14}, {Width: 8, Priority: 1}, {Width: 8, Priority: 1}, {Width: 6, Priority: 5, Grow: 2}}
	for name, c := range map[string]struct {
		w      int
		want   string
		hidden int
	}{
		"all":           {32, "[10 8 8 6]", 0},
		"grows":         {44, "[14 8 8 14]", 0},
		"last lowest":   {31, "[13 8 0 10]", 1},
		"both lowest":   {17, "[11 0 0 6]", 2},
		"one is left":   {12, "[12 0 0 0]", 3},
		"nothing fits":  {3, "[0 0 0 0]", 4},
		"negative room": {-5, "[0 0 0 0]", 4},
	} {
		t.Run(name, func(t *testing.T) {
			got, hidden := Columns(c.w, cols)
			if fmt.Sprint(got) != c.want || hidden != c.hidden {
				t.Errorf("got %v hidden %d, want %s hidden %d", got, hidden, c.want, c.hidden)
			}
		})
	}
}

func TestWindowKeepsTheCursorInSight(t *testing.T) {
	for n := range 40 {
		for h := range 12 {
			for cursor := -1; cursor < n; cursor++ {
				from, to := Window(n, h, cursor, 17)
				if from < 0 || to > n || to-from > max(h, 0) || (h > 0 && n >= h && to-from != h) {
					t.Fatalf("n %d h %d cursor %d: %d…%d", n, h, cursor, from, to)
				}
				if h > 0 && cursor >= 0 && (cursor < from || cursor >= to) {
					t.Fatalf("n %d h %d: cursor %d outside %d…%d", n, h, cursor, from, to)
				}
			}
		}
	}
}
