package cluster

import (
	"errors"
	"math"
	"time"
)

// Errors of Load.Book.
var (
	// ErrDuplicate is returned when a request of that id is booked.
	ErrDuplicate = errors.New("a request with this id is booked already")
	// ErrBooked is returned when MaxBookings are open.
	ErrBooked = errors.New("too many open bookings")
)

// Bounds of a Load.
const (
	MaxBookings      = 1 << 18
	MaxTrackedBlocks = 1 << 23 // hashes in memory: 64 MiB; blocks beyond count as unshared
)

// none ends the lists of bookings.
const none = int32(-1)

// Booking is what a request adds to the slot that it is sent to.
type Booking struct {
	ID int64
	// Slot is a rank's number, or NoRankSlot of a worker.
	Slot int32
	// PromptTokens is the whole prompt; PrefillTokens what of it is booked as
	// prefill (prompt less match, 0 when prefill is not tracked).
	PromptTokens, PrefillTokens int
	// Blocks are the chain hashes of the prompt's full blocks; they are copied
	// where they are new. Unshared counts further blocks that nobody can share.
	Blocks   []uint64
	Unshared int
	// ExpectedOutput is the output length that the client gave, 0 for none.
	ExpectedOutput int
	// ExpectedPrefill is how long the prefill should take; 0: no model.
	ExpectedPrefill time.Duration
}

// Load is the router's own view of what is active on each slot (dynamo.md
// 1.4). Times are monotonic, counted from any fixed moment. It does not lock.
type Load struct {
	blockTokens int
	ranks, side []slotLoad
	bookings    []booking
	free        []int32
	byID        table
	tree        trie
	oldest      int32 // list of all bookings, longest without a sign of life first
	newest      int32
	clock       uint64 // counts bookings
	counters    LoadCounters
}

// LoadCounters count since the start.
type LoadCounters struct {
	Open      int    // bookings now
	Strays    uint64 // frees, first tokens and outputs of requests that are not booked
	Expired   uint64 // bookings dropped because they showed no sign of life
	Cleared   uint64 // bookings that an operator dropped as phantoms
	Untracked uint64 // bookings whose blocks did not all fit and count as unshared
	Tracked   int    // block hashes in memory
}

type slotLoad struct {
	units      int64 // prompt and output blocks, in units of 1/wholeBlock
	prefill    int64 // booked prefill tokens of requests without a first token
	pending    int64 // what is left of them
	foreign    int64 // reported as pending, by requests that are not ours
	reported   int64 // pending by the newest report, which comes as a step begins
	held       int64 // tokens of all its requests, prompt and output, shared or not
	requests   int32
	waiting    int32 // without a first token
	unmodelled int32 // of them, without an expected duration
	oldest     int32 // prefilling bookings, oldest first
	newest     int32
	anchored   time.Duration // when oldest became the oldest
	duration   time.Duration // of the oldest, 0: no model
	anchor     int64         // tokens booked for the oldest
	last       uint64        // Load.clock of its newest booking; 0: never
}

type booking struct {
	id                int64
	slot, leaf        int32
	unshared          int32
	prompt, generated int
	expected          int
	outBlocks         int64
	part              int64 // weight of unshared and output blocks
	prefill, left     int64
	duration          time.Duration
	at, touched       time.Duration
	prefilling        bool
	before, after     int32 // list of all
	earlier, later    int32 // list of its slot's prefilling
}

// NewLoad returns an empty Load of blocks of blockTokens tokens. seed scatters
// its tables and changes no figure.
func NewLoad(blockTokens int, seed uint64) *Load {
	return &Load{
		blockTokens: max(1, blockTokens), byID: newTable(seed), tree: newTrie(seed, MaxTrackedBlocks),
		oldest: none, newest: none,
	}
}

// NoRankSlot is the slot of requests at the worker whose number is w that have
// no rank yet.
func NoRankSlot(w int) int32 { return int32(-1 - w) }

func (l *Load) grow(ranks, workers int) {
	for len(l.ranks) < ranks {
		l.ranks = append(l.ranks, slotLoad{oldest: none, newest: none})
	}
	for len(l.side) < workers {
		l.side = append(l.side, slotLoad{oldest: none, newest: none})
	}
}

func (l *Load) slot(s int32) *slotLoad {
	if s < 0 {
		return &l.side[-1-s]
	}
	return &l.ranks[s]
}

// Book adds a request to its slot. The slot must exist. Nothing is booked when
// an error is returned.
func (l *Load) Book(now time.Duration, k *Booking) error {
	if _, ok := l.byID.get(uint64(k.ID)); ok {
		return ErrDuplicate
	}
	if l.counters.Open >= MaxBookings {
		return ErrBooked
	}
	i := l.take()
	leaf, held := l.tree.insert(k.Blocks)
	if held < len(k.Blocks) {
		l.counters.Untracked++
	}
	b := &l.bookings[i]
	*b = booking{
		id: k.ID, slot: k.Slot, leaf: leaf, unshared: int32(k.Unshared + len(k.Blocks) - held),
		prompt: k.PromptTokens, expected: k.ExpectedOutput, part: wholeBlock,
		prefill: int64(max(0, k.PrefillTokens)), left: int64(max(0, k.PrefillTokens)),
		duration: k.ExpectedPrefill, at: now, touched: now, prefilling: true,
		before: none, after: none, earlier: none, later: none,
	}
	l.byID.put(uint64(k.ID), i)
	l.counters.Open++
	l.clock++
	l.link(i)
	l.enter(now, i)
	return nil
}

func (l *Load) take() int32 {
	if k := len(l.free); k > 0 {
		i := l.free[k-1]
		l.free = l.free[:k-1]
		return i
	}
	l.bookings = append(l.bookings, booking{})
	return int32(len(l.bookings) - 1)
}

// enter adds booking i to its slot.
func (l *Load) enter(now time.Duration, i int32) {
	b := &l.bookings[i]
	s := l.slot(b.slot)
	s.requests++
	s.held += int64(b.prompt + b.generated)
	s.last = l.clock
	s.units += l.tree.hold(b.leaf, b.slot) + b.part*(int64(b.unshared)+b.outBlocks)
	if b.prefilling {
		l.queuePrefill(now, i)
	}
}

// leave takes booking i off its slot; its blocks stay in the tree only if
// another booking holds them.
func (l *Load) leave(now time.Duration, i int32) {
	b := &l.bookings[i]
	if b.prefilling {
		l.endPrefill(now, i)
	}
	s := l.slot(b.slot)
	s.requests--
	s.held -= int64(b.prompt + b.generated)
	s.units -= l.tree.drop(b.leaf, b.slot) + b.part*(int64(b.unshared)+b.outBlocks)
}

// FirstToken says that the prefill of a request is complete. It reports false,
// and counts a stray, when the request is not booked; a second first token
// changes nothing.
func (l *Load) FirstToken(now time.Duration, id int64) bool {
	i, ok := l.find(id)
	if !ok {
		return false
	}
	l.touch(now, i)
	if l.bookings[i].prefilling {
		l.endPrefill(now, i)
		l.bookings[i].prefilling = false
	}
	return true
}

// Output says how many tokens a request has generated so far. Each time prompt
// and output fill one more block, a block is booked; with an expected output
// its blocks, and those of its prompt that it shares with nobody, then weigh
// what is left of it. A smaller count than before changes nothing.
func (l *Load) Output(now time.Duration, id int64, generated int) bool {
	i, ok := l.find(id)
	if !ok {
		return false
	}
	l.touch(now, i)
	b := &l.bookings[i]
	if generated <= b.generated {
		return true
	}
	l.slot(b.slot).held += int64(generated - b.generated)
	grown := int64(l.ceil(b.prompt+generated) - l.ceil(b.prompt+b.generated))
	b.generated = generated
	if grown == 0 {
		return true
	}
	s := l.slot(b.slot)
	s.units += grown * b.part
	b.outBlocks += grown
	if b.expected > 0 {
		f := max(0, 1-float64(generated)/float64(b.expected))
		part := int64(math.Round(f * float64(wholeBlock)))
		s.units += (part-b.part)*(b.outBlocks+int64(b.unshared)) + l.tree.fade(b.leaf, b.slot, part)
		b.part = part
	}
	return true
}

func (l *Load) ceil(tokens int) int { return (tokens + l.blockTokens - 1) / l.blockTokens }

// Move says that the request runs on another slot than it was booked on: the
// engine chose a rank, or did not honour the one it was asked for.
// prefillTokens is what there is to prefill there.
func (l *Load) Move(now time.Duration, id int64, slot int32, prefillTokens int) bool {
	i, ok := l.find(id)
	if !ok {
		return false
	}
	l.touch(now, i)
	b := &l.bookings[i]
	s := l.slot(slot) // held there first, so that the blocks never leave the tree
	l.clock++
	s.units += l.tree.hold(b.leaf, slot) + b.part*(int64(b.unshared)+b.outBlocks)
	s.requests++
	s.held += int64(b.prompt + b.generated)
	s.last = l.clock
	l.leave(now, i)
	b.slot = slot
	if b.prefilling {
		b.prefill, b.left = int64(max(0, prefillTokens)), int64(max(0, prefillTokens))
		l.queuePrefill(now, i)
	}
	return true
}

// Free removes everything of a request, whatever way it ended. The second time
// it reports false and counts a stray.
func (l *Load) Free(now time.Duration, id int64) bool {
	i, ok := l.find(id)
	if ok {
		l.release(now, i)
	}
	return ok
}

// Booked reports where a request is booked.
func (l *Load) Booked(id int64) (slot int32, ok bool) {
	i, ok := l.byID.get(uint64(id))
	if !ok {
		return 0, false
	}
	return l.bookings[i].slot, true
}

// Counters returns the counts.
func (l *Load) Counters() LoadCounters {
	c := l.counters
	c.Tracked = l.tree.blocks
	return c
}

func (l *Load) find(id int64) (int32, bool) {
	i, ok := l.byID.get(uint64(id))
	if !ok {
		l.counters.Strays++
	}
	return i, ok
}

func (l *Load) release(now time.Duration, i int32) {
	l.leave(now, i)
	l.unlink(i)
	l.byID.del(uint64(l.bookings[i].id))
	l.free = append(l.free, i)
	l.counters.Open--
}
