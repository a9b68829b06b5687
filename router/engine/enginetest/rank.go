package enginetest

import (
	"slices"
	"time"
)

// rank is one DP rank: its cache, the requests that wait for it and those that
// run. It belongs to the engine's lock.
type rank struct {
	e       *Engine
	at      int // over all workers
	worker  int
	local   int // inside its worker
	group   *group
	cache   *cache
	waiting []*work
	running []*work
	peak    int // most requests at one time
	pub     *publisher
	count   counters
	step    stepped // what the present step does
	process uint64  // seeds block hashes
	eventID uint64  // of the next event, where events are numbered one by one

	// Of the loads it publishes: when it last did, how many, and the blocks it
	// said were used.
	spoke    time.Time
	passes   uint64
	used     int
	toldUsed bool
}

// stepped is what a rank did in a step, for TensorRT-LLM's rows.
type stepped struct {
	context, contextTokens, contextKV int
	generation, generationKV          int
	work                              time.Duration
}

// number is the rank as the engine counts it in labels, events and answers.
func (k *rank) number() int { return k.e.cfg.StartRank + k.local }

// open is how many requests the rank has.
func (k *rank) open() int { return len(k.waiting) + len(k.running) }

// enqueue gives the rank a request.
func (k *rank) enqueue(w *work) {
	w.rank = k
	k.take(w)
	k.group.kick()
}

// take lets a request wait on the rank.
func (k *rank) take(w *work) {
	k.waiting = append(k.waiting, w)
	k.peak = max(k.peak, k.open())
}

// pending is how many prompt tokens of the rank's requests are still to be
// computed, and held how many tokens lie in its cache for them.
func (k *rank) tokens() (held, pending int) {
	for _, w := range k.running {
		held += w.computed
		if !w.decodes {
			pending += len(w.tokens) - w.computed
		}
	}
	for _, w := range k.waiting {
		pending += len(w.tokens)
	}
	return held, pending
}

// plan takes requests in, fixes what the step computes and how long that takes.
func (k *rank) plan(now time.Time) {
	k.step = stepped{}
	blocked := k.e.habits.Load().NoFirstToken
	if !blocked {
		k.admit(now)
	}
	budget, t := k.e.cfg.Timing.ChunkTokens, &k.e.cfg.Timing
	for _, w := range k.running {
		w.take = 0
		switch {
		case w.decodes:
			k.step.generation++
			k.step.generationKV += w.computed
		case budget > 0 && !blocked:
			w.take = min(len(w.tokens)-w.computed, budget)
			budget -= w.take
			k.step.context++
			k.step.contextTokens += w.take
			k.step.contextKV += w.computed
		}
	}
	k.step.work = t.prefill(k.step.contextTokens) + t.decode(k.step.generation)
}

// admit starts waiting requests, first come, first served, while there is room.
func (k *rank) admit(now time.Time) {
	for len(k.waiting) > 0 && len(k.running) < k.e.cfg.MaxActive {
		w := k.waiting[0]
		if !k.begin(w, now) {
			return
		}
		k.waiting[0] = nil
		k.waiting = k.waiting[1:]
		k.running = append(k.running, w)
	}
	if len(k.waiting) == 0 {
		k.waiting = nil // let go of what was served
	}
}

// begin holds what the cache has of a request and reserves blocks for the rest of
// its prompt; false when there is no room. At least the last token is always
// computed, as engines do.
func (k *rank) begin(w *work, now time.Time) bool {
	size := k.e.cfg.BlockTokens
	k.hash(w, len(w.tokens)/size)
	found, idle := k.cache.match(w.hashes[:(len(w.tokens)-1)/size])
	need := (len(w.tokens)+size-1)/size - found
	if need > k.cache.free-idle {
		return false
	}
	w.blocks = k.cache.take(w.blocks[:0], w.hashes[:found])
	for range need {
		at, _ := k.cache.alloc()
		w.blocks = append(w.blocks, at)
	}
	w.computed = found * size
	if !w.begun {
		w.begun, w.began, w.cached = true, now, w.computed
		k.count.admitted(w, now)
	}
	return true
}

// hash computes the names of a request's first n full blocks.
func (k *rank) hash(w *work, n int) {
	size := k.e.cfg.BlockTokens
	for i := len(w.hashes); i < n; i++ {
		var parent uint64
		if i > 0 {
			parent = w.hashes[i-1]
		}
		w.hashes = append(w.hashes, blockHash(k.process, parent, i > 0, w.tokens[i*size:(i+1)*size], w.lora, w.salt))
	}
}

// finish ends a step: what was planned is computed, tokens come.
func (k *rank) finish(now time.Time) {
	for _, w := range slices.Clone(k.running) {
		switch {
		case w.ended:
		case w.decodes:
			k.decode(w, now)
		case w.take > 0:
			k.compute(w, w.take)
			if w.computed == len(w.tokens) {
				w.decodes = true
				k.emit(w, now)
			}
		}
	}
}

// compute moves a request on by n tokens and publishes the blocks that are full
// now.
func (k *rank) compute(w *work, n int) {
	size := k.e.cfg.BlockTokens
	from := w.computed / size
	w.computed += n
	k.hash(w, w.computed/size)
	for i := from; i < w.computed/size; i++ {
		ch := change{hash: w.hashes[i], tokens: w.tokens[i*size : (i+1)*size], lora: w.lora, salt: w.salt}
		if i > 0 {
			ch.parent, ch.child = w.hashes[i-1], true
		}
		w.blocks[i] = k.cache.name(w.blocks[i], ch)
	}
}

// decode computes the newest token of a request and makes another. When the
// cache is full, the request that came last goes back to the queue.
func (k *rank) decode(w *work, now time.Time) {
	for w.computed+1 > len(w.blocks)*k.e.cfg.BlockTokens {
		if at, ok := k.cache.alloc(); ok {
			w.blocks = append(w.blocks, at)
			break
		}
		victim := k.running[len(k.running)-1]
		k.preempt(victim)
		if victim == w {
			return
		}
	}
	k.compute(w, 1)
	k.emit(w, now)
}

// preempt takes a request's blocks away; it will compute what is not found in
// the cache once more.
func (k *rank) preempt(w *work) {
	k.cache.release(w.blocks)
	w.blocks, w.computed, w.take, w.decodes = w.blocks[:0], 0, 0, false
	k.running = slices.DeleteFunc(k.running, func(o *work) bool { return o == w })
	k.waiting = slices.Insert(k.waiting, 0, w)
	k.count.preemptions++
}

// emit gives a request its next token, or its end.
func (k *rank) emit(w *work, now time.Time) {
	if w.want > 0 {
		id, _ := w.token(w.answered())
		w.tokens = append(w.tokens, id)
		k.count.token(w, now)
	}
	w.last = now
	if w.answered() == w.want {
		k.remove(w)
		w.ended = true
		k.count.finished(w, now)
	}
	w.ring()
}

// remove takes a request off the rank and gives its blocks back.
func (k *rank) remove(w *work) {
	same := func(o *work) bool { return o == w }
	k.waiting = slices.DeleteFunc(k.waiting, same)
	k.running = slices.DeleteFunc(k.running, same)
	k.cache.release(w.blocks)
	w.blocks = nil
}

// wipe ends all requests with err and empties the cache without a word.
func (k *rank) wipe(err error) {
	for _, w := range append(k.running, k.waiting...) {
		w.ended, w.err, w.blocks = true, err, nil
		w.ring()
	}
	k.running, k.waiting = nil, nil
	k.cache = newCache(k.e.cfg.Blocks, k.cache.twins)
	k.count, k.eventID = newCounters(), 0
}

// start makes the rank a new process: its block hashes have another seed.
func (k *rank) start() {
	k.process = mix(mix(k.e.cfg.Seed) + k.e.starts)
	k.e.starts++
	if k.e.trt != nil {
		k.e.trt.created(k)
	}
}

// busy reports whether a step would do anything.
func (k *rank) busy() bool {
	blocked := k.e.habits.Load().NoFirstToken
	for _, w := range k.running {
		if w.decodes || !blocked {
			return true
		}
	}
	return len(k.waiting) > 0 && !blocked
}
