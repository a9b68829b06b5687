package router

import (
	"time"

	"adpdeck/router/model"
)

// A rank that lost event batches is in doubt (see event.Feed): it goes on being
// credited with what it held, for a while. The doubt ends in time although
// nothing more is heard of the rank, and at once when a request disproves it;
// both are noticed when a first token comes, outside the router's lock.

// noteDoubt remembers when the rank's doubt ends. The caller has s.mu.
func (s *source) noteDoubt() {
	at, ok := s.feed.DoubtUntil()
	if !ok {
		return
	}
	for due := at.UnixNano(); ; {
		old := s.k.doubts.Load()
		if old != 0 && old <= due || s.k.doubts.CompareAndSwap(old, due) {
			return
		}
	}
}

// endDoubts ends the doubts whose time is over or that were disproved.
func (r *Router) endDoubts(now time.Time) {
	k := r.know
	due := k.doubts.Load()
	if due == 0 || now.UnixNano() < due || !k.doubts.CompareAndSwap(due, 0) {
		return
	}
	for _, list := range r.sources {
		for _, s := range list {
			s.mu.Lock()
			s.tell(now)
			s.feed.Tick(s.now)
			s.noteDoubt()
			s.mu.Unlock()
		}
	}
}

// disprove notes that a rank held less than it was known to hold.
func (r *Router) disprove(t model.Target) {
	r.sources[r.byID[t.Worker]][t.Rank].disproved.Store(true)
	if r.know.doubts.Load() != 0 {
		r.know.doubts.Store(1) // long ago
	}
}
