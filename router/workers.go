package router

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"adpdeck/router/adp"
	"adpdeck/router/cluster"
	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

// ErrSpec is returned by Join for a worker that cannot be.
var ErrSpec = errors.New("worker cannot join")

// Join adds a worker, or changes one that is there: its ranks, capacity,
// address, models. What stays the same stays: ranks keep their place, bookings
// and blocks. Ranks that go take their bindings with them, whose conversations
// are placed once more, and their figures; ranks that come begin empty, but for
// the weight, the drain and the operator pins that name them from before. A
// worker that grows or shrinks begins the engine tier's rotation and warm-up
// anew.
//
// The error wraps ErrSpec and says what cannot be; nothing has changed then. A
// block size, once an engine has named it, is the same for all.
func (r *Router) Join(spec model.WorkerSpec) error {
	now := r.clock.Now()
	r.topo.Lock()
	defer r.topo.Unlock()
	if err := r.join(now, &spec); err != nil {
		return err
	}
	r.seat()
	return nil
}

func (r *Router) join(now time.Time, spec *model.WorkerSpec) error {
	r.lock(now)
	defer r.unlock()
	if err := r.checkSpec(spec); err != nil {
		return fmt.Errorf("%w: worker %w", ErrSpec, err)
	}
	at, had := r.byID[spec.ID]
	what, parted := "", len(r.parted)
	if had {
		what = r.alter(r.workers[at], spec)
		if what == "" {
			return nil
		}
		what = spec.ID + ": " + what
	} else {
		if err := r.admit(spec); err != nil {
			return fmt.Errorf("%w: %w", ErrSpec, err)
		}
		what = fmt.Sprintf("%s joined: %s", spec.ID, ranksOf(spec))
	}
	if n := parted - len(r.parted); n > 0 { // an operator who drained it long ago wonders
		what += fmt.Sprintf(", %d of them draining as before", n)
	}
	r.moved()
	r.tell(model.Event{Level: "info", Who: spec.ID, Kind: model.EventEngine, What: what, Target: workerTarget(spec.ID)})
	return nil
}

func ranksOf(spec *model.WorkerSpec) string {
	text := fmt.Sprintf("%d ranks", spec.Ranks)
	if spec.Ranks == 1 {
		text = "1 rank"
	}
	if spec.Engine != "" {
		text = spec.Engine + ", " + text
	}
	return text
}

func workerTarget(id string) *model.Target { return &model.Target{Worker: id, Rank: model.NoRank} }

// Leave removes a worker with its ranks, figures, blocks and bindings, whose
// conversations are placed once more. Operator pins to it stand and act again
// when it comes back under its id, as do its weights and drains; until then
// their requests are refused (ErrDown). Requests that are open there stay open,
// counted by Departed, until their ends come: these are counted (LateEnds) and
// bring nothing back. The error wraps ErrNoWorker.
func (r *Router) Leave(worker string) error {
	now := r.clock.Now()
	r.topo.Lock()
	defer r.topo.Unlock()
	if err := r.leave(now, worker); err != nil {
		return err
	}
	r.seat()
	return nil
}

func (r *Router) leave(now time.Time, worker string) error {
	r.lock(now)
	defer r.unlock()
	at, ok := r.byID[worker]
	if !ok {
		return fmt.Errorf("leave: %w %q: there are %s", ErrNoWorker, worker, r.workerNames())
	}
	w := r.workers[at]
	what := worker + " left" + r.evacuate(w, 0)
	r.steer.tier.RemoveWorker(r.elapsed(), worker)
	r.book.Remove(w.index)
	r.places[w.index] = nil
	r.workers = slices.Delete(r.workers, at, at+1)
	if r.cursor > at {
		r.cursor--
	}
	if r.cursor >= len(r.workers) {
		r.cursor = 0
	}
	r.relist()
	r.found.forget(worker)
	r.moved()
	r.tell(model.Event{Level: "warn", Who: worker, Kind: model.EventEngine, What: what, Target: workerTarget(worker)})
	return nil
}

// checkSpec says what a worker cannot be like.
func (r *Router) checkSpec(spec *model.WorkerSpec) error {
	had := 0
	if at, ok := r.byID[spec.ID]; ok {
		had = len(r.workers[at].ranks)
	}
	block := r.know.blockTokens()
	switch {
	case spec.ID == "" || len(spec.ID) > model.MaxIDBytes || !utf8.ValidString(spec.ID):
		return fmt.Errorf("(%q) has an id of %d bytes: it needs 1 to %d bytes of UTF-8", spec.ID, len(spec.ID), model.MaxIDBytes)
	case spec.Ranks < 1:
		return fmt.Errorf("(%q) has %d ranks: it needs an id and at least one rank", spec.ID, spec.Ranks)
	case r.know.room > 0 && r.rankCount()-had+spec.Ranks > r.know.room:
		return fmt.Errorf("(%q) with %d ranks: there is room for %d in all and %d are there: raise Config.MaxRanks",
			spec.ID, spec.Ranks, r.know.room, r.rankCount()-had)
	case spec.BlockTokens > event.MaxBlockTokens:
		return fmt.Errorf("(%q) has blocks of %d tokens: give at most %d", spec.ID, spec.BlockTokens, event.MaxBlockTokens)
	case spec.BlockTokens < 0 || spec.BlockTokens > 0 && block > 0 && spec.BlockTokens != block:
		return fmt.Errorf("%q has blocks of %d tokens, others of %d: give all engines one block size", spec.ID, spec.BlockTokens, block)
	case spec.StartRank < 0 || spec.MaxNumActiveRequests < 0 || spec.MaxBatchedTokens < 0 || spec.KVBlocks < 0:
		return fmt.Errorf("(%q) has a negative start rank or capacity: give 0 where it is not known", spec.ID)
	}
	return nil
}

func (r *Router) rankCount() (n int) {
	for _, w := range r.workers {
		n += len(w.ranks)
	}
	return n
}

// admit gives a new worker its place. It is routed to at once.
func (r *Router) admit(spec *model.WorkerSpec) error {
	r.setBlock(spec.BlockTokens)
	slots, err := r.steer.tier.AddWorker(cluster.Worker{
		ID: spec.ID, Ranks: spec.Ranks, MaxRequests: spec.MaxNumActiveRequests,
		MaxBatchedTokens: spec.MaxBatchedTokens, KVBlocks: spec.KVBlocks, Picks: spec.Steering.EnginePicks(),
	})
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	w := &worker{spec: *spec, index: r.book.Add(spec.Ranks), slots: slots, joined: r.now}
	w.spec.Models = slices.Clone(spec.Models)
	w.number, _ = r.steer.tier.Number(spec.ID)
	for len(r.places) <= w.index {
		r.places = append(r.places, nil)
	}
	r.places[w.index] = w
	r.furnish(w, 0)
	r.workers = append(r.workers, w)
	r.relist()
	r.recount(w)
	return nil
}

// furnish makes what the ranks of a worker from rank from up need.
func (r *Router) furnish(w *worker, from int) {
	for k := from; k < w.spec.Ranks; k++ {
		t := model.Target{Worker: w.spec.ID, Rank: k}
		s := rankState{hits: newWindow(5*time.Second, 12), weight: model.DefaultWeight}
		s.load = model.Rank{Target: t, MaxActive: w.spec.MaxNumActiveRequests, Hit: model.Unknown(), Reachable: model.Unknown()}
		if i := slices.Index(r.parted, t); i >= 0 {
			s.drain = true
			r.parted = slices.Delete(r.parted, i, i+1)
		}
		w.ranks = append(w.ranks, s)
		if r.view.windows != nil {
			r.view.windows[w.slots[k]] = rankWindow{}
		}
	}
	w.engine = adp.New(w.spec.Ranks, r.settings.AttentionDpConfig, r.binds.View(w.spec.ID), adp.Options{Record: r.record, MaxCandidates: maxCandidates})
}

// recount counts the operator pins that name the ranks of a worker from before.
func (r *Router) recount(w *worker) {
	if r.ops.Len() == 0 {
		return
	}
	for k := range w.ranks {
		w.ranks[k].operator = 0
	}
	r.eachPin(func(t model.Target) {
		if s := r.rank(t); s != nil && t.Worker == w.spec.ID {
			s.operator++
		}
	})
}

// relist brings what is derived from the list of workers up to date.
func (r *Router) relist() {
	clear(r.byID)
	for i, w := range r.workers {
		r.byID[w.spec.ID] = i
	}
	r.sorted = append(r.sorted[:0:0], r.workers...)
	slices.SortFunc(r.sorted, func(a, b *worker) int {
		return workerTarget(a.spec.ID).Compare(*workerTarget(b.spec.ID))
	})
	clear(r.numbers)
	for _, w := range r.workers {
		for len(r.numbers) <= w.number {
			r.numbers = append(r.numbers, nil)
		}
		r.numbers[w.number] = w
	}
	r.loads = make([]workerLoad, len(r.workers))
	r.serves = audiencesOf(r.workers)
	r.steer.picks = slices.ContainsFunc(r.workers, (*worker).picks)
	r.steer.caps = slices.ContainsFunc(r.workers, func(w *worker) bool { return w.spec.MaxNumActiveRequests > 0 })
}

// moved is called when workers or ranks have come or gone: what was looked up
// for the old ones does not count, and who waits may go elsewhere.
func (r *Router) moved() {
	r.stamp++
	r.found.stale = true
	r.know.gen.Add(1)
	r.reconfigure()
	r.requeue()
}

// setBlock takes the block size that an engine names, the first time.
func (r *Router) setBlock(tokens int) {
	if tokens > 0 && r.know.index != nil && r.know.blockTokens() == 0 {
		r.know.block.Store(int32(tokens))
		r.steer.tier.SetBlockTokens(tokens)
	}
}

// differences are what another description of a worker changes, in words.
func differences(old, spec *model.WorkerSpec) (parts []string) {
	differ := func(name string, before, after any) {
		switch {
		case before == after:
		case before == 0 || before == "": // it was not known
			parts = append(parts, fmt.Sprintf("%s %v", name, after))
		default:
			parts = append(parts, fmt.Sprintf("%s %v → %v", name, before, after))
		}
	}
	differ("ranks", old.Ranks, spec.Ranks)
	differ("engine", old.Engine, spec.Engine)
	differ("address", old.Address, spec.Address)
	differ("steering", old.Steering, spec.Steering)
	differ("first rank", old.StartRank, spec.StartRank)
	differ("hard cap", old.MaxNumActiveRequests, spec.MaxNumActiveRequests)
	differ("batched tokens", old.MaxBatchedTokens, spec.MaxBatchedTokens)
	differ("kv blocks", old.KVBlocks, spec.KVBlocks)
	differ("kv events", old.KVEvents, spec.KVEvents)
	differ("replay", old.KVReplay, spec.KVReplay)
	if spec.BlockTokens > 0 { // 0 is not known, and takes nothing back
		differ("block tokens", old.BlockTokens, spec.BlockTokens)
	}
	switch {
	case slices.Equal(old.Models, spec.Models):
	case len(old.Models) == 0:
		parts = append(parts, "serves "+list(spec.Models))
	case len(spec.Models) == 0:
		parts = append(parts, "serves no model, before "+list(old.Models))
	default:
		parts = append(parts, "serves "+list(spec.Models)+", before "+list(old.Models))
	}
	return parts
}

// alter changes a worker that is there and says what changed, nothing for
// nothing.
func (r *Router) alter(w *worker, spec *model.WorkerSpec) (what string) {
	old := w.spec
	parts := differences(&old, spec)
	if len(parts) == 0 {
		return ""
	}
	r.setBlock(spec.BlockTokens)
	note := ""
	if spec.Ranks != old.Ranks {
		note = r.regroup(w, spec.Ranks)
	}
	w.spec = *spec
	w.spec.Models = slices.Clone(spec.Models)
	if spec.BlockTokens == 0 {
		w.spec.BlockTokens = old.BlockTokens
	}
	if spec.Ranks != old.Ranks {
		r.furnish(w, len(w.ranks))
		r.recount(w)
		r.inherit(w, old.Ranks)
	}
	r.steer.tier.SetPicks(spec.ID, w.picks())
	for k := range w.ranks {
		l := &w.ranks[k].load
		l.MaxActive = spec.MaxNumActiveRequests
		r.steer.tier.SetCapacity(l.Target, cluster.Capacity{
			MaxRequests: spec.MaxNumActiveRequests, MaxBatchedTokens: spec.MaxBatchedTokens, KVBlocks: spec.KVBlocks,
		})
	}
	if spec.KVBlocks != old.KVBlocks {
		r.know.guess.Load().rule(w)
	}
	r.relist()
	return list(parts) + note
}

// regroup changes the number of ranks of a worker everywhere but in its own
// list of those that come.
func (r *Router) regroup(w *worker, ranks int) (note string) {
	if ranks < len(w.ranks) {
		note = r.evacuate(w, ranks)
		w.ranks = w.ranks[:ranks:ranks]
	}
	_ = r.steer.tier.Resize(r.elapsed(), w.spec.ID, ranks) // the room was checked
	r.book.Resize(w.index, ranks)
	w.slots = w.slots[:0:0]
	for k := range ranks {
		slot, _ := r.steer.tier.Slot(model.Target{Worker: w.spec.ID, Rank: k})
		w.slots = append(w.slots, slot)
	}
	return note
}
