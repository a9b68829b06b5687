package tui

import (
	"testing"

	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/convs"
	"adpdeck/tui/decisions"
	"adpdeck/tui/events"
	"adpdeck/tui/fixture"
	"adpdeck/tui/index"
	"adpdeck/tui/layout"
	"adpdeck/tui/ranks"
	"adpdeck/tui/tuning"
	"adpdeck/tui/view"
	"adpdeck/tui/workers"
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

// Four thousand decisions are kept, and 412 a second come in at four frames.
func BenchmarkDecisions(b *testing.B) {
	for name, fresh := range map[string]bool{"fresh": true, "cursor": false} {
		b.Run(name, func(b *testing.B) {
			f := fixture.Frame(fixture.KV(), 200, 60)
			some := f.Decisions
			all := make([]*model.Decision, 0, 200_000)
			for i := range cap(all) {
				d := *some[i%len(some)]
				d.ID = uint64(i + 1)
				all = append(all, &d)
			}
			f.Decisions = all[:4096]
			v := decisions.New()
			v.Draw(f, 200, 56)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if fresh {
					at := 100 * (i % 1900)
					f.Decisions = all[at : at+4096]
					f.Rev++
				} else if i%2 == 0 {
					v.Do(f, command.Down)
				} else {
					v.Do(f, command.Up)
				}
				v.Draw(f, 200, 56)
				v.Status(f)
			}
		})
	}
}

func BenchmarkIndex64(b *testing.B) {
	s := fixture.KV()
	for i := len(s.Index); i < 64; i++ {
		x := s.Index[i%16]
		x.Target = fixture.T("w9", i)
		s.Index = append(s.Index, x)
	}
	for name, fresh := range map[string]bool{"fresh": true, "cursor": false} {
		b.Run(name, func(b *testing.B) { benchDraw(b, index.New(), fixture.Frame(s, 200, 60), fresh) })
	}
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

// As many events as a state carries, as many workers as ranks.
func BenchmarkEvents256(b *testing.B) {
	for name, fresh := range map[string]bool{"fresh": true, "cursor": false} {
		b.Run(name, func(b *testing.B) { benchDraw(b, events.New(), fixture.Frame(fixture.WideFleet(64), 200, 60), fresh) })
	}
}

func BenchmarkWorkers64(b *testing.B) {
	for name, fresh := range map[string]bool{"fresh": true, "cursor": false} {
		b.Run(name, func(b *testing.B) { benchDraw(b, workers.New(), fixture.Frame(fixture.WideFleet(64), 200, 60), fresh) })
	}
}
