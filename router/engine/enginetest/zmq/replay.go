package zmq

import (
	"encoding/binary"
	"net"

	"adpdeck/router/engine/zmtp"
)

// serveReplay answers one client of the ROUTER socket, request by request.
func (p *Publisher) serveReplay(_ *socket, nc net.Conn) {
	conn, err := zmtp.Handshake(nc, p.config(zmtp.ROUTER))
	if err != nil {
		return
	}
	for {
		frames, err := conn.Read()
		if err != nil {
			return
		}
		if len(frames) != 2 || len(frames[0]) != 0 || len(frames[1]) != 8 {
			continue // vLLM logs it and goes on
		}
		if p.answer(conn, binary.BigEndian.Uint64(frames[1])) != nil {
			return
		}
	}
}

// answer sends all batches from number from on that are still kept, and the end
// marker.
func (p *Publisher) answer(conn *zmtp.Conn, from uint64) error {
	p.mu.Lock()
	first := p.seq - uint64(len(p.kept))
	kept := append([][]byte(nil), p.kept...)
	p.figures.Replays++
	p.mu.Unlock()
	var out []byte
	for i, payload := range kept {
		seq := first + uint64(i)
		if seq < from {
			continue
		}
		if out = p.frame(out, p.opt.Topic, seq, payload); len(out) >= 64<<10 {
			if err := conn.WriteRaw(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return conn.WriteRaw(p.frame(out, "", 1<<64-1, nil))
}

// frame appends one answer: with the topic, which the end marker leaves empty,
// or without.
func (p *Publisher) frame(out []byte, topic string, seq uint64, payload []byte) []byte {
	number := binary.BigEndian.AppendUint64(nil, seq)
	if p.opt.TopicInReplay {
		return zmtp.AppendMessage(out, nil, []byte(topic), number, payload)
	}
	return zmtp.AppendMessage(out, nil, number, payload)
}

// Evict forgets the kept batches before number before: a replay begins there at
// the earliest.
func (p *Publisher) Evict(before uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.seq - uint64(len(p.kept))
	if before > first {
		p.kept = p.kept[min(before-first, uint64(len(p.kept))):]
	}
}
