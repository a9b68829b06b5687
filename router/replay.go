package router

import (
	"time"

	"adpdeck/router/model"
)

// Gaps is where ranks ask for event batches that they have missed, one at a time
// for each rank of a worker with WorkerSpec.KVReplay. Who reads it asks the
// engine for the batches from Gap.From on, passes them on by Replayed, and ends
// with ReplayDone, also when it failed. While nobody reads, nothing is asked
// for, and nothing waits.
func (r *Router) Gaps() <-chan model.Gap { return r.gaps }

// Replayed takes one batch of a replay's answer.
func (r *Router) Replayed(worker string, rank int, seq uint64, payload []byte) {
	r.onFeed(model.Target{Worker: worker, Rank: rank}, func(s *source) { s.feed.Replayed(s.now, seq, payload) })
}

// ReplayDone ends the answer to a Gap; err says why there is none, nil for
// nothing. What is still missing is asked for again after a while.
func (r *Router) ReplayDone(worker string, rank int, err error) {
	r.onFeed(model.Target{Worker: worker, Rank: rank}, func(s *source) {
		s.feed.ReplayEnded(s.now)
		s.replayErr = ""
		if err != nil {
			s.replayErr = cut(err.Error(), maxWhyBytes)
		}
	})
}

// onFeed does something with the feed of a rank and what follows from it.
func (r *Router) onFeed(t model.Target, do func(s *source)) {
	s := r.know.seats.Load().of(t)
	if s == nil {
		return
	}
	now := r.clock.Now()
	s.mu.Lock()
	restart := false
	if !s.gone {
		s.tell(now)
		do(s)
		s.noteDoubt()
		r.askReplay(s)
		restart = s.tellsRestart()
	}
	s.mu.Unlock()
	if restart {
		r.restarted(now, s.target, nil, "its event numbers began anew")
	}
}

// askReplay asks for a replay where one is wanted. The caller has the source's
// lock.
func (r *Router) askReplay(s *source) {
	if len(r.gaps) == cap(r.gaps) {
		return // later
	}
	from, ok := s.feed.Want(s.now)
	if !ok {
		return
	}
	select {
	case r.gaps <- model.Gap{Target: s.target, From: from}:
	default: // somebody was faster: the next try comes after the usual pause
		s.feed.ReplayEnded(s.now)
	}
}

// tick lets time pass for a feed.
func (r *Router) tick(now time.Time, s *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	s.tell(now)
	s.feed.Tick(s.now)
	s.noteDoubt()
	r.askReplay(s)
}
