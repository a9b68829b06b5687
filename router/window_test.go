package router

import (
	"testing"
	"time"

	"adpdeck/router/model"

	"pgregory.net/rapid"
)

// TestWindowAgainstAList: a window sums what a plain list of all that was
// added sums over the same slices of time.
func TestWindowAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWindow(time.Second, rapid.IntRange(1, 12).Draw(t, "slots"))
		type entry struct{ at, prompt int64 }
		var all []entry
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now += time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond
			if rapid.Bool().Draw(t, "add") {
				s := w.at(now)
				s.count++
				s.prompt += 7
				all = append(all, entry{int64(now / time.Second), 7})
			}
			count, prompt := int64(0), int64(0)
			for _, e := range all {
				if e.at > int64(now/time.Second)-int64(len(w.slots)) {
					count++
					prompt += e.prompt
				}
			}
			if got := w.sum(now); got.count != count || got.prompt != prompt {
				t.Fatalf("at %v: %+v, want %d and %d", now, got, count, prompt)
			}
		}
	})
}

func TestFirstTokenTimesAreBounded(t *testing.T) {
	var f ttfts
	for i := range 2000 {
		f.add(time.Duration(i)*time.Millisecond, float64(i))
	}
	p50, p99 := f.quantiles(2 * time.Second)
	if p50 != 1743 || p99 != 1994 {
		t.Fatalf("%v and %v of the last 512", p50, p99)
	}
	if p50, _ := f.quantiles(time.Hour); p50.Known() {
		t.Fatal("an hour on there is none")
	}
}

// TestClockMayStumble: two readers of the clock may come in the wrong order;
// the router keeps the later time and nothing breaks.
func TestClockMayStumble(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	b.clock.advance(time.Minute)
	b.turn(t, "a", nil)
	b.clock.advance(-time.Hour)
	b.turn(t, "b", nil)
	if c := b.conv(t, "b"); !c.LastAt.Equal(epoch.Add(time.Minute)) {
		t.Fatalf("last at %v", c.LastAt)
	}
}

func TestNewRefuses(t *testing.T) {
	good := func() Config {
		return Config{Clock: &fakeClock{}, Workers: []model.WorkerSpec{{ID: "w0", Ranks: 2}, {ID: "w1", Ranks: 2}}}
	}
	for name, change := range map[string]func(*Config){
		"no clock":       func(c *Config) { c.Clock = nil },
		"no workers":     func(c *Config) { c.Workers = nil },
		"no id":          func(c *Config) { c.Workers[0].ID = "" },
		"no ranks":       func(c *Config) { c.Workers[1].Ranks = 0 },
		"twice":          func(c *Config) { c.Workers[1].ID = "w0" },
		"weight nowhere": func(c *Config) { c.Settings.Weights = []model.Weight{{Target: at("w0", 5), Weight: 1}} },
		"weight of all":  func(c *Config) { c.Settings.Weights = []model.Weight{{Target: at("w0", -1), Weight: 1}} },
		"weight too big": func(c *Config) { c.Settings.Weights = []model.Weight{{Target: at("w0", 1), Weight: 3}} },
		"none eligible": func(c *Config) {
			c.Settings.Weights = []model.Weight{{Target: at("w0", 0)}, {Target: at("w0", 1)}, {Target: at("w1", 0)}, {Target: at("w1", 1)}}
		},
		"none eligible where clients name the worker": func(c *Config) {
			c.Settings.RouterMode = model.ModeDirect
			c.Settings.Weights = []model.Weight{{Target: at("w0", 0)}, {Target: at("w0", 1)}}
		},
		"rules of fields": func(c *Config) {
			c.Settings.AttentionDpConfig.EnableBalance, c.Settings.AttentionDpConfig.TimeoutIters = true, -1
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			change(&cfg)
			if _, err := New(cfg); err == nil {
				t.Fatal("taken")
			} else {
				t.Log(err)
			}
		})
	}
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
}
