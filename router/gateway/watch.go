package gateway

import (
	"errors"

	"adpdeck/router/gateway/tap"
	"adpdeck/router/model"
)

// firstEvent is called with the first event of a stream: the prefill is done.
func (t *trip) firstEvent(data []byte) {
	now := t.g.clock.Now()
	ttft := now.Sub(t.start)
	t.g.metrics.ttft.Observe(ttft.Seconds())
	u := model.Usage{CachedUnknown: true, TTFTMs: float64(ttft.Microseconds()) / 1000}
	t.ran(&u, data)
	t.first = true
	t.g.router.FirstToken(t.req.ID, u)
}

// progress is called now and then while a stream passes.
func (t *trip) progress(events int) { t.g.router.Output(t.req.ID, events) }

// bodyEnded is called once, when the answer has passed or broke off. What the
// engine says of its use comes at the end: for a stream after its first token,
// which the router then knows already.
func (t *trip) bodyEnded(e tap.End) {
	t.ended = e
	if errors.Is(e.Err, tap.ErrNoEnding) {
		t.g.metrics.unfinished.Inc()
	}
	if e.Err != nil && t.ctx.Err() == nil {
		t.g.engines.Failed(t.target, e.Err)
		t.g.log.Info("engine broke off", "target", t.target.String(), "route", t.route, "err", e.Err)
	}
	if t.status >= 300 || e.Failed && e.Events == 0 {
		return
	}
	u := model.Usage{CachedUnknown: e.Usage.Cached < 0, CachedTokens: max(e.Usage.Cached, 0), TTFTMs: -1}
	t.ran(&u, e.Usage.JSON)
	if e.Complete || t.first {
		t.usage(u, e.Usage)
	}
}

// usage tells the router what a request found in cache.
func (t *trip) usage(u model.Usage, said tap.Usage) {
	if said.Output > 0 {
		t.g.router.Output(t.req.ID, said.Output)
	}
	t.g.metrics.used(t, said)
	if t.first {
		t.g.router.Cached(t.req.ID, u)
	} else {
		t.g.router.FirstToken(t.req.ID, u)
	}
}

// ran fills in where the engine says that the request ran.
func (t *trip) ran(u *model.Usage, body []byte) {
	u.Ran = model.Target{Worker: t.target.Worker, Rank: model.NoRank}
	if ran, evidence, known := t.g.engines.Ran(t.target, t.header, body); known {
		u.Ran, u.Evidence = ran, evidence
	}
}
