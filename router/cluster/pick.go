package cluster

import (
	"math"
	"math/rand/v2"

	"adpdeck/router/model"
)

// pick chooses among the costs of the eligible slots (dynamo.md 1.3).
func (r *Router) pick(req *Request, c *Choice, rec *model.Selection) {
	sc := &r.scratch
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, i := range sc.live {
		lo, hi = min(lo, sc.cost[i]), max(hi, sc.cost[i])
	}
	var chosen int32
	if c.config.Temperature == 0 {
		chosen = r.lowest(req, c, lo)
		c.take(r, chosen, model.ByCost)
	} else {
		var draw float64
		chosen, draw = r.drawn(lo, hi, c.config.Temperature)
		c.take(r, chosen, model.ByTemperature)
		if rec != nil {
			rec.Draw = model.Maybe(draw)
		}
	}
	c.Cost = sc.cost[chosen]
	second := math.Inf(1)
	for _, i := range sc.live {
		if i != chosen && sc.cost[i] < second {
			second, c.RunnerUp = sc.cost[i], i
		}
	}
	if c.RunnerUp >= 0 {
		c.Margin = second - c.Cost
	}
	if rec != nil {
		r.probabilities(rec, c, lo)
	}
}

// lowest returns a slot of cost lo. Mode kv keeps Dynamo's reservoir: each of
// the tied is as likely. Lockstep keeps the prefix where it was last sent, or
// takes the slot that has been without new work the longest.
func (r *Router) lowest(req *Request, c *Choice, lo float64) int32 {
	sc := &r.scratch
	chosen, reservoir := none, r.mode != model.ModeLockstep
	for _, i := range sc.live {
		if sc.cost[i] != lo {
			continue
		}
		c.Tied++
		switch {
		case chosen == none:
			chosen = i
		case reservoir:
			if r.uniform(c.Tied) == 0 {
				chosen = i
			}
		case r.lastOn(i) < r.lastOn(chosen):
			chosen = i
		}
	}
	switch {
	case c.Tied < 2:
	case reservoir:
		c.Tie = model.TieReservoir
	default:
		c.Tie = model.TieIdle
		if home := r.recent.last(req.Blocks); home >= 0 && sc.why[home] == eligible && sc.cost[home] == lo {
			chosen, c.Tie = home, model.TiePrefix
		}
	}
	return chosen
}

// drawn draws a slot by range-normalised softmax.
func (r *Router) drawn(lo, hi, temperature float64) (chosen int32, draw float64) {
	sc := &r.scratch
	sum := 0.0
	for _, i := range sc.live {
		sc.prob[i] = 1
		if lo != hi {
			sc.prob[i] = math.Exp(-(sc.cost[i] - lo) / ((hi - lo) * temperature))
		}
		sum += sc.prob[i]
	}
	draw = r.float()
	chosen = none
	cumulative := 0.0
	for _, i := range sc.live {
		sc.prob[i] /= sum
		cumulative += sc.prob[i]
		if chosen == none && cumulative >= draw {
			chosen = i
		}
	}
	if chosen == none {
		chosen = sc.live[len(sc.live)-1]
	}
	return chosen, draw
}

// uniform returns a whole number from 0 to n-1, each as likely.
func (r *Router) uniform(n int) int { return rand.New(&r.rng).IntN(n) }

// float returns a number from 0 up to, not including, 1.
func (r *Router) float() float64 { return rand.New(&r.rng).Float64() }
