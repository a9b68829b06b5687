package feed

import "adpdeck/router/model"

// Subscription is a router's side of the feed. It never queues: what changed is
// coalesced until it is taken.
type Subscription interface {
	// Start returns the state that later Takes follow.
	Start() *model.State
	// C has capacity 1 and holds a value when something changed since Take.
	C() <-chan struct{}
	// Take returns everything since the last Take or Start, with at most
	// maxDecisions decisions, the newest; nil when nothing changed. Resync says
	// that too much changed to tell: Start must be called again.
	Take(maxDecisions int) (change *model.Change, resync bool)
	Close()
}

// Source is what a server needs of a router. Both methods may be called from
// any goroutine.
type Source interface {
	Subscribe() Subscription
	Apply(model.Command) model.Reply
}

// From makes a Source of any router whose Subscribe returns its own type:
// feed.From(r).
func From[S Subscription](r interface {
	Subscribe() S
	Apply(model.Command) model.Reply
},
) Source {
	return source[S]{r}
}

type source[S Subscription] struct {
	router interface {
		Subscribe() S
		Apply(model.Command) model.Reply
	}
}

func (s source[S]) Subscribe() Subscription           { return s.router.Subscribe() }
func (s source[S]) Apply(c model.Command) model.Reply { return s.router.Apply(c) }
