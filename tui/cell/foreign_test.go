package cell

import (
	"strings"
	"testing"
	"unicode/utf8"

	"adpdeck/themes"

	"github.com/charmbracelet/x/ansi"
)

func TestForeignMakesHiddenThingsVisible(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":            {"conv-8f2c91e0-41aa", "conv-8f2c91e0-41aa"},
		"c1 as a byte":     {"conv-\x9b31m-evil", `conv-\x9b31m-evil`},
		"c1 as a rune":     {"conv-\u009b31m", `conv-\x9b31m`},
		"escape":           {"\x1b[2J", `\x1b[2J`},
		"newline and nul":  {"a\nb\x00c\td", `a\x0ab\x00c\x09d`},
		"delete":           {"a\x7fb", `a\x7fb`},
		"bidi override":    {"a\u202eb", `a\u202eb`},
		"zero width":       {"a\u200bb\ufeff", `a\u200bb\ufeff`},
		"zero width join":  {"👩\u200d👩", `👩\u200d👩`},
		"combining":        {"e\u0301", `e\u0301`},
		"flags":            {"🇩🇪", `\u{1f1e9}\u{1f1ea}`},
		"skin tone":        {"👍🏽", `👍\u{1f3fd}`},
		"right to left":    {"אב", `\u05d0\u05d1`},
		"tags":             {"a\U000e0041", `a\u{e0041}`},
		"replacement char": {"a\ufffdb", `a\ufffdb`},
		"cut rune":         {"a\xe2\x82", `a\xe2\x82`},
		"backslash":        {`a\x9b`, `a\\x9b`},
		"wide":             {"会話", "会話"},
		"umlaut":           {"Müller", "Müller"},
		"empty":            {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Foreign(c.in)
			if got.String() != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if w := ansi.StringWidth(got.String()); w != got.Width() {
				t.Errorf("%q claims %d cells, measures %d", got, got.Width(), w)
			}
		})
	}
}

func TestFitCutsWithAMark(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	for name, c := range map[string]struct {
		in   string
		w    int
		want string
	}{
		"fits":     {"conv-1", 6, "conv-1"},
		"cut":      {"conv-12", 6, "conv-…"},
		"10 KiB":   {long, 4, "xxx…"},
		"wide":     {"会話会話", 6, "会話…"},
		"one cell": {"ab", 1, "…"},
		"no cell":  {"ab", 0, ""},
		"escape":   {"a\x9bb", 5, `a\x9b`[:4] + "…"},
	} {
		got := Fit(c.in, c.w)
		if got.String() != c.want || got.Width() != ansi.StringWidth(c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	ink := testInk()
	ink.Glyphs = themes.ASCII()
	if got := draw(ink, 8, func(b *Block) { b.Left(Plain, 8, Fit(long, 6)) }); got != "xxx...  " {
		t.Errorf("in ASCII %q", got)
	}
}

// Every rune that passes must keep its width next to any neighbour.
func TestNoRuneJoinsItsNeighbours(t *testing.T) {
	bad := 0
	for r := rune(0x20); r <= utf8.MaxRune; r++ {
		w := runeWidth(r)
		if w == 0 {
			continue
		}
		s := string(r)
		for _, pair := range []string{"a" + s, s + "a", s + " ", s + s, "👩" + s, s + "👩", "話" + s, "한" + s, s + "한", "क" + s, s + "क"} {
			want := w + 1
			switch {
			case pair == s+s:
				want = 2 * w
			case strings.ContainsAny(pair, "👩話한") && pair != "a"+s && pair != s+"a" && pair != s+" " && !strings.Contains(pair, "क"):
				want = w + 2
			}
			if r == 'क' || r == '👩' || r == '話' || r == '한' {
				continue
			}
			if got := ansi.StringWidth(pair); got != want {
				bad++
				if bad < 20 {
					t.Errorf("%U in %q: %d cells, want %d", r, pair, got, want)
				}
			}
		}
	}
}

func FuzzForeign(f *testing.F) {
	for _, s := range []string{"", "conv-\x9b31m", "e\u0301", "👩‍👩‍👧", "\xff\xfe", "a\u202eb", strings.Repeat("話", 90)} {
		f.Add(s, 12)
	}
	ink := testInk()
	f.Fuzz(func(t *testing.T, s string, w int) {
		w = min(max(w, 0), 300)
		for _, got := range []Text{Foreign(s), Fit(s, w)} {
			out := got.String()
			if n := ansi.StringWidth(out); n != got.Width() {
				t.Fatalf("%q: claims %d cells, measures %d", out, got.Width(), n)
			}
			if !utf8.ValidString(out) {
				t.Fatalf("%q is not valid UTF-8", out)
			}
			for _, r := range out {
				if r < 0x20 || (r >= 0x7f && r < 0xa0) {
					t.Fatalf("%q holds control %U", out, r)
				}
			}
		}
		b := NewBlock(ink, w)
		b.Begin(Normal)
		b.Left(Plain, w, Fit(s, w))
		if line := b.Lines(1)[0]; ansi.StringWidth(line) != w {
			t.Fatalf("row of %q is %d cells, want %d", s, ansi.StringWidth(line), w)
		}
	})
}
