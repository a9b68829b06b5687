package router

import (
	"fmt"
	"time"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

// sweepEvery is how often bookings whose end was lost are dropped from the
// cluster tier's load.
const sweepEvery = 30 * time.Second

// sweep forgets bindings that are over, and drops bookings without a sign of
// life for booking_expiry_secs. Requests and screens do it, each a bounded part.
func (r *Router) sweep() {
	r.endBindings()
	now := r.elapsed()
	if now-r.steer.swept < sweepEvery {
		return
	}
	r.steer.swept = now
	if n := r.steer.tier.Sweep(now); n > 0 {
		r.event("warn", "router", fmt.Sprintf("dropped the load of %d requests whose end never came: lost ends, or longer than booking_expiry_secs", n), 0)
	}
}

// addPhantoms adds the ranks whose booked load shows no sign of life, in the
// modes that choose by it.
func (r *Router) addPhantoms(out []model.Finding) []model.Finding {
	if !r.scored() {
		return out // nothing looks at the load
	}
	s := &r.steer
	s.phantoms = s.tier.Phantoms(r.elapsed(), s.phantoms[:0])
	for i := range s.phantoms {
		if f, ok := r.phantomFinding(&s.phantoms[i]); ok {
			out = append(out, f)
		}
	}
	return out
}

func (r *Router) phantomFinding(p *cluster.Phantom) (model.Finding, bool) {
	t, ok := r.steer.tier.Target(p.Slot)
	if !ok {
		return model.Finding{}, false
	}
	c := &r.settings.ClusterConfig
	return model.Finding{
		Code: model.FindingPhantom, Target: t, Since: r.start.Add(p.Oldest).Add(seconds(c.PhantomAfterSecs)),
		Message: phantomText(p),
		Next:    fmt.Sprintf("check that the engine's ends reach the router; clear %s drops the load now, booking_expiry_secs (%.0f) does in time", t, c.BookingExpirySecs),
	}, true
}

func phantomText(p *cluster.Phantom) string {
	if p.Requests == 1 {
		return fmt.Sprintf("request %d, booked here with %d prompt tokens, shows no sign of life; most likely its end was lost", p.OldestID, p.PromptTokens)
	}
	return fmt.Sprintf("%d requests booked here (%d prompt tokens) show no sign of life; most likely their ends were lost, the oldest is request %d",
		p.Requests, p.PromptTokens, p.OldestID)
}

// ClearPhantoms drops the phantom load of a rank, or of a worker's requests
// without one when the rank is model.NoRank, from the cluster tier's load, and
// returns of how many requests. They stay open until their ends come.
func (r *Router) ClearPhantoms(t model.Target) int {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	return r.steer.tier.ClearPhantoms(r.elapsed(), t)
}

// planClear plans to drop the phantom load of a rank, or of a worker's requests
// without one.
func (r *Router) planClear(cmd *model.Command) plan {
	if cmd.Target == nil {
		return refuse(model.RefusedMalformed, "name a rank, for example w0/3", "%s: no rank is named", cmd.Verb)
	}
	t := *cmd.Target
	if err := r.checkTarget(t); err != nil {
		return refuse(model.RefusedTarget, r.ranksAre(t.Worker), "%s %s: no such rank", cmd.Verb, t)
	}
	s := &r.steer
	s.phantoms = s.tier.Phantoms(r.elapsed(), s.phantoms[:0])
	for i := range s.phantoms {
		p := &s.phantoms[i]
		if at, ok := s.tier.Target(p.Slot); ok && at == t {
			return plan{
				what: fmt.Sprintf("clear phantom load of %s: %d requests, %d prompt tokens", t, p.Requests, p.PromptTokens),
				act:  func() { s.tier.ClearPhantoms(r.elapsed(), t) },
			}
		}
	}
	what := fmt.Sprintf("clear %s: it has no phantom load", t)
	if t.Rank == model.NoRank {
		what = fmt.Sprintf("clear %s: its requests without a rank are no phantom load; name a rank for that of one", t.Worker)
	}
	return refuse(model.RefusedPhantom, "a finding says where there is some", "%s", what)
}
