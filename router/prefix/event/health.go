package event

import "time"

// Stats are a feed's counters since it was made. Blocks count each time they
// are named.
type Stats struct {
	Batches    uint64 // live messages
	Duplicates uint64 // batches that were there before, live or replayed
	Gaps       uint64 // times that batches were missing
	Lost       uint64 // batches that never came
	Replays    uint64 // times that a replay was asked for
	Replayed   uint64 // batches that a replay brought
	HeldOver   uint64 // live batches that found no room during a gap
	Restarts   uint64 // times that the publisher was another process
	Resyncs    uint64 // times that an operator asked for everything
	Wipes      uint64 // times that all the rank's blocks were wiped

	Events  uint64 // events read, used or not
	Stored  uint64 // blocks stored
	Removed uint64 // blocks removed
	Cleared uint64 // times that the engine emptied its cache

	LastGap time.Duration // how long the last gap took to fill
}

// State is the condition of a feed.
type State uint8

// The conditions.
const (
	// None: nothing ever came.
	None State = iota
	// Live: batches come in order.
	Live
	// Gap: batches are missing and may yet come; the rank is in doubt.
	Gap
	// Silent: the rank works, but says nothing of its cache.
	Silent
	// Doubt: batches were lost for good, and what the rank held before may be gone.
	Doubt
)

// String names the condition as a screen does.
func (s State) String() string {
	return nameOf([]string{"none", "live", "gap", "silent", "in doubt"}, int(s))
}

// happening is something that happened once: when, at which number, to how
// many batches. The zero happening has not happened.
type happening struct {
	at  time.Time
	seq uint64
	n   uint64
}

func (h happening) within(now time.Time, d time.Duration) bool {
	return !h.at.IsZero() && now.Sub(h.at) < d
}

// trouble is a reason for refusals that may go on.
type trouble struct {
	since, last time.Time
	n           uint64
}

// health is what a feed knows about how well it is fed.
type health struct {
	stats       Stats
	refused     Tally
	lastHeard   time.Time // newest live message
	lastGood    time.Time // newest store that could be used
	restartedAt time.Time
	joined      happening // began in the middle: n batches before were never seen
	lost        happening
	doubtful    bool // batches were lost and the rank was not settled since
	settleAt    time.Time
	troubles    [reasons]trouble
	silence     owed // of any event
	barren      owed // of any store that could be used
}

// owed counts the blocks that a rank was made to compute and has not spoken of.
type owed struct {
	blocks uint64
	since  time.Time
}

func (o *owed) add(now time.Time, blocks int) {
	if o.blocks == 0 {
		o.since = now
	}
	o.blocks += uint64(blocks)
}

func (o *owed) overdue(now time.Time) bool {
	return o.blocks > 0 && now.Sub(o.since) >= Patience
}

// Patience is how long traffic may go on before its absence from the events is
// a finding, and how long a trouble that does not recur stays one.
const Patience = 30 * time.Second

// Routed tells the feed that its rank was sent a request for which it must
// compute so many full blocks that it does not hold yet, as far as the router
// knows: that is what its events should speak of. Requests without a full new
// block do not count.
func (f *Feed) Routed(now time.Time, blocks int) {
	if blocks > 0 {
		f.silence.add(now, blocks)
		f.barren.add(now, blocks)
	}
}

// RoutedSince is Routed for a request that was sent at sent and told late what it
// had to compute: what the rank has spoken of since is not owed.
func (f *Feed) RoutedSince(now, sent time.Time, blocks int) {
	if blocks <= 0 {
		return
	}
	if !f.lastHeard.After(sent) {
		f.silence.add(now, blocks)
	}
	if !f.lastGood.After(sent) {
		f.barren.add(now, blocks)
	}
}

// account books what a decoded and filtered batch held.
func (f *Feed) account(now time.Time, b *Batch) {
	f.stats.Events += uint64(b.Seen)
	if b.Seen > 0 {
		f.silence = owed{}
	}
	for i := range b.Events {
		switch e := &b.Events[i]; e.Kind {
		case Stored:
			f.stats.Stored += uint64(len(e.Hashes))
			if !e.ByName() {
				f.lastGood, f.barren = now, owed{}
			}
		case Removed:
			f.stats.Removed += uint64(len(e.Hashes))
		case Cleared:
			f.stats.Cleared++
			f.doubtful, f.joined, f.lost = false, happening{}, happening{} // nothing held, nothing unknown
		}
	}
	if b.Refused.newest == 0 {
		return
	}
	f.refused.Merge(&b.Refused)
	for r, n := range b.Refused.counts {
		if n == 0 {
			continue
		}
		t := &f.troubles[r]
		if !f.goesOn(t, now) {
			*t = trouble{since: now}
		}
		t.last = now
		t.n += n
	}
}

// goesOn reports whether a trouble is still one: it recurred within Patience,
// or nothing came since that would show it gone.
func (f *Feed) goesOn(t *trouble, now time.Time) bool {
	return t.n > 0 && (now.Sub(t.last) < Patience || !f.lastGood.After(t.last))
}

// Stats returns the counters.
func (f *Feed) Stats() Stats { return f.stats }

// Refused counts every event that was left out, by reason, with the last of
// each.
func (f *Feed) Refused() *Tally { return &f.refused }

// Sequence returns the number of the batch handed on last; ok is false before
// the first of this process.
func (f *Feed) Sequence() (last uint64, ok bool) {
	return f.next - 1, f.began && f.next > 0
}

// Heard returns when the newest live message came, zero if none did.
func (f *Feed) Heard() time.Time { return f.lastHeard }

// Held returns how many live batches wait during a gap, and their bytes.
func (f *Feed) Held() (batches, bytes int) { return len(f.gap.held), f.gap.bytes }

// InDoubt reports whether what is known of the rank may be wrong: batches are
// missing, or were lost and the doubt has not ended.
func (f *Feed) InDoubt() bool { return f.gap.open || f.doubtful }

// State returns the feed's condition at the time now.
func (f *Feed) State(now time.Time) State {
	switch {
	case f.silence.overdue(now):
		return Silent
	case f.gap.open:
		return Gap
	case f.doubtful:
		return Doubt
	case !f.heard:
		return None
	}
	return Live
}
