package main

import (
	"fmt"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// TestLossyEvents is safety 3.5, 12, over sockets: batches are lost, come twice and
// out of order, at 1, 5 and 20 percent. While what was lost cannot be had, the rank
// is marked as one whose index is in doubt; one replay later it is the engine's
// truth.
func TestLossyEvents(t *testing.T) {
	t.Parallel()
	for _, percent := range []int{1, 5, 20} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			t.Parallel()
			e := fake(t, enginetest.Config{})
			replay := linkTo(t, e.ReplayEndpoint(0))
			w := before(t, func(p *plan) {
				s := &p.serve.Workers[0].Events
				s.RankEndpoints = []string{e.EventEndpoint(0), e.EventEndpoint(1)}
				s.RankReplays = []string{"tcp://" + replay.Addr(), e.ReplayEndpoint(1)}
			}, e)
			w.ready()
			n := 0
			more := func(rank int) {
				t.Helper()
				w.served(ask{path: "/v1/completions", tokens: tokens(n), at: fmt.Sprint("w0/", rank), most: 1})
				n++
			}
			every := 100 / percent
			w.bad(fmt.Sprintf(`{"drop_every": %d, "duplicate_every": %d, "reorder_every": %d}`, every, every+1, every+2))
			for i := range max(60, 2*every+20) {
				more(i % 2)
			}
			w.mended()
			more(0)
			more(1) // whose batches show what was lost before them
			resync := w.until("the index is true", func(*model.State) bool { return w.agrees(0, n) })
			within(t, "resync", resync, 2*time.Second)

			replay.Blackhole(true)
			if err := e.DropBatches(0, 1); err != nil {
				t.Fatal(err)
			}
			more(0) // lost
			more(0) // shows it
			w.until("it is in doubt", func(s *model.State) bool { return indexOf(s, "w0", 0).Feed == model.FeedGap })
			for range 10 {
				more(0) // what comes meanwhile does not hide it
				if row := indexOf(w.h.live.Snapshot(), "w0", 0); row.Feed != model.FeedGap {
					t.Fatalf("in doubt it is shown as %+v", row)
				}
			}
			if row := indexOf(w.h.live.Snapshot(), "w0", 1); row.Feed != model.FeedLive {
				t.Errorf("the other rank: %+v", row)
			}
			replay.Blackhole(false)
			resync = w.until("the index is true again", func(s *model.State) bool {
				return w.agrees(0, n) && indexOf(s, "w0", 0).Feed == model.FeedLive
			})
			within(t, "resync", resync, 2*time.Second)
			w.closed()
		})
	}
}
