package feed

import (
	"time"

	"adpdeck/router/model"
)

const (
	// maxPending bounds the commands that wait for their reply, per client.
	maxPending = 64
	// replyTimeout is when a reply is no longer expected on a healthy link.
	replyTimeout = 30 * time.Second
)

// pending holds who waits for which reply. Every channel has capacity 1, gets
// at most one reply, and is closed without one when the outcome is unknown.
type pending struct {
	waiters map[string][]waiter
	count   int
}

type waiter struct {
	reply chan<- model.Reply
	since time.Time
}

// add notes a waiter. First says that no other waits for the same id, so the
// command must be sent; full, that the bound is reached and nothing was noted.
func (p *pending) add(id string, reply chan<- model.Reply, now time.Time) (first, full bool) {
	if p.count >= maxPending {
		return false, true
	}
	if p.waiters == nil {
		p.waiters = make(map[string][]waiter)
	}
	first = len(p.waiters[id]) == 0
	p.waiters[id] = append(p.waiters[id], waiter{reply, now})
	p.count++
	return first, false
}

// answer hands a reply to all who wait for it; one that nobody waits for is
// dropped.
func (p *pending) answer(r model.Reply) {
	for _, w := range p.take(r.ID) {
		w.reply <- r
	}
}

// drop forgets those who wait for id without telling them.
func (p *pending) drop(id string) { p.take(id) }

func (p *pending) take(id string) []waiter {
	list := p.waiters[id]
	delete(p.waiters, id)
	p.count -= len(list)
	return list
}

// abandon closes every channel: the outcomes are unknown.
func (p *pending) abandon() {
	for id := range p.waiters {
		p.give(id)
	}
}

// expire closes the channels of commands sent before t.
func (p *pending) expire(t time.Time) {
	for id, list := range p.waiters {
		if list[0].since.Before(t) {
			p.give(id)
		}
	}
}

func (p *pending) give(id string) {
	for _, w := range p.take(id) {
		close(w.reply)
	}
}

func busy(message, next string) *model.Refusal {
	return &model.Refusal{Code: model.RefusedBusy, Message: message, Next: next}
}

func malformed(message, next string) *model.Refusal {
	return &model.Refusal{Code: model.RefusedMalformed, Message: message, Next: next}
}
