package event

import (
	"strconv"
	"time"

	"github.com/zeebo/xxh3"
)

// Feed follows one publisher of events: one rank of an engine. It hands batches
// on in the order of their numbers, each once:
//
//	number  is next         handed on, and whatever waited behind it
//	number  was there       a duplicate, dropped – or a restart, see below
//	number  is further      a gap: the batch waits, and a replay is wanted
//
// A restart is told by content and connection, not by number alone: a number
// that was there before with other bytes is another process, and so is an old
// number that opens a new connection, or is followed by the next, with bytes
// nobody remembers. A duplicate has the bytes that were seen. A restart wipes this publisher's ranks at once.
//
// During a gap the feed is in doubt: live batches wait (bounded), and the
// replay goes first. Nothing is wiped unless batches are known to be lost. On a
// new connection the replay is asked for one batch more than is missing: if its
// bytes differ from those remembered, the engine restarted unseen.
//
// A Feed is not safe for concurrent use, and the sink must not call back into
// it. Times passed to its methods must not run backwards.
type Feed struct {
	cfg    Config
	sink   func(*Batch)
	dec    Decoder
	batch  Batch
	filter filter

	next  uint64 // the number that comes next
	began bool   // something was handed on since the last wipe or start
	first uint64 // first number of this process that was handed on
	conn  uint64 // connection of the newest live batch
	heard bool   // any live batch came
	seen  memory
	// forgotten is the newest old batch whose content nobody remembers: one is a
	// late duplicate, two in a row are another process.
	forgotten happening
	highest   uint64 // highest live number of this process
	onConn    uint64 // highest live number on this connection
	gap       gap
	replay    replay

	ranks []int32 // ranks spoken for, configured one first
	health
}

// NewFeed returns a feed that hands batches to sink. A batch holds only until
// sink returns. The error names the field of cfg that cannot be.
func NewFeed(cfg Config, sink func(*Batch)) (*Feed, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Feed{
		cfg: cfg, sink: sink, filter: newFilter(cfg.Format, cfg.BlockTokens),
		ranks: []int32{int32(cfg.Rank)},
	}, nil
}

// SetRanks changes StartRank and Ranks of the configuration from the next batch
// on: the worker has grown or shrunk. What was handed on before stays.
func (f *Feed) SetRanks(start, ranks int) { f.cfg.StartRank, f.cfg.Ranks = start, ranks }

// memory remembers the content of recent batches by number.
type memory struct {
	zero    uint64 // of batch 0
	hasZero bool
	from    uint64 // first number in ring
	to      uint64 // one behind the last
	ring    []uint64
}

const remembered = 1024

func (m *memory) put(seq, content uint64) {
	if m.ring == nil {
		m.ring = make([]uint64, remembered)
	}
	if seq == 0 {
		m.zero, m.hasZero = content, true
	}
	if seq != m.to || m.from == m.to {
		m.from = seq
	}
	m.to = seq + 1
	if m.to-m.from > remembered {
		m.from = m.to - remembered
	}
	m.ring[seq%remembered] = content
}

func (m *memory) get(seq uint64) (content uint64, ok bool) {
	if seq >= m.from && seq < m.to {
		return m.ring[seq%remembered], true
	}
	return m.zero, seq == 0 && m.hasZero
}

func (m *memory) reset() { m.hasZero, m.from, m.to = false, 0, 0 }

// Live takes a batch as it was published: conn names the connection that
// brought it and changes with every reconnect, seq is the batch's number, and
// payload its bytes, which the feed copies if it must keep them.
func (f *Feed) Live(now time.Time, conn, seq uint64, payload []byte) {
	content := xxh3.Hash(payload)
	fresh := f.heard && conn != f.conn
	f.conn, f.heard = conn, true
	f.stats.Batches++
	f.lastHeard = now
	if seq == endOfReplay { // the end marker of a replay, never a batch
		f.stats.Duplicates++
		return
	}
	if fresh {
		f.onConn = 0
	}
	f.onConn = max(f.onConn, seq)
	if f.restarted(fresh, seq, content) {
		f.onConn = seq
		f.restart(now, conn, seq, payload, content)
		return
	}
	if fresh && f.cfg.Replay && seq >= f.next {
		f.suspect(now, conn)
	}
	f.highest = max(f.highest, seq)
	switch {
	case seq < f.next:
		f.stats.Duplicates++
	case seq == f.next && !f.gap.blocked():
		f.accept(now, seq, payload, content)
		f.advance(now)
	case !f.began && !f.gap.open && !f.cfg.Replay: // joined late; nothing can be wrong, only missing
		f.joined = happening{at: now, seq: seq, n: seq}
		f.next = seq
		f.accept(now, seq, payload, content)
	default:
		f.hold(now, conn, seq, payload, content)
		f.advance(now)
	}
}

// restarted decides whether a batch comes from another process than those
// before it.
func (f *Feed) restarted(fresh bool, seq, content uint64) bool {
	if h := f.gap.find(seq); h != nil {
		return h.content != content
	}
	if !f.began || seq >= f.next {
		return false
	}
	if f.cfg.Format == TRTJSON && seq == 0 {
		return true // a drained number never comes again, and event 0 is the same in every process
	}
	if known, ok := f.seen.get(seq); ok {
		return known != content
	}
	run := f.forgotten.n > 0 && seq == f.forgotten.seq+1
	f.forgotten = happening{seq: seq, n: 1}
	return fresh || run || seq == 0 && f.first > 0 || f.cfg.Format == TRTJSON
}

// suspect prepares for the case that a new connection leads to a process that
// restarted unseen: the next replay must show that it did not. Answers on their
// way, and batches held from other connections, are from before and do not
// count; the replay brings them again if they are still true.
func (f *Feed) suspect(now time.Time, conn uint64) {
	if f.replay.asking {
		f.replay.stale = true
	}
	f.gap.keepOnly(conn)
	f.highest = f.onConn
	if f.began {
		f.gap.begin(now)
		f.gap.verify = true
	}
}

func (f *Feed) restart(now time.Time, conn, seq uint64, payload []byte, content uint64) {
	f.forget(now)
	f.highest = seq
	if seq == 0 || !f.cfg.Replay {
		if seq > 0 {
			f.joined = happening{at: now, seq: seq, n: seq}
		}
		f.next = seq
		f.accept(now, seq, payload, content)
		return
	}
	f.hold(now, conn, seq, payload, content)
}

// forget makes a new process of the publisher: everything known goes.
func (f *Feed) forget(now time.Time) {
	f.stats.Restarts++
	f.restartedAt = now
	f.wipe(true)
	f.filter = newFilter(f.cfg.Format, f.cfg.BlockTokens)
	f.seen.reset()
	f.forgotten = happening{}
	f.gap = gap{}
	f.replay = replay{asking: f.replay.asking, stale: f.replay.asking, asked: f.replay.asked}
	f.next, f.first, f.began, f.highest = 0, 0, false, 0
	f.doubtful, f.joined, f.lost = false, happening{}, happening{}
}

// accept hands a batch on whose turn it is.
func (f *Feed) accept(now time.Time, seq uint64, payload []byte, content uint64) {
	if !f.began {
		f.began, f.first = true, seq
	}
	f.seen.put(seq, content)
	f.next = seq + 1
	f.handOn(now, payload)
}

// wipe tells the sink that this publisher's ranks hold nothing any more.
func (f *Feed) wipe(restart bool) {
	if !f.began {
		return
	}
	for _, rank := range f.ranks {
		f.batch.Reset()
		e := f.batch.add()
		e.Kind, e.Rank, e.Restart, e.Synthetic = Cleared, rank, restart, true
		f.batch.Rank = rank
		f.sink(&f.batch)
	}
	f.ranks = f.ranks[:1]
	f.stats.Wipes++
}

func (f *Feed) handOn(now time.Time, payload []byte) {
	b := &f.batch
	switch f.cfg.Format {
	case TRTJSON:
		_ = f.dec.TRT(payload, b) // the error is counted in b.Refused, like those below
	case RouterJSON:
		_ = f.dec.RouterEvents(payload, b)
	default:
		_ = f.dec.Batch(payload, b)
	}
	if f.cfg.Format == RouterJSON && len(b.Events) > 0 {
		b.Rank = b.Events[0].Rank
	}
	if f.place(b) {
		f.filter.apply(b)
	}
	f.account(now, b)
	if len(b.Events) > 0 {
		f.sink(b)
	}
}

// maxSpoken is how many ranks one publisher may speak for.
const maxSpoken = 256

// place gives every event the router's rank: the batch's word goes before the
// configuration's. A rank that the worker does not have refuses the batch.
func (f *Feed) place(b *Batch) bool {
	rank := int32(f.cfg.Rank)
	if b.Rank != NoRank {
		rank = b.Rank - int32(f.cfg.StartRank)
		if rank < 0 || f.cfg.Ranks > 0 && int(rank) >= f.cfg.Ranks {
			b.Refused.Add(Refusal{
				Reason: UnknownRank, Field: "data_parallel_rank", Got: strconv.Itoa(int(b.Rank)),
				Value: int64(b.Rank),
			})
			b.Events = b.Events[:0]
			return false
		}
	}
	b.Rank = rank
	for i := range b.Events {
		b.Events[i].Rank = rank
	}
	f.speaksFor(rank)
	return true
}

func (f *Feed) speaksFor(rank int32) {
	for _, r := range f.ranks {
		if r == rank {
			return
		}
	}
	if len(f.ranks) < maxSpoken {
		f.ranks = append(f.ranks, rank)
	}
}
