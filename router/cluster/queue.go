package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"adpdeck/router/model"
)

// ErrQueueFull is wrapped by *QueueFull.
var ErrQueueFull = errors.New("queue is full")

// QueueFull says which limit of the queue was reached. A request is refused
// when the limit had been crossed before it came.
type QueueFull struct {
	Request int64
	// Limit is the setting that was reached, Have what waits, Most the limit.
	Limit      string
	Have, Most int
}

// Error names the cause and the next step.
func (q *QueueFull) Error() string {
	return fmt.Sprintf("queue request %d: %v (%d wait, %s × workers allows %d); retry later, or raise %s",
		q.Request, ErrQueueFull, q.Have, q.Limit, q.Most, q.Limit)
}

// Unwrap returns ErrQueueFull.
func (q *QueueFull) Unwrap() error { return ErrQueueFull }

// Waiting is a request in a Queue.
type Waiting[T any] struct {
	ID int64
	// Slot is its lane: the only rank that it may go to, the only worker
	// (WorkerLane), or SharedLane for any.
	Slot int32
	// Strict goes before all else, the larger first.
	Strict uint32
	// Jump moves a request ahead: seconds under fcfs, weight under wspt; below
	// 0 counts as 0.
	Jump float64
	// PromptTokens, and how many the best eligible target had cached.
	PromptTokens, BestCached int
	// At is when it arrived in the queue; set by Push.
	At      time.Duration
	Payload T

	score float64
	order uint64
	index int
	lane  *lane[T]
}

// SharedLane is the lane of requests that any rank may take.
const SharedLane int32 = -1

// WorkerLane is the lane of requests that only the ranks of the worker whose
// number is w may take.
func WorkerLane(w int) int32 { return SharedLane - 1 - int32(w) }

// Queue holds requests while every eligible rank is busy (dynamo.md 1.7).
// Larger first: (Strict, score, earlier arrival). The score is fixed when a
// request enters. Requests for one rank or worker wait in a lane of their own, so
// that a busy one holds nobody else back. It does not lock.
type Queue[T any] struct {
	shared lane[T]
	lanes  map[int32]*lane[T]
	byID   map[int64]*Waiting[T]
	tokens int
	cached int
	order  uint64
}

// lane is a binary heap, the next to go first.
type lane[T any] struct{ heap []*Waiting[T] }

// NewQueue returns an empty queue.
func NewQueue[T any]() *Queue[T] {
	return &Queue[T]{lanes: map[int32]*lane[T]{}, byID: map[int64]*Waiting[T]{}}
}

// Len counts the requests that wait, Tokens their prompts, Cached what of
// them was cached when they came.
func (q *Queue[T]) Len() int { return len(q.byID) }

// Tokens sums the prompts that wait.
func (q *Queue[T]) Tokens() int { return q.tokens }

// Cached sums what of the prompts was cached when they came.
func (q *Queue[T]) Cached() int { return q.cached }

// Backlog counts the requests that wait in a lane.
func (q *Queue[T]) Backlog(slot int32) int {
	if slot == SharedLane {
		return len(q.shared.heap)
	}
	if l := q.lanes[slot]; l != nil {
		return len(l.heap)
	}
	return 0
}

// Push adds a request, or refuses it with *QueueFull at once. workers is the
// number of workers that the limits are multiplied by. An id that waits
// already returns ErrDuplicate.
func (q *Queue[T]) Push(now time.Duration, cfg *Config, workers int, w Waiting[T]) error {
	if q.byID[w.ID] != nil {
		return fmt.Errorf("queue request %d: %w", w.ID, ErrDuplicate)
	}
	workers = max(1, workers)
	if most := cfg.QueueMaxRequests * workers; len(q.byID) >= most {
		return &QueueFull{w.ID, "router_queue_max_requests", len(q.byID), most}
	}
	if most := cfg.QueueMaxTokens * workers; q.tokens >= most {
		return &QueueFull{w.ID, "router_queue_max_tokens", q.tokens, most}
	}
	k := &w
	k.At, k.order, k.score = now, q.order, score(now, cfg.QueuePolicy, w.Jump, w.PromptTokens, w.BestCached)
	q.order++
	q.enter(k)
	q.byID[w.ID] = k
	q.tokens += w.PromptTokens
	q.cached += w.BestCached
	return nil
}

// maxJump bounds how far a request can jump ahead.
const maxJump = 1e9

func score(now time.Duration, policy string, jump float64, prompt, cached int) float64 {
	if !(jump > 0) { // not a number counts as none
		jump = 0
	}
	jump = min(jump, maxJump)
	if policy == model.QueueWSPT {
		return (1 + jump) / float64(max(1, prompt-cached))
	}
	return jump - now.Seconds()
}

// Pop removes and returns the next request that may go; ready says whether a
// lane's rank, one of its worker's, or any rank at all takes one now. stale says that the request
// waited longer than router_overlap_refresh_after_secs: look its match up
// again. ok is false when none may go.
func (q *Queue[T]) Pop(now time.Duration, cfg *Config, ready func(slot int32) bool) (w Waiting[T], stale, ok bool) {
	var best *Waiting[T]
	if len(q.shared.heap) > 0 && ready(SharedLane) {
		best = q.shared.heap[0]
	}
	for slot, l := range q.lanes {
		if head := l.heap[0]; (best == nil || head.before(best)) && ready(slot) {
			best = head
		}
	}
	if best == nil {
		return w, false, false
	}
	q.remove(best)
	after := cfg.OverlapRefreshAfterSecs
	return *best, after > 0 && now-best.At > seconds(after), true
}

// Reorder scores all that wait anew, after router_queue_policy was changed.
func (q *Queue[T]) Reorder(cfg *Config) {
	for _, k := range q.byID {
		k.score = score(k.At, cfg.QueuePolicy, k.Jump, k.PromptTokens, k.BestCached)
	}
	q.shared.build()
	for _, l := range q.lanes {
		l.build()
	}
}

// Remove takes a request out, whose caller has left; false when it does not
// wait.
func (q *Queue[T]) Remove(id int64) (w Waiting[T], ok bool) {
	k := q.byID[id]
	if k == nil {
		return w, false
	}
	q.remove(k)
	return *k, true
}

// Empty takes everything out, the next to go first, for Return: what is there
// to wait for has changed.
func (q *Queue[T]) Empty() []Waiting[T] {
	all := make([]*Waiting[T], 0, len(q.byID))
	for _, k := range q.byID {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *Waiting[T]) int {
		if a.before(b) {
			return -1
		}
		return 1 // no two are equal: they differ in order
	})
	out := make([]Waiting[T], 0, len(all))
	for _, k := range all {
		q.remove(k)
		out = append(out, *k)
	}
	return out
}

// Return puts a request back that Pop or Empty gave out, into the lane w.Slot,
// with the place in line that it had. No limit is looked at: it was let in.
func (q *Queue[T]) Return(w Waiting[T]) {
	k := &w
	q.enter(k)
	q.byID[w.ID] = k
	q.tokens += w.PromptTokens
	q.cached += w.BestCached
}

// enter puts a request into its lane.
func (q *Queue[T]) enter(k *Waiting[T]) {
	k.lane = &q.shared
	if k.Slot != SharedLane {
		if q.lanes[k.Slot] == nil {
			q.lanes[k.Slot] = &lane[T]{}
		}
		k.lane = q.lanes[k.Slot]
	}
	k.lane.push(k)
}

func (q *Queue[T]) remove(k *Waiting[T]) {
	k.lane.remove(k.index)
	if k.Slot != SharedLane && len(k.lane.heap) == 0 {
		delete(q.lanes, k.Slot)
	}
	delete(q.byID, k.ID)
	q.tokens -= k.PromptTokens
	q.cached -= k.BestCached
	k.lane = nil
}

func (w *Waiting[T]) before(o *Waiting[T]) bool {
	switch {
	case w.Strict != o.Strict:
		return w.Strict > o.Strict
	case w.score != o.score:
		return w.score > o.score
	}
	return w.order < o.order
}

func (l *lane[T]) push(w *Waiting[T]) {
	w.index = len(l.heap)
	l.heap = append(l.heap, w)
	l.up(w.index)
}

func (l *lane[T]) build() {
	for i := len(l.heap)/2 - 1; i >= 0; i-- {
		l.down(i)
	}
}

func (l *lane[T]) remove(i int) {
	last := len(l.heap) - 1
	l.swap(i, last)
	l.heap[last] = nil
	l.heap = l.heap[:last]
	if i < last {
		l.down(i)
		l.up(i)
	}
}

func (l *lane[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !l.heap[i].before(l.heap[parent]) {
			return
		}
		l.swap(i, parent)
		i = parent
	}
}

func (l *lane[T]) down(i int) {
	for {
		first := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(l.heap); k++ {
			if l.heap[k].before(l.heap[first]) {
				first = k
			}
		}
		if first == i {
			return
		}
		l.swap(i, first)
		i = first
	}
}

func (l *lane[T]) swap(i, j int) {
	h := l.heap
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
