package engine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
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
	place
	cancel context.CancelFunc
	done   chan struct{}
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

// feed is what a subscription is for: the KV events of a rank (NoRank: of all), or
// the loads of the n-th place where they are published.
type feed struct {
	loads bool
	n     int
}

// place is where a feed comes from.
type place struct{ endpoint, topic string }

// wants are the places of all feeds as far as they are known.
func (w *worker) wants() map[feed]place {
	want := map[feed]place{}
	e := &w.spec.Events
	switch transportOf(&w.spec) {
	case transportZMQ:
		topic := e.Topic
		w.mu.Lock()
		live, _ := w.endpoints()
		if at := w.learnt.events; topic == "" && e.Endpoint == "" && at != nil {
			topic = at.Topic
		}
		ranks := w.learnt.ranks
		w.mu.Unlock()
		for r, at := range live {
			want[feed{n: r}] = place{at, topic}
		}
		for i, at := range loadPlaces(&w.spec, ranks) {
			want[feed{true, i}] = place{endpoint: at}
		}
	case transportNATS:
		if e.Topic != "" {
			want[feed{n: model.NoRank}] = place{e.Endpoint, e.Topic}
		}
		for i, subject := range e.Loads {
			want[feed{true, i}] = place{e.Endpoint, subject}
		}
	}
	return want
}

// loadPlaces are the addresses at which loads are published over zmq. Where vLLM's
// ranks have one each and only the first is named, the port counts up by the
// global rank.
func loadPlaces(w *model.EngineSpec, ranks int) []string {
	list := w.Events.Loads
	if w.Kind != model.EngineVLLM || len(list) != 1 {
		return list
	}
	spec := *w
	spec.Ranks = ranks
	return endpointList(&spec, list[0], nil)
}

// follow begins what subscriptions are missing and ends those that are not
// wanted any more. It belongs to run.
func (w *worker) follow(ctx context.Context) {
	want := w.wants()
	for f, s := range w.subs {
		if want[f] != s.place {
			w.end(f)
		}
	}
	for f, at := range want {
		if w.subs[f] == nil {
			w.begin(ctx, f, at)
		}
	}
}

func (w *worker) begin(ctx context.Context, f feed, at place) {
	ctx, cancel := context.WithCancel(ctx)
	s := &subscription{place: at, cancel: cancel, done: make(chan struct{})}
	run, trouble, err := w.listen(f, at)
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
	w.subs[f] = s
}

func (w *worker) end(f feed) {
	s := w.subs[f]
	s.cancel()
	<-s.done
	delete(w.subs, f)
	if !f.loads {
		w.finding(FindingEvents, model.Target{Worker: w.spec.ID, Rank: f.n}, "", "")
	}
}

func (w *worker) unfollow() {
	for f := range w.subs {
		w.end(f)
	}
	w.finding(FindingLoads, model.Target{Worker: w.spec.ID, Rank: model.NoRank}, "", "")
}

// hear looks after the subscriptions: who cannot be heard is a finding, unless it
// does not answer at all, which says it all. It belongs to run.
func (w *worker) hear() {
	loads := ""
	for f, s := range w.subs {
		words := s.trouble()
		if f.loads && words != "" {
			loads = fmt.Sprintf("no loads from %s: %s", s.place.name(), cut(words))
		}
		if f.loads {
			continue
		}
		if w.silenced(f.n) {
			words = ""
		}
		if words != "" {
			words = fmt.Sprintf("no kv events from %s: %s", s.place.name(), cut(words))
		}
		w.finding(FindingEvents, model.Target{Worker: w.spec.ID, Rank: f.n}, words, "check the endpoint, and that the engine was started with kv events on")
	}
	if bad := w.loads.trouble(w.f.o.Clock.Now()); loads == "" {
		loads = cut(bad)
	}
	if w.silenced(model.NoRank) {
		loads = ""
	}
	w.finding(FindingLoads, model.Target{Worker: w.spec.ID, Rank: model.NoRank}, loads, "check where its loads are published (events, loads), and that its release is known here")
}

// name is the place for people: a subject beside its server.
func (p place) name() string {
	if strings.HasPrefix(p.endpoint, "nats://") || strings.HasPrefix(p.endpoint, "tls://") {
		return shown(p.endpoint) + " " + p.topic
	}
	return shown(p.endpoint)
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
func (w *worker) listen(f feed, at place) (run func(context.Context), trouble func() string, err error) {
	now := w.f.o.Clock.Now
	message := w.planeEvents
	if f.loads {
		message = func(e *plane.Envelope) { w.loads.message(e, now()) }
	}
	if transportOf(&w.spec) == transportNATS {
		l := &natsListener{w: w, server: at.endpoint, subject: at.topic, take: message}
		return l.run, l.trouble, nil
	}
	if w.spec.Events.Bind != "" && !f.loads {
		run, trouble := w.listenBound(f.n, at.endpoint, at.topic)
		return run, trouble, nil
	}
	o := zmtp.SubscriberOptions{
		Endpoint: at.endpoint, Dial: w.f.o.Dial, Rand: w.f.o.Rand, Now: now,
		QueueMessages: waitMessages, QueueBytes: waitBytes,
	}
	if at.topic != "" {
		o.Topics = []string{at.topic}
	}
	strange := strangers{now: now}
	switch {
	case w.spec.Kind == model.EngineDynamo:
		o.Handle = func(m zmtp.Message) {
			e, err := plane.ParseZMQ(m.Frames)
			if strange.note(err) {
				message(&e)
			}
		}
	case f.loads:
		o.HandleBatch = func(b zmtp.Batch) { w.loads.step(b.Payload, now()) }
	default:
		o.HandleBatch = w.batches(f.n)
	}
	sub, err := zmtp.NewSubscriber(o)
	if err != nil {
		return nil, nil, err
	}
	return sub.Run, func() string { return cmp.Or(silence(sub.Status(), now()), strange.trouble()) }, nil
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
