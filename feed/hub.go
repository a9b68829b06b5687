package feed

import (
	"context"
	"sync"
	"time"

	"adpdeck/router/model"
)

// hub is the one builder of changes: it takes them from the router, numbers and
// encodes each once, and puts the bytes into every client's outbox.
type hub struct {
	opt   *ServerOptions
	stats *counters
	sent  sentIDs       // decisions that clients may know; only run touches it
	hurry chan struct{} // capacity 1: a command was applied, somebody waits to see it

	mu     sync.Mutex // guards what follows
	merger Merger
	seq    uint64
	peers  map[*peer]struct{}
	tap    *outbox // the recorder's, nil without one
	closed bool
}

func newHub(opt *ServerOptions, stats *counters) *hub {
	return &hub{opt: opt, stats: stats, hurry: make(chan struct{}, 1), peers: make(map[*peer]struct{})}
}

// leastPeriod is the least time between two changes, whatever happens.
const leastPeriod = 100 * time.Millisecond

// run publishes until ctx ends: at once after a pause, otherwise one change per
// ChangePeriod, or leastPeriod after a command, and a heartbeat when nothing
// happened for Heartbeat.
func (h *hub) run(ctx context.Context, sub Subscription) {
	timer := time.NewTimer(h.opt.Heartbeat)
	defer timer.Stop()
	last := time.Now().Add(-h.opt.ChangePeriod)
	dirty, changed, period := false, sub.C(), h.opt.ChangePeriod
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			dirty, changed = true, nil
		case <-h.hurry:
			period = leastPeriod
			if !dirty { // the command has put its sign there before it was answered
				continue
			}
		case <-timer.C:
		}
		if wait := period - time.Since(last); wait > 0 {
			timer.Reset(wait)
			continue
		}
		if dirty || time.Since(last) >= h.opt.Heartbeat {
			h.step(sub)
			last, period = time.Now(), h.opt.ChangePeriod
		}
		dirty, changed = false, sub.C()
		timer.Reset(h.opt.Heartbeat - time.Since(last))
	}
}

// step takes what changed and publishes it; nothing new makes a heartbeat.
func (h *hub) step(sub Subscription) {
	ch, resync := sub.Take(h.opt.MaxDecisions)
	switch {
	case resync:
		h.reset(sub.Start())
	case ch != nil:
		h.publish(ch)
	default:
		s := h.merger.State()
		h.publish(&model.Change{At: s.At, Version: s.Version})
	}
}

// reset starts from a state that no change leads to: every client gets it as a
// snapshot.
func (h *hub) reset(s *model.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.merger.Reset(s)
	h.seq++
	for p := range h.peers {
		p.box.refresh()
	}
	if h.tap != nil {
		h.tap.refresh()
	}
}

// publish numbers, encodes and hands out one change. Only run calls it, so the
// number cannot move while it encodes without the lock.
func (h *hub) publish(ch *model.Change) {
	seq := h.seq + 1
	h.mu.Lock()
	idle := len(h.peers) == 0 && h.tap == nil
	h.mu.Unlock()
	var msgs [][]byte
	var err error
	if !idle {
		msgs, seq, err = h.encode(seq, ch)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.merger.Apply(ch)
	h.seq = seq
	if h.tap != nil {
		pushAll(h.tap, msgs, err)
	}
	for p := range h.peers {
		if over := pushAll(p.box, msgs, err); over > 0 {
			h.stats.coalesced.Add(1)
			if over >= h.opt.MaxOverflows {
				h.stats.slow.Add(1)
				p.box.end(CloseSlow, "too slow: the queue overflowed again before it was read")
			}
		}
	}
	for _, msg := range msgs {
		h.stats.frames.Add(uint64(len(h.peers)))
		h.stats.bytes.Add(uint64(len(h.peers) * len(msg)))
	}
}

// pushAll queues the messages of one change. A change that could not be encoded
// becomes a snapshot.
func pushAll(box *outbox, msgs [][]byte, err error) (overflows int) {
	if err != nil {
		box.refresh()
	}
	for _, msg := range msgs {
		overflows = max(overflows, box.push(msg))
	}
	return overflows
}

// encode returns the frames of a change and the number of the last.
func (h *hub) encode(seq uint64, ch *model.Change) ([][]byte, uint64, error) {
	epoch := h.opt.Epoch
	msgs, leftOut, err := encodeChange(epoch, seq, ch)
	if err != nil {
		return nil, seq, err
	}
	seq += uint64(len(msgs)) - 1
	events, more := encodeEvents(epoch, seq, ch.Events)
	h.stats.leftOut.Add(leftOut + more)
	var settled []model.Settled
	for _, s := range ch.Settled {
		if h.sent.has(s.Decision) || holds(ch.Decisions, s.Decision) {
			settled = append(settled, s)
		}
	}
	decisions, ids := encodeDecisions(epoch, seq, ch.Decisions, ch.DecisionsLeftOut, settled)
	for i := len(ids) - 1; i >= 0; i-- { // sent newest first
		h.sent.add(ids[i])
	}
	return append(append(msgs, events...), decisions...), seq, nil
}

func holds(list []*model.Decision, id uint64) bool {
	for _, d := range list {
		if d.ID == id {
			return true
		}
	}
	return false
}

// join adds a client; false when there are as many as allowed or the server is
// closing. Its outbox asks for a snapshot first.
func (h *hub) join(p *peer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.peers) >= h.opt.MaxClients {
		return false
	}
	h.peers[p] = struct{}{}
	p.s.peers.Add(1) // under the lock, so before Serve begins to wait
	return true
}

func (h *hub) leave(p *peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.peers, p)
}

// snapshot begins a snapshot for the owner of box: what is pushed into box from
// now on follows it.
func (h *hub) snapshot(box *outbox) *snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	box.start()
	return newSnapshot(h.opt.Epoch, h.seq, h.merger.State())
}

// peek is snapshot without dropping what waits in box: the snapshot belongs
// behind the messages counted by waiting.
func (h *hub) peek(box *outbox) (snap *snapshot, waiting int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting, _, _ = box.size()
	return newSnapshot(h.opt.Epoch, h.seq, h.merger.State()), waiting
}

// setTap makes box the recorder's; nil takes it away.
func (h *hub) setTap(box *outbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tap = box
}

// close ends every client and lets no more in.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for p := range h.peers {
		p.end(CloseGoingAway, "server is going away")
	}
}

// sentIDs remembers the newest decisions that were sent, so that no outcome is
// sent of one that nobody knows.
type sentIDs struct {
	ring [model.MaxDecisions]uint64
	next int
	set  map[uint64]struct{}
}

func (s *sentIDs) add(id uint64) {
	if s.set == nil {
		s.set = make(map[uint64]struct{}, model.MaxDecisions)
	}
	delete(s.set, s.ring[s.next])
	s.ring[s.next] = id
	s.next = (s.next + 1) % len(s.ring)
	s.set[id] = struct{}{}
}

func (s *sentIDs) has(id uint64) bool {
	_, ok := s.set[id]
	return ok
}
