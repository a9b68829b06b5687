package tui

import (
	"fmt"
	"sync"
	"time"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/tui/fixture"
)

// fakeRouter is a client over a state that obeys commands at once: just enough
// of a router for flows. Its clock goes on by 300 ms each time it is read.
type fakeRouter struct {
	mu    sync.Mutex
	now   time.Time
	state *model.State
	rev   uint64
	undo  map[uint64]func(*model.State) // by version, what takes it back
	sent  []model.Command
}

func newFakeRouter() *fakeRouter {
	return &fakeRouter{now: fixture.Now(), state: fixture.Normal(), rev: 1, undo: map[uint64]func(*model.State){}}
}

func (r *fakeRouter) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(300 * time.Millisecond)
	return r.now
}

func (r *fakeRouter) View() *feed.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &feed.View{
		State: r.state, Decisions: fixture.Decisions(), Settled: fixture.Settled(), Rev: r.rev,
		Link: feed.Link{Phase: feed.PhaseLive, LastFrame: r.now, Period: time.Minute, RTT: time.Millisecond, Role: "operator"},
	}
}

func (r *fakeRouter) RetryNow()    {}
func (r *fakeRouter) Close() error { return nil }

func (r *fakeRouter) commands() []model.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]model.Command(nil), r.sent...)
}

func (r *fakeRouter) Do(c model.Command) <-chan model.Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, c)
	ch := make(chan model.Reply, 1)
	defer close(ch)
	s := *r.state
	if c.Expect != s.Version {
		ch <- model.Reply{ID: c.ID, Version: s.Version, Refusal: &model.Refusal{Code: model.RefusedConflict, Message: "old version", Current: &s.Revisions[0]}}
		return ch
	}
	what, back, err := r.obey(&s, c)
	if err != nil {
		ch <- model.Reply{ID: c.ID, Version: s.Version, Refusal: &model.Refusal{Code: model.RefusedMalformed, Message: err.Error()}}
		return ch
	}
	s.Version++
	r.undo[s.Version] = back
	rev := model.Revision{Version: s.Version, At: s.At, Actor: c.Actor, Verb: c.Verb, What: what, Reason: c.Reason}
	s.Revisions = append([]model.Revision{rev}, s.Revisions...)
	r.state = &s
	r.rev++
	ch <- model.Reply{ID: c.ID, Accepted: true, Version: s.Version, What: what}
	return ch
}

// obey changes s and returns what takes the change back.
func (r *fakeRouter) obey(s *model.State, c model.Command) (what string, back func(*model.State), err error) {
	switch c.Verb {
	case model.VerbSet:
		old := s.Settings
		_, err = model.SetFields(&s.Settings, c.Set)
		return fmt.Sprintf("%s %s", c.Set[0].Field, c.Set[0].Value), func(s *model.State) { s.Settings = old }, err
	case model.VerbPin:
		old := s.Convs
		s.Convs = change(s.Convs, c.Convs[0], func(n *model.Conv) { n.Pin, n.Bound, n.By = model.PinOperator, *c.Target, c.Actor })
		return "pin " + c.Convs[0].ID + " to " + c.Target.String(), func(s *model.State) { s.Convs = old }, nil
	case model.VerbEvict:
		old := s.Convs
		s.Convs = change(s.Convs, c.Convs[0], func(n *model.Conv) { n.Pin, n.By = model.PinNone, "" })
		return "evict " + c.Convs[0].ID, func(s *model.State) { s.Convs = old }, nil
	case model.VerbUndo:
		v := c.Undo
		if v == 0 {
			for _, rev := range s.Revisions {
				if rev.UndoneBy == 0 && rev.Undoes == 0 && r.undo[rev.Version] != nil {
					v = rev.Version
					break
				}
			}
		}
		if r.undo[v] == nil {
			return "", nil, fmt.Errorf("nothing to undo")
		}
		r.undo[v](s)
		s.Revisions = append([]model.Revision(nil), s.Revisions...)
		for i := range s.Revisions {
			if s.Revisions[i].Version == v {
				s.Revisions[i].UndoneBy = s.Version + 1
			}
		}
		return fmt.Sprintf("undo v%d", v), func(*model.State) {}, nil
	}
	return "", nil, fmt.Errorf("no such verb")
}

func change(convs []*model.Conv, k model.ConvKey, do func(*model.Conv)) []*model.Conv {
	out := append([]*model.Conv(nil), convs...)
	for i, c := range out {
		if c.Key == k {
			n := *c
			do(&n)
			out[i] = &n
		}
	}
	return out
}
