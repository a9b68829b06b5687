package gateway

import (
	"container/list"
	"crypto/rand"
	"sync"
	"time"

	"adpdeck/router/model"
)

// leases are the placements that /v1/route handed out. One that is neither ended
// nor heard of for a time is taken for abandoned. Their number is bounded by the
// router's open requests.
type leases struct {
	ttl time.Duration

	mu    sync.Mutex // guards what follows
	by    map[string]*list.Element
	order *list.List // of *lease, the one that expires first in front
}

type lease struct {
	name   string // by which its holder speaks of it
	id     int64  // of the request
	target model.Target
	until  time.Time
	start  time.Time
	first  bool
}

// leaseTime is how long a placement stands without a word.
func leaseTime(s model.GatewaySpec) time.Duration {
	if s.RequestTimeoutSecs > 0 {
		return seconds(s.RequestTimeoutSecs)
	}
	return 10 * time.Minute
}

func newLeases(ttl time.Duration) *leases {
	return &leases{ttl: ttl, by: map[string]*list.Element{}, order: list.New()}
}

// add returns the placement's name. It cannot be guessed: whoever knows it may end
// the placement, and the clients of a gateway need not trust each other.
func (l *leases) add(id int64, t model.Target, now time.Time) string {
	name := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[name] = l.order.PushBack(&lease{name: name, id: id, target: t, start: now, until: now.Add(l.ttl)})
	return name
}

// firstToken notes that the first token came and renews the lease, of which it
// returns a copy as it was before. ok is false where there is none.
func (l *leases) firstToken(name string, now time.Time) (was lease, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[name]
	if e == nil {
		return was, false
	}
	held := e.Value.(*lease)
	was = *held
	held.first, held.until = true, now.Add(l.ttl)
	l.order.MoveToBack(e)
	return was, true
}

// end takes a lease off and returns its request's id; it reports false where there
// is none.
func (l *leases) end(name string) (id int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[name]
	if e == nil {
		return 0, false
	}
	delete(l.by, name)
	l.order.Remove(e)
	return e.Value.(*lease).id, true
}

// expire takes off those whose time is over and returns their requests' ids.
func (l *leases) expire(now time.Time) (ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.order.Front(); e != nil && !e.Value.(*lease).until.After(now); e = l.order.Front() {
		ids = append(ids, e.Value.(*lease).id)
		delete(l.by, e.Value.(*lease).name)
		l.order.Remove(e)
	}
	return ids
}

func (l *leases) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Len()
}
