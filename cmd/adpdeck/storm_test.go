package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/sim"
)

// storm sends random commands of every kind, sensible or not, into a running
// cluster and returns a digest of all that was decided and answered.
func storm(t *testing.T, flags clusterFlags, seed uint64) uint64 {
	t.Helper()
	const convs, turns = 24, 20
	flags.seed = seed
	cfg := sim.DefaultConfig()
	cl, err := flags.build(&chats{convs: convs, turns: turns}, cfg, cfg.Start, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	digest := fnv.New64a()
	write := func(v any) {
		if err := json.NewEncoder(digest).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	last := uint64(0)
	for at, n := time.Duration(0), 0; at < turns*time.Second; n++ {
		at += time.Duration(rng.IntN(120)) * time.Millisecond
		if _, err := cl.sim.Advance(at, 0); err != nil {
			t.Fatalf("at %s: %v", at, err)
		}
		cl.sim.Feed()
		rank := model.Target{Worker: fmt.Sprintf("w%d", rng.IntN(flags.workers)), Rank: rng.IntN(flags.ranks)}
		cmd := randomCommand(rng, rank, cl.live.Snapshot().Version, convs)
		cmd.ID = fmt.Sprint(n)
		write(cl.live.Apply(cmd))
		s := cl.live.Snapshot()
		checkBooks(t, s)
		for _, d := range cl.live.Decisions(last+1, 1<<20) {
			d.TookNs = 0
			write(d)
			last = d.ID
		}
	}
	for _, r := range cl.live.Snapshot().Ranks {
		cl.live.Apply(model.Command{ID: "ready " + r.Target.String(), Verb: model.VerbReady, Target: &r.Target})
		cl.live.Apply(model.Command{ID: "weight " + r.Target.String(), Verb: model.VerbSet, Set: []model.FieldValue{{Field: model.FieldWeight, Target: &r.Target, Value: "1"}}})
	}
	cl.live.Apply(model.Command{ID: "calm", Verb: model.VerbSet, Set: []model.FieldValue{{Field: model.FieldFairShareMultiplier, Value: "2"}}})
	if _, err := cl.sim.Advance(time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	s := cl.live.Snapshot()
	checkBooks(t, s)
	if !cl.sim.Done() || s.Totals.Open != 0 {
		t.Errorf("seed %d: %d requests never ended", seed, s.Totals.Open)
	}
	return digest.Sum64()
}

func randomCommand(rng *rand.Rand, rank model.Target, version uint64, convs int) model.Command {
	verbs := []model.Verb{"pin", "unpin", "evict", "migrate", "drain", "ready", "ready", "undo", "set", "set", "set"}
	cmd := model.Command{Verb: verbs[rng.IntN(len(verbs))]}
	switch cmd.Verb {
	case model.VerbSet:
		cmd.Set = []model.FieldValue{randomSetting(rng, rank)}
	case model.VerbUndo:
		cmd.Undo = uint64(rng.IntN(1 + int(version)))
	case model.VerbMigrate:
		if rng.IntN(2) == 0 {
			cmd.Target = &rank
		}
	default:
		cmd.Target = &rank
	}
	for range rng.IntN(5) {
		cmd.Convs = append(cmd.Convs, chat(rng.IntN(convs)))
	}
	return cmd
}

func randomSetting(rng *rand.Rand, rank model.Target) model.FieldValue {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	switch rng.IntN(6) {
	case 0:
		return model.FieldValue{Field: model.FieldPolicy, Value: pick("default", "kv_aware", "conversation")}
	case 1, 2:
		return model.FieldValue{Field: model.FieldWeight, Target: &rank, Value: pick("0", "0.1", "0.5", "1", "2")}
	case 3:
		return model.FieldValue{Field: model.FieldMaxSessions, Value: pick("1", "2", "100")}
	case 4:
		return model.FieldValue{Field: model.FieldEnableBalance, Value: pick("true", "false")}
	}
	fields := model.Fields()
	return model.FieldValue{Field: fields[rng.IntN(len(fields))].Name, Value: pick("0", "1", "0.5", "true", "round_robin", "least_tokens", "least_loaded", "nonsense")}
}

// checkBooks: no request is lost or counted twice, and no rank has more than
// its cap.
func checkBooks(t *testing.T, s *model.State) {
	t.Helper()
	open := 0
	for _, c := range s.Convs {
		open += c.Open
	}
	held := 0
	for _, r := range s.Ranks {
		held += r.InFlight
		if r.InFlight > r.MaxActive {
			t.Fatalf("%s has %d requests, its cap is %d", r.Target, r.InFlight, r.MaxActive)
		}
	}
	if open != s.Totals.Open || held > open {
		t.Fatalf("%d requests are open, conversations have %d, ranks %d", s.Totals.Open, open, held)
	}
}

// TestStorm: whatever an operator does, in clusters of any shape, nothing is
// lost, no cap is broken, all ends, and the same seed gives the same run.
func TestStorm(t *testing.T) {
	for name, flags := range map[string]clusterFlags{
		"two by four":   {workers: 2, ranks: 4},
		"one rank":      {workers: 1, ranks: 1},
		"ranks of one":  {workers: 6, ranks: 1, maxActive: 1},
		"hard cap 1":    {workers: 2, ranks: 3, maxActive: 1},
		"tiny caches":   {workers: 2, ranks: 2, maxActive: 3, blocks: 60},
		"conversations": {workers: 3, ranks: 5, maxActive: 2, policy: "conversation"},
		"many ranks":    {workers: 1, ranks: 512, maxActive: 2, blocks: 40},
	} {
		t.Run(name, func(t *testing.T) {
			seeds := 3
			if flags.ranks > 100 {
				seeds = 1
			}
			for seed := range seeds {
				if a, b := storm(t, flags, uint64(seed)), storm(t, flags, uint64(seed)); a != b {
					t.Errorf("seed %d: two runs differ", seed)
				}
			}
		})
	}
}
