package zmtp_test

import (
	"context"
	"encoding/binary"
	"net"
	"testing"

	"adpdeck/router/engine/zmtp"
)

// BenchmarkSubscriber is the whole way of a message of 700 bytes: a raw sender's
// TCP socket, the subscriber's, its queue, the handler. It counts what arrived;
// what the sender outran is reported as dropped.
func BenchmarkSubscriber(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	// A block of messages is written over and over; the numbers do not matter.
	var block []byte
	const perBlock = 80
	for i := range perBlock {
		block = zmtp.AppendMessage(block, []byte("kv@pod"), binary.BigEndian.AppendUint64(nil, uint64(i)), make([]byte, 700))
	}
	sent := make(chan error, 1)
	start := make(chan struct{})
	go func() {
		nc, err := l.Accept()
		if err != nil {
			sent <- err
			return
		}
		defer nc.Close()
		c, err := zmtp.Handshake(nc, zmtp.Config{Type: zmtp.PUB})
		if err != nil {
			sent <- err
			return
		}
		if _, err := c.Read(); err != nil { // the subscription
			sent <- err
			return
		}
		<-start
		for n := 0; n < b.N && err == nil; n += perBlock {
			err = c.WriteRaw(block)
		}
		sent <- err
		c.Read() // until the subscriber hangs up
	}()
	seen := 0
	s, err := zmtp.NewSubscriber(zmtp.SubscriberOptions{
		Endpoint: "tcp://" + l.Addr().String(), Heartbeat: -1,
		HandleBatch: func(m zmtp.Batch) { seen += len(m.Payload) / 700 },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	b.SetBytes(700)
	b.ReportAllocs()
	b.ResetTimer()
	close(start)
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
	want := uint64((b.N + perBlock - 1) / perBlock * perBlock)
	for st := s.Status(); st.Messages < want || st.Waiting > 0; st = s.Status() {
	}
	b.StopTimer()
	cancel()
	<-done
	b.ReportMetric(float64(s.Status().Dropped)/float64(b.N)*100, "%dropped")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}

// endless is a peer that says one block over and over.
type endless struct {
	canned
	block []byte
	at    int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.block[e.at:])
	e.at = (e.at + n) % len(e.block)
	return n, nil
}

// BenchmarkConn is the decoding alone.
func BenchmarkConn(b *testing.B) {
	hello := says(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "PUB")))
	c, err := zmtp.Handshake(&handover{first: hello, then: &endless{
		block: zmtp.AppendMessage(nil, []byte("kv@pod"), make([]byte, 8), make([]byte, 700)),
	}}, zmtp.Config{Type: zmtp.SUB})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(700)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// handover reads first to its end, and then the other.
type handover struct {
	canned
	first canned
	then  *endless
}

func (h *handover) Read(p []byte) (int, error) {
	if n, err := h.first.Read(p); err == nil {
		return n, nil
	}
	return h.then.Read(p)
}
