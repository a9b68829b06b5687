package router

import (
	"testing"

	"adpdeck/router/model"
)

// TestAChangedCapacityReachesTheGuesses: the rule that forgets what was routed
// longest ago goes by the capacity that a worker has now, also where its events
// are not believed, and what still has room stays.
func TestAChangedCapacityReachesTheGuesses(t *testing.T) {
	for name, events := range map[string]bool{"no events": false, "events not used": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 0, 0, model.PolicyDefault, room(4),
				inMode(model.ModeKV, fieldValue("router_approximate_cache_policy", "lru"), fieldValue("router_kv_events", "false")))
			capacity := func(blocks int) {
				b.join(t, spec("w0", 1, func(s *model.WorkerSpec) { s.KVEvents, s.KVBlocks = events, blocks }))
			}
			send := func(blocks ...uint32) {
				id, _ := b.routed(t, "", of(prompt(blocks...)))
				b.Done(id, model.OutcomeOK)
			}
			check := func(want int) {
				t.Helper()
				if row := indexOf(t, b, at("w0", 0)); row.Device != want {
					t.Fatalf("credited with %d blocks, want %d", row.Device, want)
				}
			}
			capacity(6)
			send(1, 2, 3, 4)
			send(5, 6)
			check(6)
			capacity(4) // the oldest go, from the end
			check(4)
			send(7)
			check(4)
			capacity(8)
			check(4)
			send(10, 11, 12, 13)
			check(8)
			send(14)
			check(8)
		})
	}
}
