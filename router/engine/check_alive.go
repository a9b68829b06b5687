package engine

import (
	"context"
	"errors"

	"adpdeck/router/model"
)

// check asks one address again and again whether the engine is well, apart from
// how busy it is.
func (w *worker) check(ctx context.Context, d *door) {
	defer d.slow.end()
	for {
		began := w.f.age()
		why := w.ask(ctx, d)
		if ctx.Err() != nil {
			return
		}
		if why != "" && d.heard.Load() > int64(began) {
			why = "" // too busy for the question, but it answers requests
		}
		w.mu.Lock()
		turned := d.life.saw(why)
		again := d.life.up && d.life.fails > 0
		if turned && d.life.up {
			w.trust(d) // it has begun anew, or at least again
		}
		w.mu.Unlock()
		if turned {
			nudge(w.poke)
			nudge(w.again)
		}
		wait := w.f.o.spread(checkPeriod)
		if again {
			wait = recheckPause
		}
		if !pause(ctx, wait, d.wake) {
			return
		}
	}
}

// ask puts the question once: empty is yes, else why not.
func (w *worker) ask(ctx context.Context, d *door) (why string) {
	if w.spec.Kind == model.EngineSGLang {
		return w.askBoth(ctx, d)
	}
	a, err := w.fetch(ctx, under(d.base, "/health"), nil, maxHealthPage, checkTimeout)
	if err != nil {
		return plain(err, checkTimeout)
	}
	return w.unwell(a)
}

// Answered says that an engine has begun to answer a request on t, whose rank
// may be NoRank. It takes away doubt.
func (f *Fleet) Answered(t model.Target) {
	w, err := f.worker(t.Worker)
	if err != nil {
		return
	}
	if d := w.door(t.Rank); d != nil {
		d.heard.Store(int64(w.f.age()))
	}
	if w.doubtful.Load() == 0 || t.Rank < 0 {
		return
	}
	w.mu.Lock()
	turned := false
	if t.Rank < len(w.doubts) && w.doubts[t.Rank].fails > 0 {
		turned = w.believe(t.Rank)
	}
	w.mu.Unlock()
	if turned {
		nudge(w.poke)
	}
}

// Failed says that a request on t got no answer from its engine, and why. It has
// the engine checked at once, and takes a rank out that fails request after
// request while its engine answers. A request that its client gave up says
// nothing and must not be reported; nor must an answer that is an error.
func (f *Fleet) Failed(t model.Target, err error) {
	w, unknown := f.worker(t.Worker)
	if unknown != nil || err == nil || errors.Is(err, context.Canceled) {
		return
	}
	d := w.door(t.Rank)
	if d == nil {
		return
	}
	nudge(d.wake)
	if t.Rank < 0 {
		return // the engine picked: nobody knows which rank it was
	}
	w.mu.Lock()
	turned := false
	if t.Rank < len(w.doubts) {
		q := &w.doubts[t.Rank]
		if q.fails == 0 {
			w.doubtful.Add(1)
		}
		turned = q.failed(plain(err, 0))
	}
	w.mu.Unlock()
	if turned {
		nudge(w.poke)
		nudge(w.trials)
	}
}

// door is the address that leads to a rank, nil for none.
func (w *worker) door(rank int) *door {
	if w.doors[0].rank == model.NoRank {
		return w.doors[0]
	}
	if rank < 0 || rank >= len(w.doors) {
		return nil
	}
	return w.doors[rank]
}
