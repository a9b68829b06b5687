package sim

import (
	"math"
	"time"

	"adpdeck/router/model"
)

// request is one request inside the cluster. Times are virtual nanoseconds.
type request struct {
	id      int64
	conv    model.ConvKey
	arrived int64
	firstAt int64 // when the first token came
	prompt  int
	output  int
	full    []uint64 // blocks that the prompt fills
	probe   []uint64 // blocks that a prefix probe looks for
	total   int      // blocks that prompt and answer need together
	target  model.Target
	cached  int // prompt tokens found when prefill began
	expect  int // prompt tokens that the rank held when it was placed there
	left    int // prompt tokens still to be prefilled
	take    int // of them in the present step
	endTick int64
	blocks  int // that prompt and answer fill, as the router was told last
	lease   lease
}

// generated is how many tokens of its answer have come at a tick of its rank.
func (r *request) generated(tick int64) int { return r.output - int(r.endTick-tick) }

// fifo is a queue of requests that reuses its memory.
type fifo struct {
	items []*request
	head  int
}

func (f *fifo) len() int        { return len(f.items) - f.head }
func (f *fifo) front() *request { return f.items[f.head] }
func (f *fifo) all() []*request { return f.items[f.head:] }
func (f *fifo) push(r *request) {
	if f.head > 32 && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, r)
}

func (f *fifo) pop() *request {
	r := f.items[f.head]
	f.items[f.head] = nil
	f.head++
	return r
}

// rank is one DP rank: its cache, and its requests in the order assigned →
// prefilling → decoding. All sums are kept up to date by the changes.
type rank struct {
	cache    cache
	assigned fifo // placed here, prefill not begun
	prefill  fifo
	decode   []*request
	tokens   int // prompt tokens of all active requests
	cached   int // of them found in the cache, known once prefill has begun
	pending  int // prompt tokens still to be prefilled
	expect   int // of the assigned requests' tokens, those the cache held when they were placed
	context  int // tokens in KV of the requests that have begun
	tick     int64
	nextEnd  int64 // tick at which the first decoding request ends
	work     time.Duration
	begun    int   // requests in prefill that take part in the step
	requests int64 // placed here since the start
	prompts  int64 // their prompt tokens
}

func newRank(blocks int) *rank { return &rank{cache: newCache(blocks), nextEnd: math.MaxInt64} }

// active is the number of requests that count against the hard cap.
func (k *rank) active() int { return k.assigned.len() + k.prefill.len() + len(k.decode) }

// state is what the rank contributes to the gather of a step; the KV-aware
// policy leaves out the tokens that were found in the cache.
func (k *rank) state(i int, kvAware bool) model.RankState {
	s := model.RankState{Rank: i, NumActiveRequests: k.active(), NumActiveTokens: k.tokens}
	if kvAware {
		s.NumActiveTokens -= k.cached
	}
	return s
}

func (k *rank) load(i int) model.RankLoad {
	return model.RankLoad{
		Rank: i, Queued: k.assigned.len(), PendingTokens: k.pending - k.expect,
		KVUsedBlocks: k.cache.inUse(), KVTotalBlocks: k.cache.capacity(),
	}
}

// place makes r one of the rank's active requests, of whose prompt expect
// tokens will be found in the cache as it stands.
func (k *rank) place(r *request, expect int) {
	r.expect = expect
	k.expect += expect
	k.assigned.push(r)
	k.tokens += r.prompt
	k.pending += r.prompt
	k.requests++
	k.prompts += int64(r.prompt)
}

// canPrefill counts the requests whose prefill could run in this step, for the
// balance gate.
func (k *rank) canPrefill() int {
	n := k.prefill.len() + k.assigned.len()
	if n > 0 && k.prefill.len() == 0 {
		if r := k.assigned.front(); !k.cache.fits(r.probe, r.total) {
			return 0
		}
	}
	return n
}

// plan fixes what the rank does in a step and how long that takes: up to chunk
// prompt tokens first come, first served, and one token for each request that
// decodes. begin is told of each request whose prefill begins.
func (k *rank) plan(t *Timing, chunk, blockTokens int, release bool, begin func(*request)) {
	budget := 0
	if release {
		budget = chunk
	}
	k.begun = 0
	for _, r := range k.prefill.all() {
		if budget == 0 {
			break
		}
		r.take = min(r.left, budget)
		budget -= r.take
		k.begun++
	}
	for budget > 0 && k.assigned.len() > 0 {
		r := k.assigned.front()
		l, ok := k.cache.begin(r.probe, r.total)
		if !ok {
			break
		}
		k.assigned.pop()
		k.prefill.push(r)
		k.expect -= r.expect
		r.lease, r.cached = l, l.matched*blockTokens
		r.left = r.prompt - r.cached
		r.take = min(r.left, budget)
		budget -= r.take
		k.cached += r.cached
		k.pending -= r.cached
		k.context += r.cached
		k.begun++
		begin(r)
	}
	k.work = 0
	if release {
		k.work = t.prefill(chunk - budget)
	}
	if len(k.decode) > 0 {
		k.work += t.decode(float64(k.context) / (float64(k.cache.capacity()) * float64(blockTokens)))
	}
}

// finish ends the rank's part of a step: every decoding request has one more
// token, prefill has moved on. first and done are told of each first token and
// each end, in a fixed order.
func (k *rank) finish(first, done func(*request)) {
	if len(k.decode) > 0 {
		k.context += len(k.decode)
		if k.tick++; k.tick == k.nextEnd {
			k.endDecoded(done)
		}
	}
	for ; k.begun > 0; k.begun-- {
		r := k.prefill.front()
		r.left -= r.take
		k.pending -= r.take
		k.context += r.take
		r.take = 0
		if r.left > 0 {
			break // only the last of a step can be cut
		}
		k.prefill.pop()
		k.cache.fill(&r.lease, r.full)
		k.context++ // the first token of the answer
		first(r)
		if r.output == 1 {
			k.drop(r)
			done(r)
			continue
		}
		r.endTick = k.tick + int64(r.output-1)
		k.nextEnd = min(k.nextEnd, r.endTick)
		k.decode = append(k.decode, r)
	}
	k.begun = 0
}

// endDecoded takes out the requests whose last token has come.
func (k *rank) endDecoded(done func(*request)) {
	keep := k.decode[:0]
	k.nextEnd = math.MaxInt64
	for _, r := range k.decode {
		if r.endTick > k.tick {
			k.nextEnd = min(k.nextEnd, r.endTick)
			keep = append(keep, r)
			continue
		}
		k.drop(r)
		done(r)
	}
	clear(k.decode[len(keep):])
	k.decode = keep
}

// drop takes an ended request out of the sums and gives its blocks back.
func (k *rank) drop(r *request) {
	k.tokens -= r.prompt
	k.cached -= r.cached
	k.context -= r.prompt + r.output
	k.cache.end(&r.lease)
}

// reject takes out the first assigned request, which can never fit: nothing
// else is active on the rank and it still finds no room.
func (k *rank) reject() (*request, bool) {
	if k.prefill.len() > 0 || len(k.decode) > 0 || k.assigned.len() == 0 {
		return nil, false
	}
	if r := k.assigned.front(); k.cache.fits(r.probe, r.total) {
		return nil, false
	}
	r := k.assigned.pop()
	k.tokens -= r.prompt
	k.pending -= r.prompt
	k.expect -= r.expect
	return r, true
}
