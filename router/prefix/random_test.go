package prefix

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"adpdeck/router/model"
)

// world drives an index and the reference with one random stream of events of
// 3 workers of 8 ranks each.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	ix      *Index
	m       *Matcher
	got     Matches
	all     contents
	prompts [][]Local
	chains  [][]Chain
	paths   [][]content
	ids     []ID
	refs    []*refTarget
	truth   []*refTarget // what the engines hold; nothing gets lost here
	seqs    []uint64
	last    []Batch
	atMost  bool // the index may hold less than the reference
	sum     int  // of all matches, to see that there were some
}

const (
	worldWorkers = 3
	worldRanks   = 8
)

func newWorld(t *testing.T, seed uint64, prompts int, opt Options) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), all: contents{}}
	ix, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	w.ix, w.m = ix, ix.NewMatcher()
	for i := range prompts {
		var p []Local
		if i > 0 && w.rng.IntN(4) > 0 {
			old := w.prompts[w.rng.IntN(i)]
			p = append(p, old[:w.rng.IntN(len(old)+1)]...)
		}
		for n := 1 + w.rng.IntN(16); n > 0 && len(p) < 40; n-- {
			p = append(p, Local(w.rng.Uint64N(1000)))
		}
		w.prompts = append(w.prompts, p)
		w.chains = append(w.chains, chainLocals(nil, p))
		w.paths = append(w.paths, w.all.path(p))
	}
	for k := 0; k < worldWorkers*worldRanks; k++ {
		id, err := ix.Add(model.Target{Worker: fmt.Sprint("w", k/worldRanks), Rank: k % worldRanks})
		if err != nil {
			t.Fatal(err)
		}
		w.ids = append(w.ids, id)
		w.refs = append(w.refs, newRefTarget(w.all))
		w.truth = append(w.truth, newRefTarget(w.all))
	}
	w.seqs, w.last = make([]uint64, len(w.ids)), make([]Batch, len(w.ids))
	return w
}

// name is what the engine of target k calls a block. Workers 0 and 1 hash
// alike, worker 2 does not.
func (w *world) name(k, prompt, pos int) External {
	salt := uint64(0)
	if k/worldRanks == 2 {
		salt = 99
	}
	return External(uint64(w.paths[prompt][pos])*1_000_003 + salt)
}

// stored is a store of part of a prompt, as the engine of k would send it.
func (w *world) stored(k, prompt, from, to int, tier Tier) Event {
	e := Event{Kind: Stored, Tier: tier}
	if w.rng.IntN(8) == 0 {
		e.Group = 1
	}
	if from > 0 {
		e.HasParent, e.Parent = true, w.name(k, prompt, from-1)
	}
	for i := from; i < to; i++ {
		e.Blocks = append(e.Blocks, Block{w.name(k, prompt, i), w.prompts[prompt][i]})
	}
	return e
}

func (w *world) tier() Tier {
	switch w.rng.IntN(6) {
	case 0:
		return Host
	case 1:
		return Disk
	}
	return Device
}

func (w *world) event(k, prompt int) Event {
	n := len(w.prompts[prompt])
	from := 0
	if w.rng.IntN(2) == 0 {
		from = w.rng.IntN(n)
	}
	to := from + 1 + w.rng.IntN(n-from)
	switch w.rng.IntN(200) {
	case 0:
		return Event{Kind: Cleared}
	}
	if w.rng.IntN(5) < 3 {
		return w.stored(k, prompt, from, to, w.tier())
	}
	e := Event{Kind: Removed, Tier: w.tier()}
	switch w.rng.IntN(6) {
	case 0:
		e.Kind = Placed
	case 1:
		e.Kind, e.From = Moved, w.tier()
		if e.From == e.Tier {
			e.Tier = (e.Tier + 1 + Tier(w.rng.IntN(2))) % Tiers
		}
	}
	if w.rng.IntN(8) == 0 {
		e.Group = 1
	}
	if w.rng.IntN(3) > 0 {
		from, to = max(n-1-w.rng.IntN(6), 0), n // the end of the prompt
	} else if w.rng.IntN(2) == 0 {
		to = from + 1 // one block in the middle
	}
	for i := to - 1; i >= from; i-- {
		e.Hashes = append(e.Hashes, w.name(k, prompt, i))
	}
	return e
}

// step makes one batch, with what can go wrong on its way, and returns how
// many events it had and the prompt it was about.
func (w *world) step() (events, prompt int) {
	k := w.rng.IntN(len(w.ids))
	prompt = w.rng.IntN(len(w.prompts))
	b := Batch{Numbered: k%2 == 0}
	for n := 1 + w.rng.IntN(4); n > 0; n-- {
		b.Events = append(b.Events, w.event(k, prompt))
	}
	w.seqs[k]++
	b.Seq = w.seqs[k]
	w.truth[k].apply(&b)
	events = len(b.Events)
	switch w.rng.IntN(40) {
	case 0: // lost
	case 1: // lost, noticed, and everything sent again
		w.resync(k)
	case 2: // twice
		w.send(k, &b)
		w.send(k, &b)
	case 3: // an old one late
		w.send(k, &b)
		w.send(k, &w.last[k])
	case 4: // swapped with the next
		next := Batch{Numbered: b.Numbered, Seq: b.Seq + 1, Events: []Event{w.event(k, prompt)}}
		w.seqs[k]++
		w.truth[k].apply(&next)
		w.send(k, &next)
		w.send(k, &b)
		events++
	case 5: // the process died
		if w.rng.IntN(4) == 0 {
			w.seqs[k] = 0
			w.truth[k].restart()
			w.refs[k].restart()
			_ = w.ix.Restart(w.ids[k])
		}
	case 6: // lost, noticed, and nothing brings it again
		w.refs[k].doubtAll()
		_ = w.ix.Doubt(w.ids[k])
	case 7: // a doubt, if there is one, is at its end
		w.send(k, &b)
		w.refs[k].settle()
		w.settle(k)
	default:
		w.send(k, &b)
	}
	w.last[k] = b
	return events, prompt
}

func (w *world) settle(k int) {
	for more := true; more; {
		more, _ = w.ix.Settle(w.ids[k])
	}
}

func (w *world) send(k int, b *Batch) {
	w.refs[k].apply(b)
	if _, err := w.ix.Apply(w.ids[k], b); err != nil {
		w.t.Fatal(err)
	}
}

// resync sends what the engine of k holds, from nothing, and then compares the
// index with the engine itself.
func (w *world) resync(k int) {
	w.refs[k].restart()
	_ = w.ix.Restart(w.ids[k])
	truth := w.truth[k]
	b := Batch{Numbered: true, Seq: w.seqs[k]}
	for p, path := range w.paths {
		for i := range path {
			for _, group := range []uint32{0, 1} {
				for tier := Tier(0); tier < Tiers; tier++ {
					key := refKey{refName{group: group, ext: w.name(k, p, i)}, tier}
					if blk := truth.blocks[key]; blk != nil && w.refs[k].blocks[key] == nil && blk.content == path[i] {
						e := w.stored(k, p, i, i+1, tier)
						e.Group = group
						for range blk.owners {
							b.Events = append(b.Events, e)
						}
						w.refs[k].blocks[key] = &refBlock{} // sent, so that it is not sent twice
					}
				}
			}
		}
	}
	w.refs[k].restart()
	w.send(k, &b)
}

func (w *world) check(prompt int) {
	w.m.Match(w.chains[prompt], &w.got)
	for k, id := range w.ids {
		want := w.refs[k].match(w.paths[prompt])
		got := [Tiers]int{int(w.got.Device[id]), int(w.got.Host[id]), int(w.got.Disk[id])}
		w.sum += w.got.Total(id)
		if w.atMost {
			if got[0] > want[0] || w.got.Total(id) > want[0]+want[1]+want[2] && got[0] == want[0] {
				w.t.Fatalf("target %d, prompt %d of %d blocks: index %v, reference only %v", k, prompt, len(w.chains[prompt]), got, want)
			}
			continue
		}
		if got != want {
			w.t.Fatalf("target %d, prompt %d of %d blocks: index %v, reference %v", k, prompt, len(w.chains[prompt]), got, want)
		}
	}
}

// checkFigures compares the counts of blocks and of waiting ones.
func (w *world) checkFigures() {
	parents := map[content]content{}
	for key, c := range w.all {
		parents[c] = content(key[0])
	}
	for k, id := range w.ids {
		s, err := w.ix.TargetStats(id)
		if err != nil {
			w.t.Fatal(err)
		}
		var blocks [Tiers]int
		for key := range w.refs[k].blocks {
			blocks[key.tier]++
		}
		holes := map[content]bool{}
		for c := range w.refs[k].held[Device] {
			if p := parents[c]; p != 0 && w.refs[k].held[Device][p] == 0 {
				holes[p] = true
			}
		}
		if s.Holes != len(holes) {
			w.t.Fatalf("target %d: index counts %d holes, reference %d", k, s.Holes, len(holes))
		}
		if n := w.refs[k].doubtful(); s.Doubtful != n && !w.atMost {
			w.t.Fatalf("target %d: %d blocks in doubt, reference %d", k, s.Doubtful, n)
		}
		if s.Blocks != blocks || s.Waiting != len(w.refs[k].waiting) {
			w.t.Fatalf("target %d: index holds %v, %d wait; reference %v, %d wait", k, s.Blocks, s.Waiting, blocks, len(w.refs[k].waiting))
		}
	}
}

// A seed's stream goes through both, and they agree after every batch. The
// number of seeds is 50, 5 with -short, or what PREFIX_SEEDS says.
func TestIndexEqualsReference(t *testing.T) {
	seeds, events := 50, 10_000
	if testing.Short() {
		seeds = 5
	}
	if n, err := strconv.Atoi(os.Getenv("PREFIX_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		prompts := 24
		if seed%10 == 9 { // every tenth world is wide
			prompts = 250
		}
		w := newWorld(t, uint64(seed), prompts, Options{Targets: 64, MaxBlocks: 1 << 20})
		w.ix.maxHoles = []int{listedHoles, 0, 2}[seed%3] // listed for look-ups, or walked
		for n, batches := 0, 0; n < events; batches++ {
			k, prompt := w.step()
			n += k
			w.check(prompt)
			w.check(w.rng.IntN(len(w.prompts)))
			if batches%(100*prompts/24) == 0 {
				w.checkFigures()
				for p := range w.prompts {
					w.check(p)
				}
			}
		}
		if w.sum == 0 {
			t.Fatalf("seed %d: nothing ever matched", seed)
		}
	}
}

// With bounds so small that blocks are evicted and waiting ones dropped all the
// time, the index holds less than the reference, never more.
func TestBoundedIndexNeverOvercounts(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		opt := Options{Targets: 64, MaxBlocks: 60 + 10*seed, MaxTargetBlocks: 30 + seed, MaxWaiting: 8, MaxWaitingAll: 40}
		w := newWorld(t, uint64(seed), 24, opt)
		w.atMost = true
		for _, r := range w.refs {
			r.atLeast = true
		}
		for n := 0; n < 3000; {
			k, prompt := w.step()
			n += k
			w.check(prompt)
			if s := w.ix.Stats(); s.Blocks > opt.MaxBlocks || s.Waiting > opt.MaxWaitingAll {
				t.Fatalf("seed %d: the bounds are passed: %+v", seed, s)
			}
			w.checkOwned()
		}
		if s := w.ix.Stats(); s.Evicted == 0 || w.sum == 0 {
			t.Errorf("seed %d: figures %+v", seed, s)
		}
	}
}

// checkOwned compares the counts of blocks with the records themselves.
func (w *world) checkOwned() {
	if w.rng.IntN(50) > 0 {
		return
	}
	records := 0
	owned := make([][Tiers]int, len(w.ids))
	for r := ref(1); r < w.ix.recs.used; r++ {
		rec := w.ix.at(r)
		if rec.hold&linkedBit == 0 {
			continue
		}
		records++
		if !held(rec.hold) && rec.child == 0 {
			w.t.Fatalf("record %d is held by none and leads nowhere", r)
		}
		for k, id := range w.ids {
			for tier := Tier(0); tier < Tiers; tier++ {
				if w.ix.holdsIn(rec.hold, id, tier) {
					owned[k][tier]++
				}
			}
		}
	}
	if records != w.ix.records {
		w.t.Fatalf("%d records, counted as %d", records, w.ix.records)
	}
	for k, id := range w.ids {
		if got := w.ix.targets[id].stats.Blocks; got != owned[k] {
			w.t.Fatalf("target %d holds %v, counted as %v", k, owned[k], got)
		}
	}
}
