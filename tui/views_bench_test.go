package tui

import (
	"testing"

	"adpdeck/tui/command"
	"adpdeck/tui/convs"
	"adpdeck/tui/fixture"
	"adpdeck/tui/layout"
	"adpdeck/tui/ranks"
	"adpdeck/tui/tuning"
	"adpdeck/tui/view"
)

// benchDraw draws v with figures that are new (every frame) or the same (only
// the cursor moves).
func benchDraw(b *testing.B, v view.View, f *view.Frame, fresh bool) {
	s := layout.Divide(f.ScreenW, f.ScreenH)
	v.Draw(f, s.Body.W, s.Body.H)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if fresh {
			f.Rev++
		} else if i%2 == 0 {
			v.Do(f, command.Down)
		} else {
			v.Do(f, command.Up)
		}
		v.Draw(f, s.Body.W, s.Body.H)
		v.Status(f)
	}
}

func BenchmarkRanks64(b *testing.B) {
	for name, fresh := range map[string]bool{"fresh": true, "cursor": false} {
		b.Run(name, func(b *testing.B) { benchDraw(b, ranks.New(), fixture.Frame(fixture.Wide(64), 200, 60), fresh) })
	}
}

func BenchmarkTuning(b *testing.B) {
	benchDraw(b, tuning.New(), fixture.Frame(fixture.Wide(64), 200, 60), true)
}

func BenchmarkConvs10000(b *testing.B) {
	for name, fresh := range map[string]bool{"fresh": true, "cursor": false} {
		b.Run(name, func(b *testing.B) {
			v := convs.New()
			v.SetFilter("conv rank:w0/3 | turns>5")
			benchDraw(b, v, fixture.Frame(fixture.Many(10_000), 200, 60), fresh)
		})
	}
}

// Typing one more letter of a filter over 10,000 conversations.
func BenchmarkConvsFilterKey(b *testing.B) {
	f := fixture.Frame(fixture.Many(10_000), 120, 40)
	v := convs.New()
	v.Draw(f, 120, 36)
	v.Do(f, command.Filter)
	for i := 0; b.Loop(); i++ {
		k := view.Key{Name: "c", Runes: []rune{'c'}}
		if i%2 == 1 {
			k = view.Key{Name: "backspace"}
		}
		v.Key(f, k)
		v.Draw(f, 120, 36)
	}
}
