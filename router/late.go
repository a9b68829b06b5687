package router

import (
	"time"

	"adpdeck/router/load"
	"adpdeck/router/model"
)

// Sent says over which channel a request that was routed is told its rank, where
// Request.Channel could not say it: that depends on the worker. It counts once;
// for a request that is not open, or that goes to a worker whose engine picks the
// rank, it does nothing.
func (r *Router) Sent(id int64, channel string) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	b := r.book.Get(id)
	if b == nil || b.Worker == load.Gone || b.Rank == model.NoRank || b.Value.picks || b.Value.first || b.Value.channel != "" {
		return
	}
	b.Value.channel = channel
	r.ask(r.places[b.Worker], b)
}

// Cached tells what an engine found in cache for a request whose first token came
// without it (Usage.CachedUnknown): a stream says it at its end. Where the engine
// had not said which rank it used, u.Ran may say it now. What FirstToken knew
// stays; for a request that is not open, or whose first token did not come, it
// does nothing.
func (r *Router) Cached(id int64, u model.Usage) {
	now := r.clock.Now()
	c := r.cached(now, id, u)
	if c.guess != nil {
		r.know.remember(c.guess, now.Sub(r.start))
	}
	if s := r.know.seats.Load().of(c.ran); s != nil && c.blocks > 0 {
		s.mu.Lock()
		s.tell(now)
		s.feed.RoutedSince(s.now, c.sent, c.blocks)
		s.mu.Unlock()
	}
	r.know.answered(id, c.ran, c.found, now)
	r.endDoubts(now)
}

func (r *Router) cached(now time.Time, id int64, u model.Usage) news {
	r.lock(now)
	defer r.unlock()
	c := noNews()
	b := r.book.Get(id)
	if b == nil || b.Worker == load.Gone || !b.Value.first {
		return c
	}
	t := &b.Value
	fresh := t.unsaid && !u.CachedUnknown
	if fresh {
		t.unsaid, t.cached = false, min(max(u.CachedTokens, 0), t.prompt)
	}
	r.stamp++
	c.guess = r.ranLate(b, &u)
	if !fresh {
		return c
	}
	if v := t.conv; v != nil {
		v.data.PromptTokens, v.data.CachedTokens, v.data.CachedUnknown = t.prompt, t.cached, false
		r.convs.touch(v, &r.stamp)
	}
	r.addHit(&r.hits, t)
	if t.ran.Rank == model.NoRank {
		return c // its engine picked the rank and does not tell
	}
	r.book.Adjust(b, t.prompt-t.cached)
	r.addHit(&r.rank(t.ran).hits, t)
	c.ran, c.sent, c.found = t.ran, t.came, r.noteIndex(t)
	if block := r.know.blockTokens(); block > 0 {
		c.blocks = t.prompt/block - t.cached/block
	}
	return c
}

// ranLate takes the rank that an engine used where only the end of its answer
// says it. It returns what is to be remembered of a rank that was picked.
func (r *Router) ranLate(b *booking, u *model.Usage) (guess *note) {
	t := &b.Value
	if r.rank(u.Ran) == nil {
		return nil
	}
	switch {
	case t.picks && b.Rank == model.NoRank && u.Ran.Worker == t.target.Worker:
		guess = r.picked(b, u.Ran)
	case !t.picks && b.Rank != model.NoRank && t.proof != nil && !t.proven:
		t.proven = true
		r.prove(t.proof, t.target, u.Ran, evidenceOf(u.Evidence))
		r.begun(b, true)
	default:
		return nil
	}
	t.ran = u.Ran
	r.followRank(b, true)
	return guess
}
