package feed

import (
	"time"

	"adpdeck/router/model"
)

// Phase is where a link stands.
type Phase string

// The phases. A link is live only while its state is in step with the server;
// "stale by age" and "slow" are questions of time, see Link.Stale and Link.Slow.
const (
	PhaseConnecting Phase = "connecting" // no snapshot has come yet
	PhaseLive       Phase = "live"       // in step: snapshot and every change since
	PhaseLost       Phase = "lost"       // cut, gap, new epoch or damage: what is held is old
	PhaseReplay     Phase = "replay"     // from a recording
)

// Replay says how a recording is being played; zero for a live link.
type Replay struct {
	Speed   float64       // recorded seconds per second
	Paused  bool          // holds still until Pause(false)
	Pos     time.Duration // recorded time since the recording began
	Ended   bool          // the last line has been played
	Skipped uint64        // damaged lines left out so far
	Dropped uint64        // frames that the recorder could not write in time
}

// Link is the health of the connection, without judgement: a screen draws it.
// Its times are wall times.
type Link struct {
	Phase Phase
	Since time.Time // when Phase began
	// LastFrame is when the state was last known to be current: the time of the
	// newest change or complete snapshot. In a replay it is the recorded time.
	LastFrame time.Time
	// Period is how often the server promises a change, at least; 0 before hello.
	Period time.Duration
	// RTT is the newest ping's round trip, 0 before the first pong.
	RTT time.Duration
	// Asked is when the oldest ping that is not answered yet was sent, zero when
	// all are. A server answers in turn with what it sends: what has come since may
	// be as old as that.
	Asked time.Time
	// Attempt counts tries since the link was last live; NextTry is when the next
	// one starts, zero while one is under way.
	Attempt int
	NextTry time.Time
	// Err says why the link is not live, in one line; empty when it is. It may
	// hold text from outside: escape it where it is drawn.
	Err string
	// Epoch and Seq are what the state stands at. Role and Server are what hello
	// said: the role granted and the server's version.
	Epoch        string
	Seq          uint64
	Role, Server string
	// Gaps counts the times that the state had to be fetched anew, Unknown the
	// frames of a kind this version does not know.
	Gaps, Unknown uint64
	Replay        Replay
}

// Age is the time since the state was last known to be current, 0 before the
// first snapshot. On a live link that brings less than is sent, whose frames come
// late but keep coming, it is how long the frames take.
func (l Link) Age(now time.Time) time.Duration {
	if l.LastFrame.IsZero() {
		return 0
	}
	age := max(0, now.Sub(l.LastFrame))
	if l.Phase == PhaseLive {
		age = max(age, l.RTT)
		if !l.Asked.IsZero() {
			age = max(age, now.Sub(l.Asked))
		}
	}
	return age
}

// Slow reports an age above two periods. A replay is never slow.
func (l Link) Slow(now time.Time) bool {
	return l.Phase != PhaseReplay && l.Period > 0 && l.Age(now) > 2*l.Period
}

// Stale reports that the numbers must not be shown as live: the link is lost,
// nothing came for three periods, or what comes is older than that. A link that never had a snapshot has no
// numbers and is not stale; a replay is stale only while it waits for a
// snapshot after damage.
func (l Link) Stale(now time.Time) bool {
	switch l.Phase {
	case PhaseLost:
		return true
	case PhaseReplay:
		return l.Err != "" && !l.Replay.Ended
	default:
		return l.Period > 0 && l.Age(now) > 3*l.Period
	}
}

// View is everything a screen draws, at one moment. It and all it points to
// are never written again.
type View struct {
	// State is nil before the first snapshot. It is kept when the link is lost:
	// Link.Stale says that it is old.
	State *model.State
	Link  Link
	// Decisions are ordered by id, newest last, at most model.MaxDecisions.
	Decisions []*model.Decision
	// Settled holds the outcomes known of Decisions, by decision id.
	Settled map[uint64]model.Settled
	// LeftOut counts decisions of this epoch that were not received, by sampling
	// or loss.
	LeftOut uint64
	// Rev grows with every new view: equal means the same view.
	Rev uint64
}
