package zmq

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"

	"adpdeck/router/engine/zmtp"
)

// mostTopics bounds what one connection may subscribe to.
const mostTopics = 1024

// subscriber is one connection of the PUB socket.
type subscriber struct {
	conn *zmtp.Conn
	hwm  int
	wake chan struct{} // capacity 1: something waits, or the end has come

	mu     sync.Mutex // guards what follows
	topics map[string]int
	queue  [][]byte
	gone   bool
}

// servePub speaks to one subscriber: a goroutine writes, this one reads.
func (p *Publisher) servePub(s *socket, nc net.Conn) {
	sub := &subscriber{hwm: p.opt.HWM, wake: make(chan struct{}, 1), topics: make(map[string]int)}
	cfg := p.config(zmtp.PUB)
	cfg.OnCommand = func(name string, data []byte) error {
		switch name {
		case "SUBSCRIBE":
			return sub.subscribe(1, data, p)
		case "CANCEL":
			return sub.subscribe(-1, data, p)
		}
		return nil
	}
	conn, err := zmtp.Handshake(nc, cfg)
	if err != nil {
		return
	}
	sub.conn = conn
	s.addSubscriber(sub)
	var writing sync.WaitGroup
	writing.Go(sub.write)
	defer func() {
		nc.Close()
		s.removeSubscriber(sub)
		sub.end()
		writing.Wait()
		p.note()
	}()
	for {
		frames, err := conn.Read()
		if err != nil {
			return
		}
		// ZMTP 3.0's subscription is a message: 1 or 0, then the topic.
		f := frames[0]
		if len(frames) != 1 || len(f) == 0 || f[0] > 1 {
			continue
		}
		if sub.subscribe(2*int(f[0])-1, f[1:], p) != nil {
			return
		}
	}
}

// subscribe counts a subscription up or down, as libzmq does.
func (s *subscriber) subscribe(by int, topic []byte, p *Publisher) error {
	s.mu.Lock()
	if len(s.topics) == mostTopics && s.topics[string(topic)] == 0 && by > 0 {
		s.mu.Unlock()
		return fmt.Errorf("more than %d topics", mostTopics)
	}
	if n := s.topics[string(topic)] + by; n > 0 {
		s.topics[string(topic)] = n
	} else {
		delete(s.topics, string(topic))
	}
	s.mu.Unlock()
	p.note()
	return nil
}

func (s *subscriber) subscribed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics) > 0
}

// offer queues message if its topic is wanted; false when there is no room.
func (s *subscriber) offer(topic, message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := false
	for t := range s.topics {
		wanted = wanted || bytes.HasPrefix(topic, []byte(t))
	}
	if !wanted {
		return true
	}
	if len(s.queue) >= s.hwm {
		return false
	}
	s.queue = append(s.queue, message)
	s.nudge()
	return true
}

func (s *subscriber) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscriber) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.queue = true, nil
	s.nudge()
}

// write sends what is queued, many messages at once, until the connection ends.
func (s *subscriber) write() {
	var out []byte
	for range s.wake {
		for {
			s.mu.Lock()
			batch := s.queue
			gone := s.gone
			if n := min(len(batch), 256); n < len(batch) {
				batch, s.queue = batch[:n], batch[n:]
			} else {
				s.queue = nil
			}
			s.mu.Unlock()
			if gone {
				return
			}
			if len(batch) == 0 {
				break
			}
			out = out[:0]
			for _, m := range batch {
				out = append(out, m...)
			}
			if s.conn.WriteRaw(out) != nil {
				s.conn.Close() // the reader notices, and ends this goroutine
				break
			}
		}
	}
}

// note wakes whoever waits for subscribers.
func (p *Publisher) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.moved)
	p.moved = make(chan struct{})
}

// Subscribers returns how many connections have a subscription.
func (p *Publisher) Subscribers() int {
	p.mu.Lock()
	pub := p.pub
	p.mu.Unlock()
	if pub == nil {
		return 0
	}
	return pub.subscribed()
}

// WaitSubscribers returns when exactly n connections have a subscription, or
// when ctx ends, with its error.
func (p *Publisher) WaitSubscribers(ctx context.Context, n int) error {
	for {
		p.mu.Lock()
		moved := p.moved
		p.mu.Unlock()
		if p.Subscribers() == n {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%d subscribers, waiting for %d: %w", p.Subscribers(), n, ctx.Err())
		}
	}
}
