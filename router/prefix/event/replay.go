package event

import "time"

// ReplayEnded tells the feed that a replay's answer is complete, or failed. A
// gap that is still open is asked for again after a pause that doubles from
// 200 ms to 5 s; after ReplayTries answers that brought nothing, what is missing
// counts as lost.
func (f *Feed) ReplayEnded(now time.Time) {
	g, r := &f.gap, &f.replay
	if !r.asking {
		return
	}
	r.asking = false
	switch {
	case r.stale:
		r.stale, r.again = false, now
		return
	case r.progressed:
		r.tries, r.again = 0, now
		f.advance(now)
		return
	}
	r.tries++
	r.again = now.Add(min(5*time.Second, 100*time.Millisecond<<min(r.tries, 10)))
	if g.open && r.tries >= f.cfg.ReplayTries {
		g.resync, g.verify, r.tries = false, false, 0
		f.unhold(now)
		if len(g.held) > 0 || f.next <= f.highest {
			f.lose(now)
		}
	}
	f.advance(now)
}

// Tick lets time pass: it gives up on batches that do not come, and ends doubts.
// Call it a few times a second while InDoubt; more often costs nothing.
func (f *Feed) Tick(now time.Time) {
	if f.replay.asking && now.Sub(f.replay.asked) >= f.cfg.ReplayTimeout {
		f.ReplayEnded(now)
	}
	f.expire(now)
	f.advance(now)
}

// Resync asks for everything afresh: the whole replay if there is one, and
// nothing is wiped before its first batch is there. Without replay what is
// known is wiped at once, and fills again as the engine goes on.
func (f *Feed) Resync(now time.Time) {
	f.stats.Resyncs++
	if !f.cfg.Replay {
		f.wipe(false)
		f.began, f.doubtful = false, false
		f.first = f.next
		return
	}
	f.gap.begin(now)
	f.gap.resync = true
	f.replay.stale, f.replay.again = f.replay.asking, now
}

// endOfReplay is the number that ends a replay's answer, never a batch's.
const endOfReplay = 1<<64 - 1
