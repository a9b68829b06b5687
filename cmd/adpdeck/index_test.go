package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"adpdeck/router"
	"adpdeck/router/model"
	"adpdeck/router/sim"
	"adpdeck/router/trace"
)

// witness stands between a simulator and a live router, and holds what the
// router predicted of each request against what the engine found.
type witness struct {
	*router.Router
	next           uint64
	predicted      map[int64]model.ScoredTarget
	settled, equal int
	off            int // tokens that the predictions were wrong by, in all
}

// FirstToken compares. The newest decisions are read first, since a request may
// have its first token in the step that placed it.
func (w *witness) FirstToken(id int64, u model.Usage) {
	for _, d := range w.Decisions(w.next, model.MaxDecisions) {
		w.next = d.ID + 1
		if d.Selection == nil {
			continue
		}
		for _, c := range d.Selection.Candidates {
			if c.Target == d.Selection.Chosen {
				w.predicted[d.Selection.Request] = c
			}
		}
	}
	if c, ok := w.predicted[id]; ok && c.Target == u.Ran {
		w.settled++
		if c.CachedTokens == u.CachedTokens {
			w.equal++
		}
		w.off += max(c.CachedTokens-u.CachedTokens, u.CachedTokens-c.CachedTokens)
		delete(w.predicted, id)
	}
	w.Router.FirstToken(id, u)
}

// TestPredictedMatchesAreReal plays the Mooncake trace, or invented traffic
// where it is not at hand, in the modes that choose by the index: what the
// router says a rank holds is what the engine finds there, for 99 of 100
// requests, and at the end the index knows of exactly the blocks in the caches.
func TestPredictedMatchesAreReal(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a whole trace twice")
	}
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		t.Run(string(mode), func(t *testing.T) {
			flags := &clusterFlags{workers: 2, ranks: 4, seed: 1, mode: string(mode)}
			cfg := sim.ReplayConfig()
			var traffic sim.Traffic
			path := filepath.Join("..", "..", "..", "shared", "traces", "mooncake_conversation_trace.jsonl")
			if _, err := os.Stat(path); err == nil {
				tr, err := trace.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				traffic, cfg.BlockTokens = tr.Play(), tr.BlockTokens
			} else {
				t.Log("the Mooncake trace is not beside this tree: invented traffic stands in")
				traffic = invented(t, 6000)
			}
			cl, err := flags.build(traffic, cfg, cfg.Start, 1, true)
			if err != nil {
				t.Fatal(err)
			}
			w := &witness{Router: cl.live, predicted: map[int64]model.ScoredTarget{}}
			cl.sim.Use(w)
			if err := cl.sim.Run(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			r := cl.sim.Report(0)
			share := float64(w.equal) / float64(w.settled)
			t.Logf("%d of %d matches as predicted, %.4f; %d tokens off in all; the router says %.4f", w.equal, w.settled, share, w.off, r.Index.Agreed)
			if int64(w.settled) != r.Requests || share < .99 || r.Index.Agreed < .99 {
				t.Errorf("%d of %d requests compared, %.4f as predicted, %.4f by the router's own count", w.settled, r.Requests, share, r.Index.Agreed)
			}
			held := 0
			for _, x := range cl.live.Snapshot().Index {
				if x.Feed != model.FeedLive || x.Gaps > 0 || x.Refused > 0 || x.Waiting > 0 || x.Holes > 0 {
					t.Errorf("the index of %s: %+v", x.Target, x)
				}
				held += x.Device
			}
			if in := cl.sim.Resident(); in != held {
				t.Errorf("the index says %d blocks are held, the caches hold %d", held, in)
			}
		})
	}
}

// TestTrackedOutputActs: with router_track_output_blocks the answers that the
// simulated engines generate change the cost, and with it where requests go. The
// requests say how long their answers will be, so that what is left of one
// weighs ever less.
func TestTrackedOutputActs(t *testing.T) {
	blocks, places := map[string]float64{}, map[string][]model.Target{}
	for _, tracked := range []string{"false", "true"} {
		cfg := sim.ReplayConfig()
		cl, err := (&clusterFlags{workers: 2, ranks: 4, seed: 1, mode: string(model.ModeKV)}).build(invented(t, 800), cfg, cfg.Start, 8, true)
		if err != nil {
			t.Fatal(err)
		}
		r := cl.live.Apply(model.Command{ID: "a", Verb: model.VerbSet, Set: []model.FieldValue{{Field: "router_track_output_blocks", Value: tracked}}})
		if !r.Accepted && tracked == "true" {
			t.Fatal(r.Refusal)
		}
		if err := cl.sim.Run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		for _, d := range cl.live.Decisions(0, model.MaxDecisions) {
			if d.Selection == nil {
				t.Fatal("a decision without its costs")
			}
			for i := range d.Selection.Candidates {
				blocks[tracked] += d.Selection.Candidates[i].DecodeBlocks
			}
			places[tracked] = append(places[tracked], d.Target)
		}
	}
	if blocks["true"] > .99*blocks["false"] || blocks["true"] == 0 || slices.Equal(places["true"], places["false"]) {
		t.Errorf("blocks in the costs: %.0f with tracking, %.0f without", blocks["true"], blocks["false"])
	}
}

// invented is a finite piece of the generator's traffic.
func invented(t *testing.T, rows int) sim.Traffic {
	t.Helper()
	g, err := trace.NewGenerator(trace.DefaultGenerator())
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace.Trace{Rows: make([]trace.Row, rows)}
	for i := range tr.Rows {
		g.Next(&tr.Rows[i])
	}
	return tr.Play()
}

// TestConsoleClusterPublishes lets the console's own cluster run: whatever the
// mode, its ranks publish what they hold and the router can read all of it.
func TestConsoleClusterPublishes(t *testing.T) {
	d := newDeck(t, "kv_aware", &chats{convs: 30, turns: 8})
	d.advance(12 * time.Second)
	s := d.cl.live.Snapshot()
	if len(s.Index) != 8 || s.IndexTotals == nil || s.IndexTotals.Blocks == 0 {
		t.Fatalf("the index has %d ranks: %+v", len(s.Index), s.IndexTotals)
	}
	held := 0
	for _, x := range s.Index {
		if x.Refused > 0 || x.Device > 0 && x.Feed != model.FeedLive {
			t.Errorf("%s: %+v", x.Target, x)
		}
		held += x.Device
	}
	if in := d.cl.sim.Resident(); in != held {
		t.Errorf("the index says %d blocks are held, the caches hold %d", held, in)
	}
}
