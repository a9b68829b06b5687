package cluster

import (
	"time"

	"adpdeck/router/model"
)

// Take makes the choice that its caller has made by other means: an operator's
// pin, or a rule that this package does not know. No filter is applied; Book
// books it like any other. by is one of model.By…; t may have NoRank. The error
// is a *Refusal: the target does not exist, or the request makes no sense.
func (r *Router) Take(now time.Duration, req *Request, t model.Target, by string, c *Choice, rec *model.Selection) error {
	*c = Choice{Slot: none, RunnerUp: none, Target: model.Target{Rank: model.NoRank}, worker: -1}
	c.config = r.effective(req.Overrides)
	if rec != nil {
		r.begin(req, c, rec)
	}
	if err := r.check(req); err != nil {
		return err
	}
	at, ok := r.Slot(t)
	w, there := r.byID[t.Worker]
	switch {
	case ok:
		c.take(r, at, by)
	case !there:
		return &Refusal{Err: ErrNoWorker, Request: req.ID, Detail: t.Worker, Next: "name a worker that is there", Status: 400}
	case t.Rank != model.NoRank:
		return &Refusal{Err: ErrNoRank, Request: req.ID, Detail: t.String(), Next: "name a rank of the worker", Status: 400}
	default:
		c.Slot, c.By, c.worker, c.Target = NoRankSlot(int(w)), by, w, t
	}
	c.Eligible = 1
	r.reach(req, c)
	c.LostTo = ""
	if c.Slot >= 0 && c.CachedTokens < c.Reachable {
		c.LostTo = LostPin
	}
	if rec == nil {
		return nil
	}
	rec.Chosen, rec.By, rec.Eligible = c.Target, c.By, c.Eligible
	if c.Slot < 0 {
		rec.Candidates = rec.Candidates[:0]
		return nil
	}
	r.recordBound(now, req, c, rec)
	return nil
}
