package engine

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"adpdeck/router/engine/plane"
	"adpdeck/router/engine/scrape"
	"adpdeck/router/engine/zmtp"
	"adpdeck/router/model"
)

// connsEach is how far apart the numbers of connections of two subscribers are:
// the sink tells an engine's restart from a late batch by them.
const connsEach = 1 << 32

// waitMessages and waitBytes bound what of one publisher waits for the sink; there
// may be hundreds of them. What comes on top is dropped and shows as a gap.
const (
	waitMessages = 4096
	waitBytes    = 16 << 20
)

// unheard is how long a publisher may be unreachable before that is a finding.
const unheard = 5 * time.Second

// subscription follows one publisher of KV events.
type subscription struct {
	endpoint, topic string
	cancel          context.CancelFunc
	done            chan struct{}
	// trouble says what is wrong with it and has been for a while.
	trouble func() string
}

// endpoints are the publishers and replays of each rank as far as they are
// known, from the settings or, for SGLang, from the engine. Callers hold mu.
func (w *worker) endpoints() (live, replay []string) {
	if transportOf(&w.spec) != transportZMQ {
		return nil, nil
	}
	spec := w.spec
	spec.Ranks = w.learnt.ranks
	live, replay = Endpoints(&spec)
	if spec.Events.Bind != "" {
		for r := range spec.Ranks {
			live = append(live, bindAt(&spec, r))
		}
		return live, replay
	}
	if at := w.learnt.events; len(live) == 0 && at != nil && len(w.doors) == 1 {
		host := at.Host
		if ip := net.ParseIP(host); host == "" || host == "*" || ip != nil && ip.IsUnspecified() {
			host = hostOf(w.doors[0].base)
		}
		for r := range spec.Ranks {
			if port := at.Port + spec.StartRank + r; port < 1<<16 {
				live = append(live, "tcp://"+net.JoinHostPort(host, strconv.Itoa(port)))
			}
		}
	}
	return live, replay
}

// follow begins what subscriptions are missing and ends those that are not
// wanted any more. It belongs to run.
func (w *worker) follow(ctx context.Context) {
	want := map[int]string{}
	topic := w.spec.Events.Topic
	switch transportOf(&w.spec) {
	case transportZMQ:
		w.mu.Lock()
		live, _ := w.endpoints()
		if at := w.learnt.events; topic == "" && w.spec.Events.Endpoint == "" && at != nil {
			topic = at.Topic
		}
		w.mu.Unlock()
		for r, e := range live {
			want[r] = e
		}
	case transportNATS:
		want[model.NoRank] = w.spec.Events.Endpoint
	}
	for r, s := range w.subs {
		if want[r] != s.endpoint || topic != s.topic {
			w.end(r)
		}
	}
	for r, e := range want {
		if w.subs[r] == nil {
			w.begin(ctx, r, e, topic)
		}
	}
}

func (w *worker) begin(ctx context.Context, rank int, endpoint, topic string) {
	ctx, cancel := context.WithCancel(ctx)
	s := &subscription{endpoint: endpoint, topic: topic, cancel: cancel, done: make(chan struct{})}
	run, trouble, err := w.listen(rank, endpoint, topic)
	if err != nil {
		cancel()
		close(s.done)
		s.trouble = func() string { return err.Error() }
	} else {
		s.trouble = trouble
		go func() {
			defer close(s.done)
			run(ctx)
		}()
	}
	w.subs[rank] = s
}

func (w *worker) end(rank int) {
	s := w.subs[rank]
	s.cancel()
	<-s.done
	delete(w.subs, rank)
	w.finding(FindingEvents, model.Target{Worker: w.spec.ID, Rank: rank}, "", "")
}

func (w *worker) unfollow() {
	for r := range w.subs {
		w.end(r)
	}
}

// hear looks after the subscriptions: who cannot be heard is a finding, unless it
// does not answer at all, which says it all. It belongs to run.
func (w *worker) hear() {
	for r, s := range w.subs {
		words := s.trouble()
		if w.silenced(r) {
			words = ""
		}
		if words != "" {
			words = fmt.Sprintf("no kv events from %s: %s", shown(s.endpoint), cut(words))
		}
		w.finding(FindingEvents, model.Target{Worker: w.spec.ID, Rank: r}, words, "check the endpoint, and that the engine was started with kv events on")
	}
}

// silenced reports that a rank does not answer; for NoRank, that none does. It
// belongs to run.
func (w *worker) silenced(rank int) bool {
	if rank != model.NoRank {
		up, known := w.told[rank]
		return known && !up
	}
	for _, up := range w.told {
		if up {
			return false
		}
	}
	return len(w.told) > 0
}

// listen prepares to hear one publisher: run does it until its context ends.
func (w *worker) listen(rank int, endpoint, topic string) (run func(context.Context), trouble func() string, err error) {
	if transportOf(&w.spec) == transportNATS {
		l := &natsListener{w: w, server: endpoint, subject: topic}
		return l.run, l.trouble, nil
	}
	if w.spec.Events.Bind != "" {
		run, trouble := w.listenBound(rank, endpoint, topic)
		return run, trouble, nil
	}
	o := zmtp.SubscriberOptions{
		Endpoint: endpoint, Dial: w.f.o.Dial, Rand: w.f.o.Rand, Now: w.f.o.Clock.Now,
		QueueMessages: waitMessages, QueueBytes: waitBytes,
	}
	if topic != "" {
		o.Topics = []string{topic}
	}
	if w.spec.Kind == model.EngineDynamo {
		o.Handle = func(m zmtp.Message) {
			if e, err := plane.ParseZMQ(m.Frames); err == nil {
				w.planeEvents(&e)
			}
		}
	} else {
		o.HandleBatch = w.batches(rank)
	}
	sub, err := zmtp.NewSubscriber(o)
	if err != nil {
		return nil, nil, err
	}
	return sub.Run, func() string { return silence(sub.Status(), w.f.o.Clock.Now()) }, nil
}

// batches hands on what one rank publishes.
func (w *worker) batches(rank int) func(zmtp.Batch) {
	base := w.f.conns.Add(1) * connsEach
	seen := uint64(0) // the connection whose first batch was looked into
	return func(b zmtp.Batch) {
		if b.Conn != seen {
			seen = b.Conn
			w.advertised(b.Payload)
		}
		w.f.sink.EventsOn(w.spec.ID, rank, base+b.Conn, b.Seq, b.Payload)
	}
}

// advertised takes what a batch of KV events says of the engine beside them.
func (w *worker) advertised(payload []byte) {
	a, err := scrape.Batch(payload)
	if err != nil {
		return // the router counts it
	}
	p := scrape.Page{Advert: a}
	p.Inside(w.spec.StartRank, w.spec.Ranks, model.NumbersGlobal)
	w.mu.Lock()
	changed := w.learnt.advert(fromEvents, &p.Advert)
	if changed {
		w.settle()
	}
	w.mu.Unlock()
	if changed {
		nudge(w.poke)
	}
}

// planeEvents hands on what one message of Dynamo's plane says of this worker.
func (w *worker) planeEvents(e *plane.Envelope) {
	if e.Topic != plane.TopicKVEvents {
		return
	}
	all, err := plane.KVEvents(e.Payload)
	if err != nil {
		return
	}
	for i := range all {
		if w.spec.InstanceID == 0 || all[i].Worker == w.spec.InstanceID {
			w.f.sink.RouterEvents(w.spec.ID, all[i].Payload, false)
		}
	}
}

// silence says why a publisher has not been heard for a while.
func silence(s zmtp.Status, now time.Time) string {
	switch {
	case s.Connected && s.Malformed > 0 && s.Malformed == s.Messages && s.LastMalformed != nil:
		return s.LastMalformed.Error()
	case s.Connected || now.Sub(s.Since) < unheard:
		return ""
	case s.LastError != nil:
		return plain(s.LastError, dialTimeout)
	}
	return "not connected"
}
