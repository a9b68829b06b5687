package prefix

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"adpdeck/router/model"
)

func w0(rank int) model.Target { return model.Target{Worker: "w0", Rank: rank} }

func depths(ix *Index, chain []Chain) []int32 {
	var out Matches
	ix.NewMatcher().Match(chain, &out)
	return out.Device
}

// Five million distinct blocks go into a cap of one million: memory stays, what is
// used stays, and looking it up takes no longer.
func TestMillionsIntoACap(t *testing.T) {
	if testing.Short() {
		t.Skip("five million blocks: not with -short")
	}
	const bound = 1_000_000
	before := heap()
	bd := newBed(t, 1, Options{Targets: 8, MaxBlocks: bound})
	id := bd.ids[0]
	hot := bd.fresh(256)
	bd.store(id, hot)
	hotChain := chainLocals(nil, locals(hot))
	m := bd.ix.NewMatcher()
	var out Matches
	full := int64(0)
	var atCap, after []time.Duration
	look := func() (took []time.Duration) {
		for range 4096 {
			began := time.Now()
			m.Match(hotChain, &out)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took
	}
	for stored := 0; stored < 5*bound; stored += 4096 {
		bd.store(id, bd.fresh(4096))
		if m.Match(hotChain, &out); out.Device[id] != 256 {
			t.Fatalf("a prefix that is matched all the time shrank to %d blocks after %d", out.Device[id], stored)
		}
		if full == 0 && stored > bound {
			full, atCap = heap()-before, look()
		}
	}
	after = look()
	t.Logf("a look-up at the cap: p50 %v, p99 %v; four caps later %v, %v", atCap[2048], atCap[4055], after[2048], after[4055])
	if after[2048] > 3*atCap[2048]+time.Microsecond { // the median, which other work does not move much
		t.Errorf("a look-up took %v at the cap, takes %v now", atCap[2048], after[2048])
	}
	if s := bd.ix.Stats(); s.Blocks > bound || s.Evicted < 3*bound || s.Dropped != 0 {
		t.Errorf("holds %+v", s)
	}
	if grown := heap() - before; grown > full*13/10 {
		t.Errorf("%d bytes at the cap, %d after four caps more", full, grown)
	}
	runtime.KeepAlive(bd)
}

func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func TestLeastRecentlyMatchedGoesFirst(t *testing.T) {
	bd := newBed(t, 2, Options{Targets: 8, MaxBlocks: 64})
	var chains [][]Chain
	for range 4 {
		blocks := bd.fresh(16)
		bd.store(bd.ids[0], blocks)
		chains = append(chains, chainLocals(nil, locals(blocks)))
	}
	for _, i := range []int{1, 3, 0} { // 2 was matched longest ago, then 1
		depths(bd.ix, chains[i])
	}
	newest := bd.fresh(16)
	bd.store(bd.ids[1], newest)
	got := []int32{}
	for _, c := range chains {
		got = append(got, depths(bd.ix, c)[0])
	}
	if !slices.Equal(got, []int32{16, 16, 0, 16}) {
		t.Fatalf("left of each chain: %d, want the third gone", got)
	}
	for _, i := range []int{1, 0, 3} {
		depths(bd.ix, chains[i])
	}
	depths(bd.ix, chainLocals(nil, locals(newest)))
	bd.store(bd.ids[1], bd.fresh(8))
	if d := depths(bd.ix, chains[1])[0]; d > 8 {
		t.Errorf("%d blocks left of the second, want its end gone", d)
	}
	if s, _ := bd.ix.TargetStats(bd.ids[0]); s.Evicted < 24 || s.Holes != 0 {
		t.Errorf("figures %+v", s)
	}
}

func TestTargetCap(t *testing.T) {
	for name, opt := range map[string]Options{
		"blocks": {MaxTargetBlocks: 100},
		"bytes":  {MaxTargetBytes: 100 * BytesPerBlock},
	} {
		t.Run(name, func(t *testing.T) {
			bd := newBed(t, 2, opt)
			other := bd.fresh(50)
			bd.store(bd.ids[1], other)
			for range 20 {
				bd.store(bd.ids[0], bd.fresh(30))
			}
			long := bd.fresh(1000)
			bd.store(bd.ids[0], long)
			a, _ := bd.ix.TargetStats(bd.ids[0])
			b, _ := bd.ix.TargetStats(bd.ids[1])
			if a.Blocks[Device] > 100 || a.Blocks[Device] < 50 || a.Evicted == 0 {
				t.Errorf("at its cap it holds %+v", a)
			}
			if b.Blocks[Device] != 50 || b.Evicted != 0 {
				t.Errorf("the other target lost blocks: %+v", b)
			}
		})
	}
}

func TestBytesCap(t *testing.T) {
	const bound = 4 << 20
	bd := newBed(t, 16, Options{Targets: 16, MaxBytes: bound})
	for range 200 {
		blocks := bd.fresh(512)
		for _, id := range bd.ids {
			bd.store(id, blocks)
		}
	}
	s := bd.ix.Stats()
	if s.Bytes > bound*11/10 || s.Evicted == 0 || s.Blocks < 10_000 {
		t.Errorf("holds %+v", s)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	bd := newBed(t, 3, Options{MaxWaiting: 100, MaxWaitingAll: 150})
	late := bd.fresh(1000)
	for i := 1; i < len(late); i++ {
		e := Event{Kind: Stored, HasParent: true, Parent: late[i-1].External, Blocks: late[i : i+1]}
		a, _ := bd.ix.Apply(bd.ids[0], &Batch{Events: []Event{e}})
		if a.Waiting != 1 {
			t.Fatalf("block %d: %+v", i, a)
		}
	}
	s, _ := bd.ix.TargetStats(bd.ids[0])
	if s.Waiting != 100 || s.WaitingDropped != 899 || s.Blocks[Device] != 0 {
		t.Fatalf("figures %+v", s)
	}
	for i := 1; i < 100; i++ {
		e := Event{Kind: Stored, HasParent: true, Parent: late[i-1].External, Blocks: late[i : i+1]}
		_, _ = bd.ix.Apply(bd.ids[1], &Batch{Events: []Event{e}})
	}
	s, _ = bd.ix.TargetStats(bd.ids[0])
	if all := bd.ix.Stats().Waiting; all != 150 || s.Waiting != 51 {
		t.Fatalf("%d wait in all, %d of the first target", all, s.Waiting)
	}
	bd.store(bd.ids[1], late[:1]) // the parent comes
	if d := depths(bd.ix, chainLocals(nil, locals(late)))[bd.ids[1]]; d != 100 {
		t.Errorf("after the parent came %d blocks count, want 100", d)
	}
}

func TestErrors(t *testing.T) {
	for name, opt := range map[string]Options{
		"targets": {Targets: MaxTargets + 1}, "blocks": {MaxBlocks: -1}, "too many": {MaxBlocks: 1 << 30}, "bytes": {MaxBytes: -1},
	} {
		if _, err := New(opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ix, _ := New(Options{Targets: 2})
	id, _ := ix.Add(w0(0))
	if again, err := ix.Add(w0(0)); again != id || err != nil {
		t.Errorf("added again: %d, %v", again, err)
	}
	ap, err := ix.AddApproximate(w0(1), Approximation{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	_, err = ix.Add(w0(2))
	check("full", err, ErrTargets)
	_, err = ix.Add(w0(1))
	check("events of a guessed target", err, ErrApproximate)
	_, err = ix.AddApproximate(w0(0), Approximation{Blocks: 1})
	check("guesses of an event target", err, ErrApproximate)
	_, err = ix.Apply(ap, &Batch{})
	check("apply", err, ErrApproximate)
	check("routed", ix.Routed(id, []Chain{1}, 0), ErrApproximate)
	check("clear", ix.Clear(77), ErrNoTarget)
	check("restart", ix.Restart(77), ErrNoTarget)
	check("drop", ix.Drop(w0(9)), ErrNoTarget)
	_, err = ix.AddApproximate(w0(9), Approximation{})
	check("no rule", err, errRule)
	if _, err = ix.TargetStats(77); !errors.Is(err, ErrNoTarget) {
		t.Error(err)
	}
	if _, err := NewHasher(0, 0); err == nil {
		t.Error("a block of no tokens is taken")
	}
	if _, ok := ix.Lookup(w0(9)); ok {
		t.Error("an unknown target has an ID")
	}
	if got := fmt.Sprint(ix.Targets()); got != "[w0/0 w0/1]" {
		t.Error(got)
	}
}
