package router

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
)

func reports(running ...float64) (out []model.RankReport) {
	for k, n := range running {
		r := model.RankReport{
			Rank: k, Running: model.Maybe(n), Waiting: model.Maybe(0), Tokens: model.Unknown(), PendingTokens: model.Unknown(),
			KVUsedBlocks: model.Unknown(), KVTotalBlocks: model.Unknown(), CacheHit: model.Unknown(),
		}
		out = append(out, r)
	}
	return out
}

// TestStaleFiguresOverwriteNothing: 1,000 bursts of 64 equal requests over 2 to
// 16 ranks; figures older than the burst arrive after the 10th, saying of every
// rank something else. The split stays within one of even.
func TestStaleFiguresOverwriteNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	modes := []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModeLeastLoaded}
	bursts := 1000
	if testing.Short() {
		bursts = 200
	}
	benches := map[string]*bench{}
	for i := range bursts {
		ranks, mode := 2+i%15, modes[i/15%len(modes)]
		name := fmt.Sprint(mode, ranks)
		b := benches[name]
		if b == nil {
			b = newBench(t, 1, ranks, model.PolicyDefault, inMode(mode, fieldValue(noAffinity, "none")), func(c *Config) {
				c.Workers[0].MaxNumActiveRequests, c.Record = 64, false
			})
			benches[name] = b
		}
		b.clock.advance(time.Minute)
		before := b.clock.Now().Add(-time.Duration(rng.IntN(1000)) * time.Millisecond)
		stale := reports(make([]float64, ranks)...)
		for k := range stale {
			stale[k].Running = model.Maybe(rng.IntN(64))
			if i%2 == 0 {
				stale[k].PendingTokens = 0 // it knows nothing of the burst
			}
		}
		var open []int64
		for n := range 64 {
			if n == 10 {
				b.Observe("w0", before, stale)
			}
			id, _ := b.routed(t, "")
			open = append(open, id)
			b.clock.advance(time.Microsecond)
		}
		low, high := math.MaxInt, 0
		for k := range ranks {
			n := b.book.Rank(0, k).InFlight
			low, high = min(low, n), max(high, n)
		}
		if high-low > 1 {
			t.Fatalf("%s, burst %d: from %d to %d on a rank", name, i, low, high)
		}
		for _, id := range open {
			b.FirstToken(id, model.Usage{Ran: model.Target{Rank: model.NoRank}})
			b.Done(id, model.OutcomeOK)
		}
	}
}

// TestObserve: what an engine says is shown with its age; a rank or figure that it
// does not name is unknown, not 0; an older snapshot comes too late.
func TestObserve(t *testing.T) {
	b := newBench(t, 1, 3, model.PolicyDefault, withBlocks)
	ranks := func() []model.Rank { return b.Snapshot().Ranks }
	b.routed(t, "", asks(at("w0", 0)))
	b.clock.advance(time.Minute)
	taken := b.clock.Now()
	in := reports(5, 27)
	in[0].KVUsedBlocks, in[0].KVTotalBlocks, in[0].Waiting, in[0].PendingTokens = 30, 64, 3, 900
	in[1].Waiting, in[1].Tokens, in[1].KVUsedBlocks = model.Unknown(), -1, model.Maybe(math.Inf(1))
	in = append(in, model.RankReport{Rank: 1, Running: 99}, model.RankReport{Rank: 7, Running: 1}) // a double, and nobody
	b.Observe("w0", taken, in)
	r := ranks()
	if r[0].Active != 5 || r[0].Queued != 3 || r[0].PendingTokens != 900 || r[0].KVUsedBlocks != 30 || !r[0].ReportedAt.Equal(taken) || r[0].Tokens != 100 || r[0].InFlight != 1 {
		t.Fatalf("%+v", r[0])
	}
	if r[1].Active != 27 || !r[1].QueuedUnknown || r[1].Queued != 0 || r[1].Tokens != 0 || r[1].KVTotalBlocks != 0 {
		t.Fatalf("%+v", r[1])
	}
	if !r[2].ReportedAt.IsZero() {
		t.Fatalf("a rank that was not named is known: %+v", r[2])
	}
	b.Observe("w0", taken.Add(-time.Second), reports(1, 1, 1))
	if diff := cmp.Diff(r, ranks(), equal); diff != "" {
		t.Fatal(diff)
	}
	b.clock.advance(time.Second)
	b.Observe("w0", b.clock.Now().Add(time.Hour), reports(1, 1, 1)[1:]) // from the future: now
	r = ranks()
	if !r[0].ReportedAt.IsZero() || r[0].Active != 0 || r[0].InFlight != 1 || !r[2].ReportedAt.Equal(b.clock.Now()) {
		t.Fatalf("%+v", r)
	}
	b.Observe("w9", b.clock.Now(), nil)
	b.Unobserved("w9", "")
}

// TestFeeds: requests, metrics and KV events of a worker, each with its state and
// age.
func TestFeeds(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks)
	e := newEngine(b, 0)
	states := func(want ...model.IndexFeed) []model.WorkerFeed {
		t.Helper()
		feeds := b.Snapshot().Workers[0].Feeds
		for i, f := range feeds {
			if f.Name != []string{model.FeedRequests, model.FeedMetrics, model.FeedKVEvents}[i] || f.State != want[i] {
				t.Fatalf("%+v, want %v", feeds, want)
			}
		}
		return feeds
	}
	states(model.FeedNone, model.FeedNone, model.FeedNone)
	e.turn(t, "", prompt(1), asks(at("w0", 0)))
	b.Observe("w0", b.clock.Now(), reports(0, 0))
	if f := states(model.FeedLive, model.FeedLive, model.FeedNone); !f[0].At.Equal(epoch) || !f[1].At.Equal(epoch) {
		t.Fatalf("%+v", f)
	}
	e.turn(t, "", prompt(2), asks(at("w0", 1)))
	states(model.FeedLive, model.FeedLive, model.FeedLive)
	b.clock.advance(metricsStale + time.Second)
	states(model.FeedLive, model.FeedStale, model.FeedLive)
	b.Observe("w0", b.clock.Now(), reports(0, 0))
	b.Unobserved("w0", "HTTP 503")
	if f := states(model.FeedLive, model.FeedStale, model.FeedLive); f[1].Why != "HTTP 503" {
		t.Fatalf("%+v", f)
	}
	b.clock.advance(time.Second)
	b.Observe("w0", b.clock.Now(), reports(0, 0))
	if f := states(model.FeedLive, model.FeedLive, model.FeedLive); f[1].Why != "" {
		t.Fatalf("%+v", f)
	}
	b.live(t, at("w0", model.NoRank), false)
	if f := states(model.FeedStale, model.FeedLive, model.FeedStale); f[0].Why != "connection refused" {
		t.Fatalf("%+v", f)
	}
	if r := b.Snapshot().Ranks; !r[0].Down || !r[1].Down {
		t.Fatalf("%+v", r)
	}
	if w := b.Snapshot().Workers[0]; w.TTFTMsP50 != 5 || w.TTFTMsP99 != 5 || w.MaxActive != 8 || w.KVBlocks != 64 || w.BlockTokens != blockTokens {
		t.Fatalf("%+v", w)
	}
}

// TestUnknownCache: an engine that does not report what it found counts neither
// as a hit nor as a miss.
func TestUnknownCache(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	id, got := b.routed(t, "a", of(prompt(1, 2)))
	b.FirstToken(id, model.Usage{Ran: got, CachedUnknown: true, TTFTMs: 4})
	b.Done(id, model.OutcomeOK)
	s := b.Snapshot()
	if s.Totals.Hit.Known() || s.Ranks[0].Hit.Known() || s.Index[0].Agreed.Known() || !s.Convs[0].CachedUnknown {
		t.Fatalf("%+v", s.Totals)
	}
	b.clock.advance(31 * time.Second)
	if s := b.Snapshot(); len(s.Findings) != 0 {
		t.Fatalf("nobody knows whether it should have spoken: %+v", s.Findings)
	}
}

// TestFiguresThatComeNoMore: what an engine said last is shown with its age, but
// once it is stale no rank is avoided for it.
func TestFiguresThatComeNoMore(t *testing.T) {
	for name, silence := range map[string]func(b *bench){
		"the worker's": func(b *bench) {
			b.Unobserved("w0", "connection refused")
			if b.steer.tier.Load().Pending(b.workers[0].slots[0]) == 0 {
				t.Error("forgotten at once")
			}
			b.clock.advance(2 * metricsStale)
			b.Unobserved("w0", "connection refused")
		},
		"one rank's": func(b *bench) {
			b.clock.advance(time.Second)
			b.Observe("w0", b.clock.Now(), reports(0, 0)[1:])
		},
		"some figures": func(b *bench) {
			b.clock.advance(time.Second)
			b.Observe("w0", b.clock.Now(), reports(0, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, 2, model.PolicyDefault, withBlocks,
				inMode(model.ModeLockstep, fieldValue(noAffinity, "none"), fieldValue("active_decode_blocks_threshold", "0.5")))
			b.clock.advance(time.Second)
			in := reports(0, 0)
			for k := range in {
				in[k].KVUsedBlocks, in[k].KVTotalBlocks, in[k].PendingTokens = 1, 64, 0
			}
			in[0].KVUsedBlocks, in[0].PendingTokens = 60, 1<<20
			b.Observe("w0", b.clock.Now(), in)
			to := func() (ranks [2]int) {
				for range 4 {
					id, got := b.routed(t, "")
					b.FirstToken(id, model.Usage{Ran: got})
					b.Done(id, model.OutcomeOK)
					ranks[got.Rank]++
				}
				return ranks
			}
			if got := to(); got != [2]int{0, 4} {
				t.Fatalf("before: %v", got)
			}
			silence(b)
			if got := to(); got[0] == 0 {
				t.Fatalf("after: %v", got)
			}
		})
	}
}

// TestWorstFeed: a worker shows the feed of its worst rank, in each state.
func TestWorstFeed(t *testing.T) {
	order := []model.IndexFeed{model.FeedLive, model.FeedApproximate, model.FeedNone, model.FeedSilent, model.FeedDoubt, model.FeedGap}
	for i, better := range order {
		for _, worse := range order[i:] {
			g := &gathered{}
			for k, f := range []model.IndexFeed{better, worse, better} {
				g.ranks = append(g.ranks, model.IndexRank{Target: model.Target{Worker: "w", Rank: k}, Feed: f})
			}
			if got, ok := g.worst("w"); !ok || got.Feed != worse {
				t.Errorf("of %s and %s the worst is shown as %s", better, worse, got.Feed)
			}
		}
	}
}

// TestSourceOfFigures is said with the feed, and gives way to what keeps figures
// from coming.
func TestSourceOfFigures(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault)
	why := func() string {
		for _, f := range b.Snapshot().Workers[0].Feeds {
			if f.Name == model.FeedMetrics {
				return f.Why
			}
		}
		return "no feed"
	}
	b.LoadsFrom("w0", "published: steps")
	b.LoadsFrom("w9", "nobody")
	b.Observe("w0", b.clock.Now(), reports(1))
	if got := why(); got != "published: steps" {
		t.Error(got)
	}
	b.Unobserved("w0", "no loads have been published for 8s")
	if got := why(); got != "no loads have been published for 8s" {
		t.Error(got)
	}
	b.LoadsFrom("w0", "")
	b.Observe("w0", b.clock.Now().Add(time.Second), nil)
	b.clock.advance(time.Second)
	b.Observe("w0", b.clock.Now(), reports(1))
	if got := why(); got != "" {
		t.Error(got)
	}
}
