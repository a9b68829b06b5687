package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"adpdeck/router/engine/plane"
	"adpdeck/router/engine/zmtp"
	"adpdeck/router/model"
)

// Bounds of one bound socket: what its publishers may take of this process all
// together is bindPeers times two queues and a message.
const (
	bindPeers  = 128
	bindBytes  = 2 << 20
	bindFrame  = 4 << 20
	bindWaits  = 4096 // messages of one publisher
	freshPeers = 5 * time.Second
)

// binding is a socket that publishers connect to, shared by all who hear by it.
type binding struct {
	bound  *zmtp.Bound
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex // guards ears
	ears []*ear
}

// ear hears one rank's publisher, or what other ranks of its worker come by the
// same socket.
type ear struct {
	w     *worker
	rank  int // that its port stands for
	topic string
	base  uint64 // of its numbers of connections

	mu sync.Mutex // guards what follows
	// owner is the connection that speaks for a rank: the newest that did, as a
	// new process may be there before the old one's connection is known to be dead.
	owner map[int]uint64
	heard uint64 // the connection whose first batch was looked into
	bad   string // what is wrong with what came
	badAt time.Time
}

// listenBound prepares to hear a rank's publisher by a socket that it connects
// to.
func (w *worker) listenBound(rank int, at, topic string) (run func(context.Context), trouble func() string) {
	e := &ear{w: w, rank: rank, topic: topic, base: w.f.conns.Add(1) * connsEach, owner: map[int]uint64{}}
	var mu sync.Mutex
	var heard *binding
	var refused error
	run = func(ctx context.Context) {
		b, err := w.f.bind(at, e)
		mu.Lock()
		heard, refused = b, err
		mu.Unlock()
		<-ctx.Done()
		if b != nil {
			w.f.unbind(at, b, e)
		}
	}
	trouble = func() string {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case refused != nil:
			return refused.Error()
		case heard == nil:
			return ""
		}
		return e.trouble(heard.bound.Status(), w.f.o.Clock.Now())
	}
	return run, trouble
}

// bind adds an ear to the socket at an address, which it opens for the first.
func (f *Fleet) bind(at string, e *ear) (*binding, error) {
	f.binds.Lock()
	defer f.binds.Unlock()
	b := f.bound[at]
	if b == nil {
		b = &binding{done: make(chan struct{})}
		var err error
		b.bound, err = zmtp.NewBound(zmtp.BoundOptions{
			Endpoint: at, HandleBatch: b.batch, Now: f.o.Clock.Now,
			MaxPeers: bindPeers, QueueMessages: bindWaits, QueueBytes: bindBytes, Limits: zmtp.Limits{FrameBytes: bindFrame},
		})
		if err != nil {
			return nil, err
		}
		var ctx context.Context
		ctx, b.cancel = context.WithCancel(context.Background())
		go func() {
			defer close(b.done)
			b.bound.Run(ctx)
		}()
		f.bound[at] = b
	}
	b.mu.Lock()
	b.ears = append(b.ears, e)
	b.mu.Unlock()
	return b, nil
}

// unbind takes an ear away; the last one closes the socket.
func (f *Fleet) unbind(at string, b *binding, e *ear) {
	f.binds.Lock()
	b.mu.Lock()
	b.ears = slices.DeleteFunc(b.ears, func(x *ear) bool { return x == e })
	last := len(b.ears) == 0
	b.mu.Unlock()
	if last {
		delete(f.bound, at)
	}
	f.binds.Unlock()
	if last {
		b.cancel()
		<-b.done
	}
}

// batch hands a batch to the ears that listen to its topic; Check sees to it that
// those are of one worker.
func (b *binding) batch(m zmtp.Batch) {
	b.mu.Lock()
	ears := slices.Clone(b.ears)
	b.mu.Unlock()
	named := plane.BatchRank(m.Payload)
	for _, e := range ears {
		if strings.HasPrefix(string(m.Topic), e.topic) {
			e.take(&m, named)
		}
	}
}

// take hands on a batch that names a rank, NoRank for none. One that names none
// is of the rank that the socket stands for. A rank that the settings do not give
// the worker is wrong.
func (e *ear) take(m *zmtp.Batch, named int) {
	w := e.w
	rank := e.rank
	if named != plane.NoRank {
		rank = named - w.spec.StartRank
	}
	if rank < 0 || w.spec.Ranks > 0 && rank >= w.spec.Ranks || rank >= MaxRanks {
		e.say(fmt.Sprintf("a batch names rank %d, which is none of this worker's", named))
		return
	}
	e.mu.Lock()
	owner := e.owner[rank]
	if m.Conn < owner {
		e.mu.Unlock()
		e.say(fmt.Sprintf("two publishers say that they are rank %d; only the one that connected last is heard", rank))
		return
	}
	e.owner[rank] = m.Conn
	first := e.heard != m.Conn
	e.heard = m.Conn
	e.mu.Unlock()
	if first {
		w.advertised(m.Payload)
	}
	w.f.sink.EventsOn(w.spec.ID, rank, e.base+m.Conn, m.Seq, m.Payload)
}

// say notes what is wrong with a batch that is not handed on.
func (e *ear) say(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bad, e.badAt = what, e.w.f.o.Clock.Now()
}

// trouble says why nothing, or not all, is heard.
func (e *ear) trouble(s zmtp.BoundStatus, now time.Time) string {
	e.mu.Lock()
	bad, fresh := e.bad, !e.badAt.IsZero() && now.Sub(e.badAt) < freshPeers+hearPeriod
	e.mu.Unlock()
	why := ""
	if s.LastError != nil {
		why = plain(s.LastError, dialTimeout)
	}
	switch {
	case !s.Listening && now.Sub(s.Since) >= unheard:
		return "this router cannot listen there: " + why
	case fresh:
		return bad
	case s.Peers > 0 && s.Malformed > 0 && s.Malformed == s.Messages:
		return s.LastMalformed.Error()
	case s.Peers == 0 && s.Listening && now.Sub(s.Alone) >= unheard:
		if why != "" {
			return "no publisher is connected; the last that was tried: " + why
		}
		return "no publisher has connected"
	}
	return ""
}

// bindAt is where the publisher of a rank of w connects to: the port counts up by
// the global rank, as the publishers' own does.
func bindAt(w *model.EngineSpec, rank int) string {
	host, port, cause, _ := splitBind(w.Events.Bind)
	if cause != "" {
		return ""
	}
	return bindAddress(host, port+w.StartRank+rank)
}
