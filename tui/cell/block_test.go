package cell

import (
	"math"
	"strings"
	"testing"

	"adpdeck/themes"

	"github.com/charmbracelet/x/ansi"
)

func testTheme() *themes.Theme {
	f, err := themes.Load("night")
	if err != nil {
		panic(err)
	}
	return f.Compile(themes.TrueColour)
}

func testInk() Ink { return Ink{Theme: testTheme(), Glyphs: themes.Unicode()} }

// draw paints one row and returns its bare cells.
func draw(ink Ink, w int, paint func(*Block)) string {
	b := NewBlock(ink, w)
	b.Begin(Normal)
	paint(b)
	return ansi.Strip(b.Lines(1)[0])
}

func TestBarAsDrawn(t *testing.T) {
	for name, c := range map[string]struct {
		value float64
		w     int
		old   bool
		want  string
	}{
		"12 of 16":       {12, 17, false, "━━━━━━━━━━━┿╸────"},
		"11 of 16":       {11, 17, false, "━━━━━━━━━━━┿─────"},
		"14 of 16":       {14, 17, false, "━━━━━━━━━━━┿━━╸──"},
		"10 of 16":       {10, 17, false, "━━━━━━━━━━╸┼─────"},
		"9 of 16":        {9, 17, false, "━━━━━━━━━╸─┼─────"},
		"6 of 16":        {6, 17, false, "━━━━━━─────┼─────"},
		"12 of 16, wide": {12, 24, false, "━━━━━━━━━━━━━━━━┿━──────"},
		"9 of 16, wide":  {9, 24, false, "━━━━━━━━━━━━━╸──┼───────"},
		"none":           {0, 17, false, "───────────┼─────"},
		"a trace":        {0.01, 17, false, "╸──────────┼─────"},
		"all":            {16, 17, false, "━━━━━━━━━━━┿━━━━━"},
		"more than all":  {99, 17, false, "━━━━━━━━━━━┿━━━━━"},
		"old 12":         {12, 17, true, "┅┅┅┅┅┅┅┅┅┅┅┅┅────"},
		"old 10":         {10, 17, true, "┅┅┅┅┅┅┅┅┅┅┅┼─────"},
		"old 9":          {9, 17, true, "┅┅┅┅┅┅┅┅┅┅─┼─────"},
		"unknown":        {math.NaN(), 17, false, "───────────┼─────"},
	} {
		t.Run(name, func(t *testing.T) {
			ink := testInk()
			ink.Old = c.old
			got := draw(ink, c.w, func(b *Block) { b.Bar(c.w, Bar{Value: c.value, Max: 16, Tick: 11, Role: BarFill}) })
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSparkChartSliderRule(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		paint func(*Block)
		want  string
	}{
		"spark":          {func(b *Block) { b.Spark(Trend, 10, []float64{0, 1, 2, 3, 4, 5, 6, 7}, 0, 8) }, "  ▁▂▃▄▅▆▇█          "},
		"spark unknown":  {func(b *Block) { b.Spark(Trend, 4, []float64{nan, 0, nan, 8}, 0, 8) }, " ▁ █                "},
		"spark flat":     {func(b *Block) { b.Spark(Trend, 3, []float64{5, 5, 5}, 0, 0) }, "▁▁▁                 "},
		"spark too long": {func(b *Block) { b.Spark(Trend, 2, []float64{8, 0, 8}, 0, 8) }, "▁█                  "},
		"chart top":      {func(b *Block) { b.Chart(Trend, 3, 0, 2, []float64{4, 12, 16}, 0, 16) }, " ▄█                 "},
		"chart bottom":   {func(b *Block) { b.Chart(Trend, 3, 1, 2, []float64{4, 12, 16}, 0, 16) }, "▄██                 "},
		"slider": {func(b *Block) {
			b.Slider(20, Slider{Lo: 0, Hi: 16, LoText: Lit("0"), HiText: Lit("16"), Now: 1, Staged: 4, HasStaged: true})
		}, "0─●──◆────────────16"},
		"rule":      {func(b *Block) { b.Rule(20, Lit("Decisions")) }, "─ Decisions ────────"},
		"rule long": {func(b *Block) { b.Rule(12, Lit("Decisions of today")) }, "─ Decisio… ─        "},
		"rule bare": {func(b *Block) { b.Rule(5, Text{}) }, "─────               "},
		"left cut":  {func(b *Block) { b.Left(Plain, 6, Lit("conversation")) }, "conve…              "},
		"right":     {func(b *Block) { b.Right(Plain, 6, Int(42)) }, "    42              "},
		"wide cut":  {func(b *Block) { b.Left(Plain, 4, Foreign("会話会")) }, "会…                 "},
		"past end":  {func(b *Block) { b.To(18); b.Put(Plain, Lit("abcdef")) }, "                  a…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := draw(testInk(), 20, c.paint)
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestASCIIKeepsColumns(t *testing.T) {
	paint := func(b *Block) {
		b.Left(Plain, 12, Lit("β 1.00 → 4×"))
		b.Bar(8, Bar{Value: 5, Max: 8, Tick: 4, Role: BarFill})
		b.Left(Plain, 6, Lit("conversation"))
	}
	ink := testInk()
	ink.Glyphs = themes.ASCII()
	if got, want := draw(ink, 26, paint), "b 1.00 > 4x =====|---con..."; len(got) != 26 || !isASCII(got) {
		t.Errorf("got %q, want about %q", got, want)
	}
}

func TestCursorRowFillsItsGround(t *testing.T) {
	b := NewBlock(testInk(), 10)
	b.Begin(Cursor)
	b.Put(Plain, Lit("ab"))
	line := b.Lines(1)[0]
	if strings.Count(line, "48;2;") != 1 || !strings.HasSuffix(line, "        "+themes.Reset) {
		t.Errorf("cursor row %q", line)
	}
}

func TestRowsKeepTheirWidth(t *testing.T) {
	for w := range 60 {
		b := NewBlock(testInk(), w)
		for _, k := range []Row{Normal, Cursor, Stale} {
			b.Begin(k)
			b.Put(Plain, Lit(" ▸ "))
			b.Left(Strong, 12, Foreign("会話\x9b"+strings.Repeat("x", w)))
			b.Bar(17, Bar{Value: 3, Max: 4, Tick: 2, Role: BarHot})
			b.Right(Dim, 7, Full(61204))
			b.Spark(Trend, 8, []float64{1, 2, 3}, 0, 3)
			b.Slider(12, Slider{Hi: 1, LoText: Lit("0"), HiText: Lit("1"), Now: 0.5})
		}
		b.Begin(Normal)
		b.Rule(w, Lit("Title"))
		for i, line := range b.Lines(6) {
			if got := ansi.StringWidth(line); got != w {
				t.Fatalf("line %d is %d cells, want %d: %q", i, got, w, line)
			}
		}
	}
}

// table paints 64 rows of ten columns, as the Ranks view does at its widest.
func table(ink Ink, trend []float64) []string {
	b := NewBlock(ink, 200)
	for i := range 64 {
		k := Normal
		if i == 7 {
			k = Cursor
		}
		b.Begin(k)
		b.Put(Marked, Lit(" ▸ "))
		b.Left(Plain, 7, Foreign("w0/31"))
		b.Left(OK, 8, Lit("ready"))
		b.Bar(24, Bar{Value: float64(i % 17), Max: 16, Tick: 11, Role: BarFill})
		b.Gap(2)
		b.Right(Plain, 7, Int(i))
		b.Right(Plain, 4, Int(i%4))
		b.Right(Strong, 9, Kilo(float64(41000+137*i)))
		b.Right(Plain, 7, PercentShort(0.87))
		b.Right(Plain, 7, Int(100+i))
		b.Gap(3)
		b.Spark(Trend, 36, trend, 0, 61000)
	}
	return b.Lines(64)
}

func BenchmarkTable64x10(b *testing.B) {
	ink, trend := testInk(), make([]float64, 60)
	for i := range trend {
		trend[i] = float64(1000 * i)
	}
	b.ReportAllocs()
	for b.Loop() {
		table(ink, trend)
	}
}
