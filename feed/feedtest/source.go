package feedtest

import (
	"slices"
	"sync"

	"adpdeck/feed"
	"adpdeck/router/model"
)

// Source is a router whose state a test sets. It keeps what feed.Source asks
// for: changes are coalesced per subscription, and a command id acts once.
type Source struct {
	mu      sync.Mutex // guards what follows
	state   *model.State
	subs    map[*subscription]struct{}
	replies map[string]model.Reply
	applied []model.Command
	answer  func(model.Command) model.Reply
}

// NewSource starts from s.
func NewSource(s *model.State) *Source {
	return &Source{state: s, subs: make(map[*subscription]struct{}), replies: make(map[string]model.Reply)}
}

// State is the present state.
func (s *Source) State() *model.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Publish changes the state; subscribers are told.
func (s *Source) Publish(ch *model.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(ch)
}

func (s *Source) publish(ch *model.Change) {
	s.state = feed.Merge(s.state, ch)
	for sub := range s.subs {
		sub.pending = coalesce(sub.pending, ch)
		sub.nudge()
	}
}

// SetState replaces the state in a way that no change tells: subscribers must
// start again.
func (s *Source) SetState(st *model.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = st
	for sub := range s.subs {
		sub.resync = true
		sub.nudge()
	}
}

// Answer makes f decide the reply to each new command, instead of acceptance.
func (s *Source) Answer(f func(model.Command) model.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Applied lists the commands that acted, each id once.
func (s *Source) Applied() []model.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.applied)
}

// Apply implements feed.Source.
func (s *Source) Apply(cmd model.Command) model.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, again := s.replies[cmd.ID]; again {
		return r
	}
	r := model.Reply{ID: cmd.ID, Accepted: true, Version: s.state.Version + 1}
	if s.answer != nil {
		r = s.answer(cmd)
	}
	s.replies[cmd.ID] = r
	s.applied = append(s.applied, cmd)
	if r.Accepted {
		s.publish(&model.Change{At: s.state.At, Version: r.Version, Revisions: []model.Revision{
			{Version: r.Version, At: s.state.At, Actor: cmd.Actor, Verb: cmd.Verb, What: r.What, Reason: cmd.Reason},
		}})
	}
	return r
}

// Subscribe implements feed.Source.
func (s *Source) Subscribe() feed.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := &subscription{s: s, c: make(chan struct{}, 1)}
	s.subs[sub] = struct{}{}
	return sub
}

// Subscribers counts the open subscriptions.
func (s *Source) Subscribers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subs)
}

// subscription is guarded by its source's lock.
type subscription struct {
	s       *Source
	c       chan struct{}
	pending *model.Change
	resync  bool
}

func (sub *subscription) nudge() {
	select {
	case sub.c <- struct{}{}:
	default:
	}
}

func (sub *subscription) C() <-chan struct{} { return sub.c }

func (sub *subscription) Start() *model.State {
	sub.s.mu.Lock()
	defer sub.s.mu.Unlock()
	sub.pending, sub.resync = nil, false
	return sub.s.state
}

func (sub *subscription) Take(maxDecisions int) (*model.Change, bool) {
	sub.s.mu.Lock()
	defer sub.s.mu.Unlock()
	if sub.resync {
		return nil, true
	}
	ch := sub.pending
	sub.pending = nil
	if ch == nil {
		return nil, false
	}
	if over := len(ch.Decisions) - maxDecisions; over > 0 {
		short := *ch
		short.Decisions, short.DecisionsLeftOut = ch.Decisions[over:], ch.DecisionsLeftOut+uint64(over)
		ch = &short
	}
	return ch, false
}

func (sub *subscription) Close() {
	sub.s.mu.Lock()
	defer sub.s.mu.Unlock()
	delete(sub.s.subs, sub)
}

// coalesce returns the change that a and then b make.
func coalesce(a, b *model.Change) *model.Change {
	if a == nil {
		return b
	}
	c := *a
	c.At, c.Version = b.At, b.Version
	if b.Settings != nil {
		c.Settings = b.Settings
	}
	if b.Totals != nil {
		c.Totals = b.Totals
	}
	if b.Source != nil {
		c.Source = b.Source
	}
	gone := make(map[model.ConvKey]bool, len(b.Gone))
	for _, k := range b.Gone {
		gone[k] = true
	}
	c.Convs = slices.DeleteFunc(slices.Clone(a.Convs), func(v *model.Conv) bool { return gone[v.Key] })
	c.Convs = append(c.Convs, b.Convs...)
	c.Gone = slices.Concat(a.Gone, b.Gone)
	left := func(t model.Target) bool {
		return slices.Contains(b.WorkersGone, t.Worker) || slices.Contains(b.RanksGone, t)
	}
	c.WorkersGone = slices.Concat(a.WorkersGone, b.WorkersGone)
	c.RanksGone = slices.Concat(a.RanksGone, b.RanksGone)
	c.Workers = slices.DeleteFunc(slices.Clone(a.Workers), func(w model.Worker) bool { return slices.Contains(b.WorkersGone, w.ID) })
	c.Workers = append(c.Workers, b.Workers...)
	c.Ranks = slices.DeleteFunc(slices.Clone(a.Ranks), func(r model.Rank) bool { return left(r.Target) })
	c.Ranks = append(c.Ranks, b.Ranks...)
	c.Index = slices.DeleteFunc(slices.Clone(a.Index), func(r model.IndexRank) bool { return left(r.Target) })
	c.Index = append(c.Index, b.Index...)
	if b.IndexTotals != nil {
		c.IndexTotals = b.IndexTotals
	}
	if b.FindingsChanged {
		c.Findings, c.FindingsChanged = b.Findings, true
	}
	c.Revisions = slices.Concat(b.Revisions, a.Revisions)
	c.Events = slices.Concat(b.Events, a.Events)
	c.Decisions = slices.Concat(a.Decisions, b.Decisions)
	c.DecisionsLeftOut += b.DecisionsLeftOut
	c.Settled = slices.Concat(a.Settled, b.Settled)
	return &c
}
