package event

import (
	"bytes"
	"slices"
	"time"

	"github.com/zeebo/xxh3"
)

// gap is what a feed knows of missing batches. The zero gap is closed.
type gap struct {
	open   bool
	since  time.Time
	verify bool // the batch before the gap is asked for again and compared
	resync bool // an operator wants everything afresh
	held   []held
	bytes  int
}

// replay is what a feed knows of the replay that it asked for last.
type replay struct {
	asking     bool // asked for and not ended
	stale      bool // its answers are of no use any more
	asked      time.Time
	again      time.Time // the next one not before then
	tries      int       // in a row that brought nothing
	progressed bool
}

// held is a live batch that waits for those before it.
type held struct {
	seq, conn, content uint64
	payload            []byte
}

func (g *gap) begin(now time.Time) {
	if !g.open {
		*g = gap{open: true, since: now}
	}
}

// blocked reports whether even the next batch must wait.
func (g *gap) blocked() bool { return g.verify || g.resync }

func (g *gap) place(seq uint64) (at int, found bool) {
	n := len(g.held)
	if n == 0 || seq > g.held[n-1].seq {
		return n, false
	}
	return slices.BinarySearchFunc(g.held, seq, func(h held, seq uint64) int { return cmp64(h.seq, seq) })
}

func (g *gap) find(seq uint64) *held {
	if at, ok := g.place(seq); ok {
		return &g.held[at]
	}
	return nil
}

func (g *gap) pop() {
	g.bytes -= len(g.held[0].payload)
	g.held[0] = held{}
	g.held = g.held[1:]
}

// keepOnly lets go of what other connections than conn brought.
func (g *gap) keepOnly(conn uint64) {
	g.held = slices.DeleteFunc(g.held, func(h held) bool { return h.conn != conn })
	g.bytes = 0
	for _, h := range g.held {
		g.bytes += len(h.payload)
	}
}

// hold keeps a live batch until its turn. Beyond the bounds the newest are let
// go: the replay brings them again.
func (f *Feed) hold(now time.Time, conn, seq uint64, payload []byte, content uint64) {
	g := &f.gap
	if !g.open {
		f.stats.Gaps++
	}
	g.begin(now)
	f.silence = owed{} // it speaks, if out of turn
	at, found := g.place(seq)
	switch {
	case found:
		f.stats.Duplicates++
	case len(g.held) >= f.cfg.MaxHeldBatches || g.bytes+len(payload) > f.cfg.MaxHeldBytes:
		f.stats.HeldOver++
	default:
		g.bytes += len(payload)
		g.held = slices.Insert(g.held, at, held{seq: seq, conn: conn, content: content, payload: bytes.Clone(payload)})
	}
}

// advance hands on what waits and is next, and closes the gap when nothing is
// missing any more.
func (f *Feed) advance(now time.Time) {
	g := &f.gap
	if !g.open {
		return
	}
	f.unhold(now)
	if !g.blocked() && len(g.held) == 0 && f.next > f.highest {
		f.stats.LastGap = now.Sub(g.since)
		*g = gap{}
		return
	}
	if !f.cfg.Replay && now.Sub(g.since) >= f.cfg.ReorderWait {
		f.lose(now)
	}
}

func (f *Feed) unhold(now time.Time) {
	g := &f.gap
	for len(g.held) > 0 && !g.blocked() {
		h := g.held[0]
		if h.seq > f.next {
			return
		}
		g.pop()
		if h.seq < f.next {
			f.stats.Duplicates++
			continue
		}
		f.accept(now, h.seq, h.payload, h.content)
	}
}

// lose gives up on what is missing and goes on behind it.
func (f *Feed) lose(now time.Time) {
	g := &f.gap
	to := f.highest + 1
	if len(g.held) > 0 {
		to = g.held[0].seq
	}
	g.verify, g.resync = false, false
	f.loseUntil(now, to)
	f.unhold(now)
	if len(g.held) == 0 && f.next > f.highest {
		*g = gap{}
		return
	}
	g.since, f.replay.tries, f.replay.again = now, 0, now
}

// loseUntil counts the batches before number to as lost for good. What is known
// of the rank may be wrong from here on.
func (f *Feed) loseUntil(now time.Time, to uint64) {
	if to <= f.next {
		return
	}
	n := to - f.next
	f.next = to
	if !f.began { // nothing was known that could be wrong
		f.joined = happening{at: now, seq: to, n: n}
		return
	}
	f.stats.Lost += n
	f.lost = happening{at: now, seq: to, n: n}
	if !f.doubtful { // a doubt that is renewed ends no later
		f.doubtful, f.settleAt = true, now.Add(f.cfg.DoubtFor)
	}
	f.announce(Doubted, false)
}

// expire ends a doubt whose time is over.
func (f *Feed) expire(now time.Time) {
	if f.doubtful && !now.Before(f.settleAt) {
		f.settle()
	}
}

func (f *Feed) settle() {
	f.doubtful = false
	f.announce(Settled, false)
}

// Disproved tells the feed that a request found less in its rank's cache than
// the rank was known to hold. In doubt that shows that removals were among what
// was lost, and the doubt ends at once.
func (f *Feed) Disproved() {
	if f.doubtful {
		f.settle()
	}
}

// DoubtUntil returns when the doubt ends in which lost batches left the rank;
// ok is false when there is none. It ends at the next Live or Tick after that.
func (f *Feed) DoubtUntil() (at time.Time, ok bool) { return f.settleAt, f.doubtful }

// Want says whether a replay should be asked for now, and from which number.
// It says so once; then the caller passes on the answers (Replayed) and their
// end (ReplayEnded, also when asking failed).
func (f *Feed) Want(now time.Time) (from uint64, ok bool) {
	g, r := &f.gap, &f.replay
	if !g.open || !f.cfg.Replay || r.asking || now.Before(r.again) {
		return 0, false
	}
	r.asking, r.stale, r.asked, r.progressed = true, false, now, false
	f.stats.Replays++
	switch {
	case g.resync:
		return 0, true
	case g.verify && f.next > 0:
		return f.next - 1, true
	}
	return f.next, true
}

// Replayed takes one batch of a replay's answer.
func (f *Feed) Replayed(now time.Time, seq uint64, payload []byte) {
	g := &f.gap
	f.replay.asked = now // it speaks
	// An answer goes on when its gap is closed already; it may be ahead of the
	// live batches.
	if seq == endOfReplay || f.replay.stale || !g.open && seq != f.next {
		f.stats.Duplicates++
		return
	}
	content := xxh3.Hash(payload)
	if g.resync {
		g.resync, g.verify = false, false
		f.wipe(false)
		f.filter = newFilter(f.cfg.Format, f.cfg.BlockTokens)
		f.began, f.doubtful, f.next = false, false, 0
		f.lost, f.joined = happening{}, happening{}
	}
	if known, ok := f.seen.get(seq); ok && g.verify && seq < f.next && known != content {
		f.restartUnseen(now)
		return
	}
	g.verify = false
	switch {
	case seq < f.next:
		f.stats.Duplicates++
	default:
		f.loseUntil(now, seq) // an answer that starts above what was asked
		f.accept(now, seq, payload, content)
		f.stats.Replayed++
		f.replay.progressed = true
	}
	f.advance(now)
}

// restartUnseen starts afresh after a replay showed that the publisher is
// another process. Batches of the new connection stay, and all from 0 on is
// asked for.
func (f *Feed) restartUnseen(now time.Time) {
	kept := f.gap.held
	f.forget(now)
	f.highest = f.onConn
	f.gap.begin(now)
	f.gap.held = kept
	f.gap.keepOnly(f.conn)
}
