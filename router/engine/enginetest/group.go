package enginetest

import "time"

// group is what steps together: all ranks of a worker under a barrier, otherwise
// one rank. There is no goroutine of its own, only a timer while there is work.
type group struct {
	e        *Engine
	ranks    []*rank
	stepping bool
	timer    Timer
	life     int // raised by a restart: a step of an earlier life is void
	iter     int
}

// kick begins a step if none is under way and there is something to do. The
// engine's lock is held.
func (g *group) kick() {
	if g.stepping || g.e.down || !g.busy() {
		return
	}
	now := g.e.clock.Now()
	if g.e.adp != nil {
		g.e.adp.place(g)
	}
	var longest time.Duration
	for _, k := range g.ranks {
		k.plan(now)
		longest = max(longest, k.step.work)
	}
	g.stepping = true
	life := g.life
	g.timer = g.e.clock.AfterFunc(longest, func() { g.fire(life, longest) })
}

func (g *group) busy() bool {
	for _, k := range g.ranks {
		if k.busy() {
			return true
		}
	}
	return g.e.adp != nil && len(g.e.adp.queue) > 0 && !g.e.habits.Load().NoFirstToken
}

// fire ends the step and begins the next.
func (g *group) fire(life int, took time.Duration) {
	e := g.e
	e.mu.Lock()
	if g.life != life || e.down {
		e.mu.Unlock()
		return
	}
	g.stepping = false
	now := e.clock.Now()
	for _, k := range g.ranks {
		k.finish(now)
		k.publish(now)
		k.tell(now, took)
	}
	g.iter++
	if e.trt != nil {
		e.trt.record(g, now, took)
	}
	g.kick()
	e.mu.Unlock()
	e.flush()
}

// reset forgets the step under way.
func (g *group) reset() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.stepping, g.timer = false, nil
	g.life++
}
