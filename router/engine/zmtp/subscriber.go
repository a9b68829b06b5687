package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// SubscriberOptions say whom to follow and how; zero fields take the defaults
// named.
type SubscriberOptions struct {
	// Endpoint is tcp://HOST:PORT or ipc://PATH, where the publisher binds.
	Endpoint string
	// Topics (one, the empty one: everything) are the beginnings of first frames
	// that are wanted.
	Topics []string
	// Handle takes each message, or HandleBatch each message that is a batch of
	// KV events; exactly one of the two is set. Both are called from one
	// goroutine, in the order of arrival. A slow one loses messages, see
	// QueueMessages; one that never returns keeps Run from returning.
	Handle      func(Message)
	HandleBatch func(Batch)
	// QueueMessages (50,000) and QueueBytes (32 MiB) bound what waits for the
	// handler; as much again may be on its way through it. What comes on top is
	// dropped, newest first, and counted: the publisher's numbers show the gap.
	QueueMessages, QueueBytes int
	// Heartbeat (1 s) is how often the publisher is asked for a sign of life, and
	// Silence (three times that) how long it may give none before its connection
	// is given up. A negative Heartbeat asks for none and waits for ever.
	Heartbeat, Silence time.Duration
	// MinRetry (100 ms) and MaxRetry (1.5 s) bound the wait before a new try. It
	// doubles with each try, and is drawn from its upper half.
	MinRetry, MaxRetry time.Duration
	// Handshake (3 s) bounds the dial and, again, the handshake.
	Handshake time.Duration
	// Limits bound each message.
	Limits Limits
	// Dial replaces the dialer.
	Dial DialFunc
	// Rand (math/rand) draws from [0,1), Now (time.Now) is the clock.
	Rand func() float64
	Now  func() time.Time
}

func (o *SubscriberOptions) defaults() {
	if len(o.Topics) == 0 {
		o.Topics = []string{""}
	}
	if o.QueueMessages <= 0 {
		o.QueueMessages = 50_000
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = 32 << 20
	}
	heartbeat(&o.Heartbeat, &o.Silence)
	orDuration(&o.MinRetry, 100*time.Millisecond)
	orDuration(&o.MaxRetry, 1500*time.Millisecond)
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// heartbeat completes how often a peer is asked for a sign of life, and how long
// it may give none.
func heartbeat(every, silence *time.Duration) {
	if *every == 0 {
		*every = time.Second
	}
	if *every < 0 {
		*every, *silence = 0, 0
		return
	}
	orDuration(silence, 3**every)
}

// Bounds of the subscription itself.
const (
	mostTopics     = 64
	mostTopicBytes = 4 << 10
)

// subscription is which messages are wanted, by the beginnings of their first
// frames.
type subscription struct{ topics []string }

// wants reports whether first begins like one of the topics: a publisher that
// filters badly is filtered here.
func (s subscription) wants(first []byte) bool {
	for _, t := range s.topics {
		if len(t) == 0 || bytes.HasPrefix(first, []byte(t)) {
			return true
		}
	}
	return false
}

func checkTopics(topics []string) error {
	if len(topics) > mostTopics {
		return fmt.Errorf("subscriber: %d topics, at most %d are subscribed; a shorter common beginning takes several", len(topics), mostTopics)
	}
	for _, t := range topics {
		if len(t) > mostTopicBytes {
			return fmt.Errorf("subscriber: a topic of %d bytes, %d are allowed", len(t), mostTopicBytes)
		}
	}
	return nil
}

// Subscriber follows one publisher. It dials, subscribes and delivers, and
// begins again whenever the connection is lost or cannot be had, until its
// context ends.
type Subscriber struct {
	opt   SubscriberOptions
	end   Endpoint
	queue *queue

	mu     sync.Mutex // guards status
	status Status
}

// NewSubscriber returns a subscriber that does nothing yet; Run sets it going.
// The error names the option that cannot be.
func NewSubscriber(opt SubscriberOptions) (*Subscriber, error) {
	end, err := ParseEndpoint(opt.Endpoint)
	if err != nil {
		return nil, err
	}
	if (opt.Handle == nil) == (opt.HandleBatch == nil) {
		return nil, errors.New("subscriber: want exactly one of Handle and HandleBatch")
	}
	opt.defaults()
	if err := checkTopics(opt.Topics); err != nil {
		return nil, err
	}
	if opt.MaxRetry < opt.MinRetry {
		return nil, fmt.Errorf("subscriber: MaxRetry %v is below MinRetry %v", opt.MaxRetry, opt.MinRetry)
	}
	s := &Subscriber{opt: opt, end: end, queue: newQueue(opt.QueueMessages, opt.QueueBytes)}
	s.status.Since = opt.Now()
	return s, nil
}

// Run follows the publisher until ctx ends, and returns when its goroutines
// have. It is called once. What waits for the handler then is let go.
func (s *Subscriber) Run(ctx context.Context) {
	var delivering sync.WaitGroup
	delivering.Go(func() { s.queue.deliver(ctx.Done(), nil, s.hand) })
	defer delivering.Wait()
	try := 0
	for ctx.Err() == nil {
		began, err := s.follow(ctx)
		if ctx.Err() != nil {
			err = nil
		}
		now := s.opt.Now()
		// A connection that did not last is a failed try: a publisher that hangs
		// up at once is not dialled ten times a second.
		if !began.IsZero() && now.Sub(began) >= s.opt.MaxRetry {
			try = 0
		}
		wait := backoff(try, s.opt.MinRetry, s.opt.MaxRetry, s.opt.Rand())
		s.lost(now, wait, err)
		try++
		if !sleep(ctx, wait) {
			break
		}
	}
	s.lost(s.opt.Now(), 0, nil)
}

// follow dials and reads one connection to its end. began is when it stood, zero
// if it never did.
func (s *Subscriber) follow(ctx context.Context) (began time.Time, err error) {
	s.change(func(st *Status) { st.Dials++; st.NextDial = time.Time{} })
	cfg := Config{
		Type: SUB, Limits: s.opt.Limits, Handshake: s.opt.Handshake,
		Heartbeat: s.opt.Heartbeat, Silence: s.opt.Silence, Now: s.opt.Now,
	}
	c, err := Dial(ctx, s.end, cfg, s.opt.Dial)
	if err != nil {
		return began, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer func() { stop(); c.Close() }()
	if err := c.Subscribe(s.opt.Topics...); err != nil {
		return began, fmt.Errorf("subscribe at %s: %w", s.end, err)
	}
	began = s.opt.Now()
	conn := s.connected(began, c)
	for {
		frames, err := c.Read()
		if errors.Is(err, io.EOF) {
			return began, fmt.Errorf("%s: the publisher closed the connection: %w", s.end, err)
		}
		if err != nil {
			return began, fmt.Errorf("%s: %w", s.end, err)
		}
		s.take(conn, c.Heard(), frames)
	}
}

// take counts one message and queues it.
func (s *Subscriber) take(conn uint64, at time.Time, frames [][]byte) {
	wanted := subscription{s.opt.Topics}.wants(frames[0])
	s.mu.Lock()
	st := &s.status
	st.Messages++
	for _, f := range frames {
		st.Bytes += uint64(len(f))
	}
	st.LastMessage = at
	if !wanted {
		st.Foreign++
	}
	s.mu.Unlock()
	if wanted {
		s.queue.push(conn, frames)
	}
}

func (s *Subscriber) hand(m Message) {
	if s.opt.Handle != nil {
		s.opt.Handle(m)
		return
	}
	b, err := m.Batch()
	if err != nil {
		s.change(func(st *Status) { st.Malformed++; st.LastMalformed = err })
		return
	}
	s.opt.HandleBatch(b)
}

// backoff is how long to wait before try number try, counted from 0: the upper
// half of a span that doubles from least to most; r is uniform in [0,1).
func backoff(try int, least, most time.Duration, r float64) time.Duration {
	top := most
	if try < 16 {
		top = min(most, least<<try)
	}
	return top/2 + time.Duration(r*float64(top-top/2))
}

// sleep waits for d; false when ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
