package tui

import (
	"time"

	"adpdeck/feed"
	"adpdeck/router/model"
)

// The past that a frozen screen can step through: one moment a second.
const (
	pastKept      = 300
	pastDecisions = 32 // newest decisions that a moment keeps
)

// moment is one state of the router that was on the screen. Its parts are
// shared with the feed and never written.
type moment struct {
	state     *model.State
	decisions []*model.Decision
	settled   map[uint64]model.Settled
	at        time.Time // wall time at which it was taken
	sample    int       // trend samples taken by then
}

// newMoment keeps of v what a screen can show: not the whole ring of decisions,
// which would otherwise be held five minutes long.
func newMoment(v *feed.View, at time.Time, sample int) *moment {
	m := &moment{state: v.State, at: at, sample: sample, settled: map[uint64]model.Settled{}}
	newest := v.Decisions[max(0, len(v.Decisions)-pastDecisions):]
	m.decisions = append(m.decisions, newest...)
	for _, d := range newest {
		if s, ok := v.Settled[d.ID]; ok {
			m.settled[d.ID] = s
		}
	}
	return m
}

// past is a ring of the last five minutes, and the moment that is frozen.
type past struct {
	ring []*moment // oldest first
	held *moment   // nil while live
}

func (p *past) add(m *moment) {
	if len(p.ring) >= pastKept {
		copy(p.ring, p.ring[1:])
		p.ring = p.ring[:pastKept-1]
	}
	p.ring = append(p.ring, m)
}

// goTo moves the frozen moment to the one kept that is nearest to the router's
// time at.
func (p *past) goTo(at time.Time) {
	for _, m := range p.ring {
		if p.held == nil || m.state.At.Sub(at).Abs() < p.held.state.At.Sub(at).Abs() {
			p.held = m
		}
	}
}

// step moves the frozen moment by d and reports whether it moved: to the last
// one kept that is not later than wanted, or the oldest.
func (p *past) step(d time.Duration) bool {
	if p.held == nil || len(p.ring) == 0 {
		return false
	}
	want := p.held.at.Add(d)
	to := p.ring[0]
	for _, m := range p.ring {
		// Half a second of slack: moments are a second apart, but not exactly.
		if m.at.After(want.Add(500 * time.Millisecond)) {
			break
		}
		to = m
	}
	moved := to.at.Sub(p.held.at)
	if (d < 0 && moved >= 0) || (d > 0 && moved <= 0) {
		return false
	}
	p.held = to
	return true
}
