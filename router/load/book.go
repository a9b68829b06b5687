// Package load keeps the books of what the router has sent where and not yet
// seen finished. A request is opened once, placed on a rank once, and released
// exactly once, whatever way it ends; at every moment the requests without a
// rank and those booked on ranks add up to the open requests.
//
// Workers and ranks are positions: those that New was given, and those that Add
// and Resize gave out since. The requests of a worker or rank that leaves stay
// open, at Gone, until their ends come. A Book does not lock: the live router
// owns it and calls it under its own lock. Health checks and
// reports of engines never touch it. A released booking is reused, so that the
// steady state allocates nothing.
package load

import (
	"errors"

	"adpdeck/router/model"
)

// ErrDuplicate is returned by Open when a request of that id is open.
var ErrDuplicate = errors.New("a request with this id is open already")

// Gone is the worker of a booking whose worker or rank has left (Depart). It is
// open until it is released, and counts nowhere but in Len and Departed.
const Gone = -1

// maxFree bounds the released bookings that are kept for reuse.
const maxFree = 4096

// Booking is one open request. Its fields are written by the Book alone, but
// for Value, which is its owner's.
type Booking[T any] struct {
	ID     int64
	Worker int
	Rank   int // model.NoRank until placed
	// Prompt and Effective are the tokens booked on the rank: the whole prompt,
	// and what of it was not expected in the cache.
	Prompt, Effective int
	// Value is the owner's. Open hands it out as the last user of the booking
	// left it, so that buffers in it can be reused.
	Value T
}

// Counts is what is booked on one rank.
type Counts struct {
	InFlight        int
	PromptTokens    int
	EffectiveTokens int
}

// Book is the ledger of one router.
type Book[T any] struct {
	open    map[int64]*Booking[T]
	free    []*Booking[T]
	ranks   [][]Counts
	waiting []int // by worker: open and without a rank
	total   []int // by worker: open
	gone    int   // open, their worker or rank has left
	strays  uint64
}

// New returns an empty ledger; ranks holds the number of ranks by worker.
func New[T any](ranks []int) *Book[T] {
	b := &Book[T]{
		open:    map[int64]*Booking[T]{},
		ranks:   make([][]Counts, len(ranks)),
		waiting: make([]int, len(ranks)),
		total:   make([]int, len(ranks)),
	}
	for i, n := range ranks {
		b.ranks[i] = make([]Counts, n)
	}
	return b
}

// Add makes room for a worker and returns its position, the first free one.
func (b *Book[T]) Add(ranks int) (worker int) {
	for i := range b.ranks {
		if b.ranks[i] == nil {
			b.ranks[i] = make([]Counts, ranks)
			return i
		}
	}
	b.ranks = append(b.ranks, make([]Counts, ranks))
	b.waiting, b.total = append(b.waiting, 0), append(b.total, 0)
	return len(b.ranks) - 1
}

// Resize gives a worker more ranks, or fewer: nothing may be booked on those
// that go (Depart).
func (b *Book[T]) Resize(worker, ranks int) {
	next := make([]Counts, ranks)
	copy(next, b.ranks[worker])
	b.ranks[worker] = next
}

// Remove makes the position of a worker free; nothing may be booked there.
func (b *Book[T]) Remove(worker int) { b.ranks[worker] = nil }

// Depart takes what is booked on the ranks of a worker from rank from up away
// from it, with NoRank also what has no rank, and returns those bookings in no
// order. They stay open.
func (b *Book[T]) Depart(worker, from int) (gone []*Booking[T]) {
	for _, k := range b.open {
		if k.Worker == worker && k.Rank >= from {
			b.lift(k)
			b.total[worker]--
			b.gone++
			k.Worker, k.Rank = Gone, model.NoRank
			gone = append(gone, k)
		}
	}
	return gone
}

// Each calls f for every open booking, in no order; f must change none.
func (b *Book[T]) Each(f func(*Booking[T])) {
	for _, k := range b.open {
		f(k)
	}
}

// Departed counts the open requests whose worker or rank has left.
func (b *Book[T]) Departed() int { return b.gone }

// Open books request id at a worker, without a rank yet. It returns
// ErrDuplicate when the id is open.
func (b *Book[T]) Open(id int64, worker int) (*Booking[T], error) {
	if b.open[id] != nil {
		return nil, ErrDuplicate
	}
	k := b.take()
	k.ID, k.Worker, k.Rank, k.Prompt, k.Effective = id, worker, model.NoRank, 0, 0
	b.open[id] = k
	b.waiting[worker]++
	b.total[worker]++
	return k, nil
}

func (b *Book[T]) take() *Booking[T] {
	n := len(b.free)
	if n == 0 {
		return &Booking[T]{}
	}
	k := b.free[n-1]
	b.free = b.free[:n-1]
	return k
}

// Get returns the open booking of id, nil when there is none. It is valid
// until it is released.
func (b *Book[T]) Get(id int64) *Booking[T] { return b.open[id] }

// Place books k on a rank of its worker, with its tokens. A booking that has a
// rank is moved.
func (b *Book[T]) Place(k *Booking[T], rank, prompt, effective int) {
	b.lift(k)
	k.Rank, k.Prompt, k.Effective = rank, prompt, effective
	b.put(k)
}

// Move books k on a rank of another worker, or another rank of its own: the
// engine ran it there.
func (b *Book[T]) Move(k *Booking[T], worker, rank int) {
	b.lift(k)
	b.total[k.Worker]--
	b.total[worker]++
	k.Worker, k.Rank = worker, rank
	b.put(k)
}

// Adjust sets the tokens of k that its rank has to compute, once they are known.
func (b *Book[T]) Adjust(k *Booking[T], effective int) {
	if k.Rank != model.NoRank {
		b.ranks[k.Worker][k.Rank].EffectiveTokens += effective - k.Effective
	}
	k.Effective = effective
}

// Release frees the booking of id and reports whether it was open. Releasing
// what is not open changes nothing but Strays.
func (b *Book[T]) Release(id int64) bool {
	k := b.open[id]
	if k == nil {
		b.strays++
		return false
	}
	delete(b.open, id)
	if k.Worker == Gone {
		b.gone--
	} else {
		b.lift(k)
		b.total[k.Worker]--
	}
	if len(b.free) < maxFree {
		b.free = append(b.free, k)
	}
	return true
}

// lift takes k off its rank, or off the waiting of its worker.
func (b *Book[T]) lift(k *Booking[T]) {
	if k.Rank == model.NoRank {
		b.waiting[k.Worker]--
		return
	}
	c := &b.ranks[k.Worker][k.Rank]
	c.InFlight--
	c.PromptTokens -= k.Prompt
	c.EffectiveTokens -= k.Effective
}

func (b *Book[T]) put(k *Booking[T]) {
	c := &b.ranks[k.Worker][k.Rank]
	c.InFlight++
	c.PromptTokens += k.Prompt
	c.EffectiveTokens += k.Effective
}

// Rank returns what is booked on one rank.
func (b *Book[T]) Rank(worker, rank int) Counts { return b.ranks[worker][rank] }

// Waiting counts the open requests of a worker that have no rank.
func (b *Book[T]) Waiting(worker int) int { return b.waiting[worker] }

// WorkerOpen counts the open requests of a worker, with a rank or without.
func (b *Book[T]) WorkerOpen(worker int) int { return b.total[worker] }

// Len counts the open requests.
func (b *Book[T]) Len() int { return len(b.open) }

// Strays counts releases of requests that were not open: a second release, or
// an id that was never opened.
func (b *Book[T]) Strays() uint64 { return b.strays }
