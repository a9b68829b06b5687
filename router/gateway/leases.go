package gateway

import (
	"container/list"
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
	by    map[int64]*list.Element
	order *list.List // of *lease, the one that expires first in front
}

type lease struct {
	id     int64
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
	return &leases{ttl: ttl, by: map[int64]*list.Element{}, order: list.New()}
}

func (l *leases) add(id int64, t model.Target, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[id] = l.order.PushBack(&lease{id: id, target: t, start: now, until: now.Add(l.ttl)})
}

// firstToken notes that the first token came and renews the lease. again says that
// it was noted before; ok is false where there is none.
func (l *leases) firstToken(id int64, now time.Time) (t model.Target, took time.Duration, again, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[id]
	if e == nil {
		return t, 0, false, false
	}
	held := e.Value.(*lease)
	again = held.first
	held.first, held.until = true, now.Add(l.ttl)
	l.order.MoveToBack(e)
	return held.target, now.Sub(held.start), again, true
}

// end takes a lease off; it reports false where there is none.
func (l *leases) end(id int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[id]
	if e == nil {
		return false
	}
	delete(l.by, id)
	l.order.Remove(e)
	return true
}

// expire takes off those whose time is over and returns their ids.
func (l *leases) expire(now time.Time) (ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.order.Front(); e != nil && !e.Value.(*lease).until.After(now); e = l.order.Front() {
		ids = append(ids, e.Value.(*lease).id)
		delete(l.by, e.Value.(*lease).id)
		l.order.Remove(e)
	}
	return ids
}

func (l *leases) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Len()
}
