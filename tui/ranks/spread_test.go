package ranks

import (
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"adpdeck/tui/fixture"
	"adpdeck/tui/view"
)

func TestSmallChangesLookSmall(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		values []float64
		lo, hi float64
	}{
		"nothing known":  {[]float64{nan, nan}, 0, 1},
		"zeros":          {[]float64{0, 0}, 0, 1},
		"never changes":  {[]float64{100, 100}, 90, 110},
		"changes little": {[]float64{100, nan, 98}, 89, 109},
		"changes much":   {[]float64{10, 40}, 10, 40},
	} {
		t.Run(name, func(t *testing.T) {
			if lo, hi := spread(c.values); lo != c.lo || hi != c.hi {
				t.Errorf("got %v to %v, want %v to %v", lo, hi, c.lo, c.hi)
			}
		})
	}
}

// What never changes must not look like a chart that is full.
func TestAConstantChartLeavesRoomAbove(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 120, 40)
	for range 60 {
		f.Trends.Sample(f.State)
	}
	lines := New().Draw(f, 120, 36)
	top := -1
	for i, l := range lines {
		if strings.Contains(ansi.Strip(l), "tokens, last") {
			top = i + 1
		}
	}
	if top < 0 {
		t.Fatal("no chart")
	}
	if strings.Contains(ansi.Cut(ansi.Strip(lines[top]), 84, 120), "█") {
		t.Errorf("the chart is full: %s", ansi.Strip(lines[top]))
	}
}

func TestALinkThatStandsStillIsNotTriedAgain(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 100, 24)
	f.Lost = &view.Lost{Since: f.State.At, Age: 7e9}
	text := fixture.Text(New().Draw(f, 100, 20))
	for _, want := range []string{"nothing came for 7.0 s, but the connection stands", "waiting · ⏎ connects anew"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "try 0") {
		t.Error("counts tries that were not made")
	}
}

func TestTheSentenceOnSkewIsNeverCut(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	x := gather(f.State)
	for _, room := range []int{8, 14, 20, 40, 80} {
		if got := skewSentence(f.State, &x, room); got.Width() > max(room, 10) {
			t.Errorf("%q in %d cells", got, room)
		}
	}
}
