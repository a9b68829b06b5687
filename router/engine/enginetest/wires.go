package enginetest

import (
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"strings"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/model"
)

// maxReplayBytes bounds what a publisher keeps for a replay, beside its count.
const maxReplayBytes = 16 << 20

// wires are the ZMQ sockets of an engine, one for each publisher. They belong to
// Engine.sending.
type wires struct {
	e     *Engine
	ports []*port
}

// port is one publisher's sockets.
type port struct {
	*zmq.Publisher
	opt    zmq.Options
	faults zmq.Faults
	held   bool // the publisher holds a batch back
	sizes  []int
	bytes  int
	next   uint64
}

// listen binds a socket for each publisher.
func (e *Engine) listenEvents() (*wires, error) {
	ev := &e.cfg.Events
	if ev.Endpoint == "" {
		return nil, nil
	}
	w := &wires{e: e}
	for i := range e.publishers {
		number := i
		if e.cfg.Kind != model.EngineDynamo {
			number += e.cfg.StartRank
		}
		p := &port{opt: zmq.Options{Topic: ev.Topic, Connect: ev.Connect, Buffer: ev.BufferSteps, Seed: e.cfg.Seed}}
		var err error
		if p.opt.Endpoint, err = countUp(ev.Endpoint, number); err == nil && ev.Replay != "" {
			p.opt.Replay, err = countUp(ev.Replay, number)
		}
		if err == nil {
			err = p.open(e)
		}
		if err != nil {
			w.close()
			return nil, fmt.Errorf("publish KV events of rank %d: %w", number, err)
		}
		w.ports = append(w.ports, p)
	}
	return w, nil
}

// open starts a publisher, at the ports that it had if it had any.
func (p *port) open(e *Engine) error {
	h := e.habits.Load()
	p.opt.TopicInReplay = h.Framing == "new" || h.Framing == "" && e.cfg.Kind != model.EngineSGLang
	p.faults = zmq.Faults{HalfOpen: h.EventsHang}
	p.opt.Faults = p.faults
	pub, err := zmq.Listen(p.opt)
	if err != nil {
		return err
	}
	p.Publisher, p.held, p.sizes, p.bytes, p.next = pub, false, nil, 0, 0
	p.opt.Endpoint, p.opt.Replay = pub.Endpoint(), pub.ReplayEndpoint()
	return nil
}

func (w *wires) close() {
	for _, p := range w.ports {
		p.Close()
	}
}

// restart closes the sockets of a publisher and opens them anew.
func (w *wires) restart(at int) error {
	w.ports[at].Close()
	return w.ports[at].open(w.e)
}

// hang lets the sockets hang, or go on, as the habits say.
func (w *wires) hang() {
	hang := w.e.habits.Load().EventsHang
	for _, p := range w.ports {
		if p.faults.HalfOpen != hang {
			p.faults.HalfOpen = hang
			p.SetFaults(p.faults)
		}
	}
}

// publish sends a batch of an engine's own publisher, which keeps it for the
// replay whatever becomes of it on the way.
func (w *wires) publish(b *parcel) {
	p := w.ports[b.Publisher]
	if !p.held { // a change of faults would let go of what is held
		f := p.faults
		f.Drop, f.Duplicate, f.Reorder = 0, 0, 0
		switch b.how {
		case sendNever:
			f.Drop = 1
		case sendTwice:
			f.Duplicate = 1
		case sendLate:
			f.Reorder = 1
		}
		if f != p.faults {
			p.faults = f
			p.SetFaults(f)
		}
	}
	p.held = !p.held && b.how == sendLate
	p.Publish(b.Payload)
	p.next++
	p.sizes = append(p.sizes, len(b.Payload))
	p.bytes += len(b.Payload)
	for len(p.sizes) > p.opt.Buffer || p.bytes > maxReplayBytes {
		p.bytes -= p.sizes[0]
		p.sizes = p.sizes[1:]
		p.Evict(p.next - uint64(len(p.sizes)))
	}
}

// plane sends a batch of a Dynamo worker over its event plane: topic, publisher,
// number, and the envelope behind a version and its length.
func (w *wires) plane(b *Batch) {
	w.ports[b.Publisher].PublishFrames(planeFrames(b, w.e.instance(b.Publisher))...)
}

// planeFrames are the frames of a message of the event plane.
func planeFrames(b *Batch, publisher uint64) [][]byte {
	frame := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(b.Payload))), b.Payload...)
	return [][]byte{[]byte(b.Topic), binary.BigEndian.AppendUint64(nil, publisher), binary.BigEndian.AppendUint64(nil, b.Seq), frame}
}

// countUp adds n to the port of an endpoint; port 0 and ipc paths of rank 0 stay.
func countUp(endpoint string, n int) (string, error) {
	address, ok := strings.CutPrefix(endpoint, "tcp://")
	if !ok {
		if n > 0 {
			endpoint += "_dp" + strconv.Itoa(n)
		}
		return endpoint, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("endpoint %s: want tcp://HOST:PORT", endpoint)
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 0 || number > 65535-n {
		return "", fmt.Errorf("endpoint %s: the port of rank %d would not be 0 to 65535", endpoint, n)
	}
	if number > 0 {
		number += n
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(number)), nil
}

// flush hands on what waits in the outbox, in order, without the engine's lock.
func (e *Engine) flush() {
	e.sending.Lock()
	defer e.sending.Unlock()
	e.mu.Lock()
	out, loads := e.outbox, e.loadbox
	e.outbox, e.loadbox = nil, nil
	e.mu.Unlock()
	for i := range loads {
		e.speak(&loads[i])
	}
	for i := range out {
		b := &out[i]
		if e.wires != nil && e.cfg.Kind != model.EngineDynamo {
			e.wires.publish(b)
		}
		late := e.late[b.Publisher]
		e.late[b.Publisher] = nil
		how := b.how
		if late != nil {
			how = sendOnce // as the sockets do: what was held back follows at once
		}
		switch {
		case how == sendLate:
			e.late[b.Publisher] = &b.Batch
		case how == sendNever:
		case how == sendTwice:
			e.hand(&b.Batch)
			fallthrough
		default:
			e.hand(&b.Batch)
		}
		if late != nil {
			e.hand(late)
		}
	}
}

// hand passes a batch to Dynamo's event plane and to those who listen in process.
func (e *Engine) hand(b *Batch) {
	if e.wires != nil && e.cfg.Kind == model.EngineDynamo {
		e.wires.plane(b)
	}
	if e.cfg.Events.OnBatch != nil {
		e.cfg.Events.OnBatch(*b)
	}
}
