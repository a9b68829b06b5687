package zmtp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/engine/zmtp"
)

const anyPort = "tcp://127.0.0.1:0"

// fill publishes n batches, whose payloads are their numbers.
func fill(p *zmq.Publisher, n int) {
	for i := range n {
		p.Publish([]byte(fmt.Sprint(i)))
	}
}

func collect(into *[]uint64) func(uint64, []byte) error {
	return func(seq uint64, payload []byte) error {
		if string(payload) != fmt.Sprint(seq) {
			return fmt.Errorf("batch %d is %q", seq, payload)
		}
		*into = append(*into, seq)
		return nil
	}
}

func span(from, to uint64) (out []uint64) {
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

func TestReplay(t *testing.T) {
	for _, topic := range []bool{false, true} {
		p := listen(t, zmq.Options{Replay: anyPort, Topic: "kv", TopicInReplay: topic, Buffer: 8})
		tests := map[string]struct {
			from    uint64
			want    []uint64
			evicted uint64
		}{
			"a part":       {from: 17, want: span(17, 19)},
			"the newest":   {from: 19, want: span(19, 19)},
			"the future":   {from: 20},
			"all there is": {from: 12, want: span(12, 19)},
			"evicted":      {from: 4, want: span(12, 19), evicted: 12},
		}
		fill(p, 20)
		for name, tt := range tests {
			t.Run(fmt.Sprintf("%s, topic %v", name, topic), func(t *testing.T) {
				var seqs []uint64
				r, err := zmtp.Replay(within(t), p.ReplayEndpoint(), tt.from, collect(&seqs))
				var evicted *zmtp.EvictedError
				switch {
				case tt.evicted > 0:
					if !errors.As(err, &evicted) || *evicted != (zmtp.EvictedError{Asked: tt.from, First: tt.evicted}) {
						t.Errorf("error %v", err)
					}
				case err != nil:
					t.Error(err)
				}
				if !slices.Equal(seqs, tt.want) || r.Count != len(tt.want) {
					t.Errorf("got %v (%+v), want %v", seqs, r, tt.want)
				}
				if r.Count > 0 && (r.First != tt.want[0] || r.Last != 19) {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

func TestReplayAfterRestartAndEviction(t *testing.T) {
	p := listen(t, zmq.Options{Replay: anyPort})
	fill(p, 5)
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	if r, err := zmtp.Replay(within(t), p.ReplayEndpoint(), 5, collect(&seqs)); err != nil || r.Count != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	fill(p, 4)
	p.Evict(2)
	r, err := zmtp.Replay(within(t), p.ReplayEndpoint(), 0, collect(&seqs))
	if want := "begins at 2: the publisher's buffer no longer holds 2 batches"; err == nil || !strings.Contains(err.Error(), want) || r.First != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// answers is a ROUTER that answers a request with what is given.
func answers(stream []byte, then func(net.Conn)) zmtp.DialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			hello := append(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "ROUTER"))...)
			request := append(command("READY", property("Socket-Type", "DEALER")+property("Identity", "")), "\x01\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x03"...)
			if play(theirs, []line{{true, greeting(3, 1, "NULL")}, {false, hello}, {true, request}, {false, stream}}, true) == nil {
				then(theirs)
			}
		}()
		return ours, nil
	}
}

func number(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }

func TestReplayOfBadAnswers(t *testing.T) {
	m := zmtp.AppendMessage
	ff := []byte("\xff\xff\xff\xff\xff\xff\xff\xff")
	end := m(nil, nil, ff, nil)
	three, four := m(nil, nil, number(3), []byte("3")), m(nil, nil, number(4), []byte("4"))
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	hang := func(nc net.Conn) { io.Copy(io.Discard, nc) }
	hangUp := func(net.Conn) {}
	drip := func(nc net.Conn) {
		for i := byte(5); ; i++ {
			time.Sleep(700 * time.Millisecond)
			if _, err := nc.Write(m(nil, nil, number(i), []byte(fmt.Sprint(i)))); err != nil {
				return
			}
		}
	}
	tests := map[string]struct {
		stream []byte
		then   func(net.Conn)
		dealer zmtp.Dealer
		want   []uint64
		is     error
		says   string
		bad    int
		skip   int
	}{
		"mixed framings":     {stream: join(three, m(nil, nil, []byte("kv"), number(4), []byte("4")), end), then: hangUp, want: span(3, 4)},
		"no empty frame":     {stream: join(m(nil, number(3), []byte("3")), end), then: hangUp, want: span(3, 3)},
		"empty payload ends": {stream: join(three, m(nil, nil, number(9), nil)), then: hangUp, want: span(3, 3)},
		"ones with payload":  {stream: join(three, m(nil, nil, ff, []byte("x"))), then: hangUp, want: span(3, 3)},
		"twice and too low":  {stream: join(m(nil, nil, number(2), []byte("2")), three, three, four, three, end), then: hangUp, want: span(3, 4), skip: 3},
		"one malformed":      {stream: join(m(nil, []byte("?")), three, m(nil, nil, []byte("short"), []byte("x")), end), then: hangUp, want: span(3, 3), bad: 2},
		"all malformed":      {stream: join(m(nil, []byte("?")), end), then: hangUp, is: zmtp.ErrMalformed, says: "answer of 1 frames", bad: 1},
		"five frames":        {stream: join(m(nil, nil, nil, nil, number(3), []byte("3")), end), then: hangUp, is: zmtp.ErrMalformed, bad: 1},
		"closed too early":   {stream: join(three), then: hangUp, want: span(3, 3), is: io.ErrUnexpectedEOF, says: "before the end of its answer"},
		"hangs":              {stream: join(three), then: hang, want: span(3, 3), is: zmtp.ErrSilent, says: "silent for 5.1s: no answer"},
		"never ends":         {stream: join(three, four), then: drip, want: span(3, 46), is: context.DeadlineExceeded, says: "did not end within 30s"},
		"too many":           {stream: join(three, four, end), then: hang, dealer: zmtp.Dealer{MaxBatches: 1}, want: span(3, 3), is: zmtp.ErrTooLarge, says: "more than 1 batches"},
		"too many malformed": {stream: join(m(nil, []byte("?")), three, end), then: hang, dealer: zmtp.Dealer{MaxBatches: 1}, is: zmtp.ErrTooLarge, bad: 1},
		"too large":          {stream: join(three, four, end), then: hang, dealer: zmtp.Dealer{MaxBytes: 1}, want: span(3, 3), is: zmtp.ErrTooLarge, says: "more than 1 bytes"},
		"no ZMTP any more":   {stream: join(three, []byte{0x40, 1, 1}), then: hangUp, want: span(3, 3), is: zmtp.ErrProtocol},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.dealer.Dial = answers(tt.stream, tt.then)
				var seqs []uint64
				r, err := tt.dealer.Replay(t.Context(), "tcp://engine:5657", 3, collect(&seqs))
				if !slices.Equal(seqs, tt.want) || r.Count != len(tt.want) || r.Malformed != tt.bad || r.Skipped != tt.skip {
					t.Errorf("got %v, %+v; want %v", seqs, r, tt.want)
				}
				if !errors.Is(err, tt.is) || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %v, want %v saying %q", err, tt.is, tt.says)
				}
				time.Sleep(time.Second) // the peer notices
			})
		})
	}
}

func TestReplayEndsWithItsContextAndItsCaller(t *testing.T) {
	p := listen(t, zmq.Options{Replay: anyPort})
	fill(p, 10)
	stop := errors.New("enough")
	r, err := zmtp.Replay(within(t), p.ReplayEndpoint(), 0, func(seq uint64, _ []byte) error {
		if seq == 4 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || r.Count != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(within(t))
	p.SetFaults(zmq.Faults{HalfOpen: true})
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := zmtp.Replay(ctx, p.ReplayEndpoint(), 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := zmtp.Replay(within(t), "tcp://*:5657", 0, nil); err == nil {
		t.Error("a wildcard is no place to ask")
	}
}

func FuzzReplay(f *testing.F) {
	for _, l := range recorded(f, "dealer-router-topic") {
		f.Add(l.data)
	}
	f.Add(zmtp.AppendMessage(zmtp.AppendMessage(nil, nil, number(3), []byte("x")), nil, number(1), nil))
	f.Fuzz(func(t *testing.T, stream []byte) {
		hello := append(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "ROUTER"))...)
		d := zmtp.Dealer{MaxBatches: 100, MaxBytes: 1 << 16, Dial: once(says(hello, stream))}
		last, n := uint64(2), 0
		r, _ := d.Replay(t.Context(), "tcp://engine:1", 3, func(seq uint64, payload []byte) error {
			if seq <= last || len(payload) == 0 {
				t.Fatalf("batch %d of %d bytes after %d", seq, len(payload), last)
			}
			last = seq
			n++
			return nil
		})
		if r.Count != n || r.Count+r.Skipped+r.Malformed > 100 || r.Bytes > 1<<16 {
			t.Fatalf("%+v of %d", r, n)
		}
	})
}
