package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"adpdeck/router/model"
)

// traffic drives a router with random requests, their progress and end.
type traffic struct {
	r    *Router
	rng  *rand.Rand
	now  time.Duration
	open []int64
	next int64
	c    Choice
	err  error
	// real lists the slots that a choice may fall on, in the order in which
	// random matches are dealt.
	real []int32
}

func random(t *testing.T, mode model.RouterMode, cfg Config, seed uint64) *traffic {
	r := fleet(t, mode, cfg, 3, 4)
	k := &traffic{r: r, rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range r.slots {
		k.real = append(k.real, int32(i))
	}
	return k
}

func (k *traffic) turn(t *testing.T, rec *model.Selection) {
	t.Helper()
	k.now += time.Duration(k.rng.IntN(50)) * time.Millisecond
	k.next++
	blocks := chain(uint64(k.rng.IntN(6)), 64)[:1+k.rng.IntN(64)]
	m := Matches{
		Device: make([]int32, k.r.Slots()), Host: make([]int32, k.r.Slots()),
		Shared: []Span{{k.rng.IntN(4), 4 + k.rng.IntN(8)}},
	}
	for _, s := range k.real {
		m.Device[s] = int32(k.rng.IntN(len(blocks) + 1))
		m.Host[s] = int32(k.rng.IntN(len(blocks) + 1 - int(m.Device[s])))
	}
	req := Request{ID: k.next, PromptTokens: 16*len(blocks) + k.rng.IntN(16), Blocks: blocks, Matches: m, ExpectedOutput: 200}
	if k.err = k.r.Choose(k.now, &req, &k.c, rec); k.err == nil {
		if err := k.r.Book(k.now, &req, &k.c); err != nil {
			t.Fatal(err)
		}
		k.open = append(k.open, k.next)
	}
	for range k.rng.IntN(3) {
		k.event()
	}
}

func (k *traffic) event() {
	if len(k.open) == 0 {
		return
	}
	i := k.rng.IntN(len(k.open))
	id := k.open[i]
	switch k.rng.IntN(4) {
	case 0:
		k.r.FirstToken(k.now, id)
	case 1:
		k.r.Output(k.now, id, k.rng.IntN(200))
	case 2:
		k.r.Free(k.now, id)
		k.open[i] = k.open[len(k.open)-1]
		k.open = k.open[:len(k.open)-1]
	default:
		s := k.real[k.rng.IntN(len(k.real))]
		k.r.load.ReportPending(s, k.rng.IntN(3000), k.now-20*time.Millisecond)
	}
}

// Adding any number of targets that cannot be chosen changes nothing: not the
// choice, not the cost, not the draw, in any mode, under any threshold.
func TestIneligibleTargetsChangeNothing(t *testing.T) {
	modes := []model.RouterMode{
		model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModeRandom, model.ModeLeastLoaded, model.ModePowerOfTwo,
	}
	for seed := range uint64(40) {
		mode := modes[seed%uint64(len(modes))]
		cfg := model.DefaultClusterConfig()
		cfg.KVOverlapScoreCreditDecay, cfg.TrackOutputBlocks = 1, true
		if seed%3 == 0 {
			cfg.Temperature = 0.3
		}
		threshold, share := 4000, 0.05
		cfg.ActivePrefillTokensThreshold, cfg.ActiveDecodeBlocksThreshold = &threshold, &share
		plain, more := random(t, mode, cfg, seed), crowded(t, mode, cfg, seed)
		for i := range 150 {
			plain.turn(t, nil)
			more.turn(t, nil)
			a, b := &plain.c, &more.c
			if errors.Is(plain.err, ErrOverloaded) && errors.Is(more.err, ErrOverloaded) {
				continue
			}
			if plain.err != nil || more.err != nil || a.Target != b.Target || a.Cost != b.Cost || a.Margin != b.Margin || a.Tied != b.Tied || a.Eligible != b.Eligible || a.CachedTokens != b.CachedTokens {
				t.Fatalf("%s, seed %d, turn %d:\n%+v %v\n%+v %v", mode, seed, i, *a, plain.err, *b, more.err)
			}
		}
	}
}

// crowded is random with targets added that cannot be chosen: whole workers
// before and after, and further ranks of the workers themselves, all of them
// loaded in their own way.
func crowded(t *testing.T, mode model.RouterMode, cfg Config, seed uint64) *traffic {
	t.Helper()
	r, err := New(mode, cfg, Options{BlockTokens: 16, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	k := &traffic{r: r, rng: rand.New(rand.NewPCG(seed, 1))}
	extra := rand.New(rand.NewPCG(seed, 2))
	id := int64(-1)
	spoil := func(target model.Target) {
		s, ok := r.Slot(target)
		if !ok {
			t.Fatal(target)
		}
		for range extra.IntN(5) {
			b := Booking{ID: id, Slot: s, PromptTokens: 4000, PrefillTokens: extra.IntN(4000), Blocks: chain(uint64(extra.IntN(6)), 60)}
			if err := r.load.Book(0, &b); err != nil {
				t.Fatal(err)
			}
			id--
		}
		switch extra.IntN(4) {
		case 0:
			r.SetDraining(target, true)
		case 1:
			r.SetBlocked(target, true)
		case 2:
			r.SetWeight(target, 0)
		default:
			r.SetCapacity(target, Capacity{MaxRequests: 1, MaxBatchedTokens: 8192, KVBlocks: 20000})
			b := Booking{ID: id, Slot: s, PromptTokens: 50, PrefillTokens: 50}
			if err := r.load.Book(0, &b); err != nil {
				t.Fatal(err)
			}
			id--
		}
	}
	add := func(name string, ranks int) {
		if _, err := r.AddWorker(Worker{ID: name, Ranks: ranks, KVBlocks: 20000, MaxBatchedTokens: 8192}); err != nil {
			t.Fatal(err)
		}
	}
	for w := range 3 {
		for range extra.IntN(3) {
			name := fmt.Sprintf("x%d", extra.Uint64())
			add(name, 2)
			spoil(model.Target{Worker: name})
			spoil(model.Target{Worker: name, Rank: 1})
		}
		name := fmt.Sprintf("w%d", w)
		more := extra.IntN(4)
		add(name, 4+more)
		for q := range 4 + more {
			target := model.Target{Worker: name, Rank: q}
			if q >= 4 {
				spoil(target)
				continue
			}
			s, _ := r.Slot(target)
			k.real = append(k.real, s)
		}
	}
	return k
}
