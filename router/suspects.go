package router

import (
	"slices"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// A request that finds less in a rank's cache than the rank was known to hold
// disproves what is in doubt there: a removal was among the events that were
// lost. It disproves nothing where the rank's events explain it. So such a
// request is watched from when it is sent: it says nothing of a rank that was
// not in doubt then, of blocks that events have removed since, however late they
// come, or once the rank has begun another doubt.

// suspect is a request that was sent to a rank of which what the request was to
// find there is in doubt.
type suspect struct {
	id     int64
	sent   time.Time
	chain  []prefix.Chain // up to the last block that is in doubt
	told   bool           // by the engine, at toldAt: it found so many tokens
	toldAt time.Time
	found  int
}

const (
	// maxSuspects bounds the requests that are watched at one rank; no more are
	// until one of them has an answer, or the oldest has had none for suspectFor.
	maxSuspects = 16
	suspectFor  = time.Minute
	// eventsLag is how long events are awaited that may explain what a request
	// found: they come by another way than its answer.
	eventsLag = time.Second
)

// suspect begins to watch a request that was just sent. It runs without the
// router's lock, and waits for no batch of events: then the request is not
// watched.
func (k *knowledge) suspect(id int64, t model.Target, l *lookup, now time.Time) {
	if l == nil || l.text || k.doubts.Load() == 0 || t.Rank == model.NoRank {
		return
	}
	s := k.seats.Load().of(t)
	if s == nil || l.matches.Total(prefix.ID(s.slot)) == 0 || l.gen != k.gen.Load() || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if _, doubted := s.feed.DoubtUntil(); !doubted || s.gone {
		return
	}
	if len(s.suspects) >= maxSuspects {
		if s.suspects[0].told || now.Sub(s.suspects[0].sent) < suspectFor {
			return
		}
		s.suspects = slices.Delete(s.suspects, 0, 1)
	}
	if n := k.index.InDoubt(prefix.ID(s.slot), l.chain); n > 0 {
		s.suspects = append(s.suspects, suspect{id: id, sent: now, chain: slices.Clone(l.chain[:n])})
	}
}

// answered notes how many tokens the engine found in its cache for a request, -1
// where that says nothing of what was known of the rank t.
func (k *knowledge) answered(id int64, t model.Target, found int, now time.Time) {
	if found < 0 || k.doubts.Load() == 0 {
		return
	}
	s := k.seats.Load().of(t)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.suspects, func(u suspect) bool { return u.id == id && !u.told })
	switch {
	case at < 0:
	case !s.less(&s.suspects[at], found):
		s.suspects = slices.Delete(s.suspects, at, at+1)
	default:
		u := &s.suspects[at]
		u.told, u.toldAt, u.found = true, now, found
		s.noteDoubt()
	}
}

// less reports that a request found less than what it was watched for. An engine
// computes a prompt's last block also where it holds it.
func (s *source) less(u *suspect, found int) bool {
	block := s.k.blockTokens()
	return len(u.chain)*block-found > block
}

// explain stops watching requests whose blocks an event has just removed. The
// caller has s.mu.
func (s *source) explain() {
	if len(s.suspects) == 0 {
		return
	}
	if s.matcher == nil {
		s.matcher = s.k.index.NewMatcher()
	}
	s.suspects = slices.DeleteFunc(s.suspects, func(u suspect) bool {
		s.matcher.Match(u.chain, &s.matches)
		return s.matches.Total(prefix.ID(s.slot)) < len(u.chain)
	})
}

// judge ends the rank's doubt where a request has disproved it. The caller has
// s.mu.
func (s *source) judge(now time.Time) {
	for i := range s.suspects {
		if u := &s.suspects[i]; u.told && now.Sub(u.toldAt) >= eventsLag {
			s.suspects = nil
			s.feed.Disproved()
			return
		}
	}
}

// verdict is when the first request that is watched will have disproved the
// doubt; ok is false for none.
func (s *source) verdict() (at time.Time, ok bool) {
	for i := range s.suspects {
		if u := &s.suspects[i]; u.told && (!ok || u.toldAt.Before(at)) {
			at, ok = u.toldAt, true
		}
	}
	return at.Add(eventsLag), ok
}
