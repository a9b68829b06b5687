package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"adpdeck/router/model"
)

// Bounds of the speed of a Runner; 0 pauses it.
const (
	MinSpeed = 0.25
	MaxSpeed = 64
)

const (
	// tickEvery is how often a Runner moves the virtual clock on.
	tickEvery = 20 * time.Millisecond
	// tickBudget is how much of a tick may be spent simulating. What was not
	// reached by then is given up: the simulation runs as fast as it can.
	tickBudget = tickEvery * 3 / 4
	// maxLag is the longest time between two ticks that is made up for: a
	// machine that slept does not wake up to hours of simulation.
	maxLag = 250 * time.Millisecond
	// feedEvery is the least time, by either clock, between two reports.
	feedEvery = 100 * time.Millisecond
	// measureEvery is how often the speed that was reached is measured.
	measureEvery = time.Second
	// sliceEvents is how many events run between two looks at the wall clock.
	sliceEvents = 64
	// maxReplies bounds the commands whose answers are remembered.
	maxReplies = 256
)

// ErrRunner is wrapped by the errors of NewRunner.
var ErrRunner = errors.New("cannot run the simulation")

// Wall is the wall clock that a Runner is given.
type Wall struct {
	Now func() time.Time
	// Tick sends about every d until stop is called.
	Tick func(d time.Duration) (c <-chan time.Time, stop func())
}

// Runner drives a Sim against a wall clock at a speed that can be changed. It
// owns the Sim while Run is running; Apply and Speed may be called by anyone.
type Runner struct {
	sim  *Sim
	wall Wall

	mu      sync.Mutex // guards what follows
	speed   float64
	replies map[string]model.Reply
	order   []string // ids of replies, oldest first

	// Of the goroutine of Run alone.
	pace pace
	fed  fed
}

// pace measures the speed that is reached.
type pace struct {
	wall    time.Duration // passed since the last measurement
	virtual time.Duration
	want    time.Duration // what virtual should have been
	reached float64       // the speed reached, 0 while it keeps up
}

// fed says what the router was last told.
type fed struct {
	at      time.Time
	virtual time.Duration
	source  model.Source
	ever    bool
}

// NewRunner returns a Runner for s at a speed within the bounds. The Sim must
// have its router by then.
func NewRunner(s *Sim, wall Wall, speed float64) (*Runner, error) {
	switch {
	case s.router == nil:
		return nil, fmt.Errorf("%w: %w", ErrRunner, ErrNoRouter)
	case wall.Now == nil || wall.Tick == nil:
		return nil, fmt.Errorf("%w: no wall clock was given", ErrRunner)
	case !validSpeed(speed):
		return nil, fmt.Errorf("%w: speed %g must be 0 or within %g and %d", ErrRunner, speed, MinSpeed, MaxSpeed)
	}
	return &Runner{sim: s, wall: wall, speed: speed, replies: map[string]model.Reply{}}, nil
}

func validSpeed(v float64) bool { return v == 0 || v >= MinSpeed && v <= MaxSpeed }

// Speed is the speed that was asked for: virtual seconds per second.
func (r *Runner) Speed() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.speed
}

// Run moves the simulation on until ctx ends, and returns its error, or the
// router's. When the traffic has ended the virtual clock stands still.
func (r *Runner) Run(ctx context.Context) error {
	c, stop := r.wall.Tick(tickEvery)
	defer stop()
	last := r.wall.Now()
	r.feed(last)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c:
		}
		now := r.wall.Now()
		if err := r.tick(now, min(max(now.Sub(last), 0), maxLag)); err != nil {
			return err
		}
		last = now
	}
}

// tick moves the simulation on by passed of the wall clock.
func (r *Runner) tick(now time.Time, passed time.Duration) error {
	if speed := r.Speed(); speed > 0 && !r.sim.Done() {
		from := r.sim.Elapsed()
		want := time.Duration(float64(passed) * speed)
		for {
			reached, err := r.sim.Advance(from+want, sliceEvents)
			if err != nil {
				return fmt.Errorf("simulate: %w", err)
			}
			if reached || r.sim.Done() || r.wall.Now().Sub(now) >= tickBudget {
				break
			}
		}
		r.pace.note(passed, r.sim.Elapsed()-from, want)
	}
	r.feed(now)
	return nil
}

// note adds one tick and measures when enough time has passed.
func (p *pace) note(wall, virtual, want time.Duration) {
	p.wall += wall
	p.virtual += virtual
	p.want += want
	if p.wall < measureEvery {
		return
	}
	p.reached = 0
	if float64(p.virtual) < .95*float64(p.want) {
		p.reached = round2(float64(p.virtual) / float64(p.wall))
	}
	p.wall, p.virtual, p.want = 0, 0, 0
}

// round2 keeps two significant digits.
func round2(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 2, 64), 64)
	return v
}

// feed tells the router how the ranks stand, not more often than feedEvery by
// either clock, and where the traffic comes from when that has changed.
func (r *Runner) feed(now time.Time) {
	speed := r.Speed()
	if r.pace.reached > 0 && speed > r.pace.reached {
		speed = r.pace.reached
	}
	source := r.sim.Source(speed)
	virtual := r.sim.Elapsed()
	due := now.Sub(r.fed.at) >= feedEvery && virtual-r.fed.virtual >= feedEvery
	turned := source.Speed != r.fed.source.Speed || source.Done != r.fed.source.Done
	if !r.fed.ever || due || turned {
		r.sim.Feed()
		r.sim.router.SetSource(source)
		r.fed = fed{at: now, virtual: virtual, source: source, ever: true}
	}
}

// Apply answers a speed command: 0 pauses, MinSpeed to MaxSpeed run. Every
// other verb is refused. The same id again returns the first answer. The
// version of the answer is 0: speed is no setting.
func (r *Runner) Apply(cmd model.Command) model.Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reply, ok := r.replies[cmd.ID]; ok {
		return reply
	}
	reply := model.Reply{ID: cmd.ID}
	if reply.Refusal = refuseSpeed(&cmd); reply.Refusal == nil {
		reply.Accepted = true
		reply.What = "speed " + speedName(r.speed) + " → " + speedName(cmd.Speed)
		r.speed = cmd.Speed
	} else if reply.Refusal.Code == model.RefusedMalformed {
		return reply // its id is not worth remembering
	}
	if len(r.order) >= maxReplies {
		delete(r.replies, r.order[0])
		r.order = append(r.order[:0], r.order[1:]...)
	}
	r.replies[cmd.ID] = reply
	r.order = append(r.order, cmd.ID)
	return reply
}

func refuseSpeed(cmd *model.Command) *model.Refusal {
	switch {
	case cmd.ID == "" || len(cmd.ID) > model.MaxCommandIDBytes:
		return &model.Refusal{
			Code:    model.RefusedMalformed,
			Message: fmt.Sprintf("the command's id is %d bytes long", len(cmd.ID)),
			Next:    fmt.Sprintf("send an id of 1 to %d bytes", model.MaxCommandIDBytes),
		}
	case cmd.Verb != model.VerbSpeed:
		return &model.Refusal{
			Code:    model.RefusedVerb,
			Message: fmt.Sprintf("the simulation does not know %.20q", cmd.Verb), Next: "send speed",
		}
	case !validSpeed(cmd.Speed):
		return &model.Refusal{
			Code:    model.RefusedBounds,
			Message: fmt.Sprintf("speed %g is out of bounds", cmd.Speed),
			Next:    fmt.Sprintf("choose 0 to pause, or %g to %d", MinSpeed, MaxSpeed),
		}
	}
	return nil
}

func speedName(v float64) string {
	if v == 0 {
		return "paused"
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) + "×"
}
