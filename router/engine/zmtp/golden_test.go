package zmtp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"adpdeck/router/engine/zmtp"
)

// What libzmq wrote is understood, and what libzmq took of the recorded client is
// what is written here, byte for byte.
func TestRecordedPublisher(t *testing.T) {
	ours, theirs := net.Pipe()
	played := make(chan error, 1)
	go func() { played <- play(theirs, recorded(t, "sub-pub"), true) }()
	s, batches := follow(t, zmtp.SubscriberOptions{
		Endpoint: "tcp://engine:5557", Topics: []string{"kv"}, Dial: once(ours), Heartbeat: -1,
	})
	var all strings.Builder
	for i := range 257 {
		all.WriteByte(byte(i))
	}
	want := []got{
		{1, 0, "kv@pod", "payload"},
		{1, 2, "kv@pod", all.String()[:256] + "!"},
		{1, 3, "kv", ""},
	}
	for _, w := range want {
		if g := next(t, batches); g != w {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
	if err := <-played; err != nil {
		t.Error(err)
	}
	until(t, "the message of one frame is counted", func() bool { return s.Status().Malformed == 1 })
	st := s.Status()
	if !st.Connected || st.Conn != 1 || st.PeerType != zmtp.PUB || st.PeerMinor != 1 || st.Messages != 4 {
		t.Errorf("status %+v", st)
	}
	if !errors.Is(st.LastMalformed, zmtp.ErrMalformed) {
		t.Errorf("last malformed: %v", st.LastMalformed)
	}
	theirs.Close()
	until(t, "the lost connection shows", func() bool { return !s.Status().Connected })
}

func TestRecordedHeartbeat(t *testing.T) {
	ours, theirs := net.Pipe()
	played := make(chan error, 1)
	go func() { played <- play(theirs, recorded(t, "sub-pub-heartbeat"), false) }()
	_, batches := follow(t, zmtp.SubscriberOptions{Endpoint: "tcp://engine:5557", Dial: once(ours), Heartbeat: -1})
	if g := next(t, batches); g != (got{1, 0, "", "alive"}) {
		t.Errorf("got %+v", g)
	}
	if err := <-played; err != nil {
		t.Error(err)
	}
}

func TestRecordedReplay(t *testing.T) {
	for _, name := range []string{"dealer-router", "dealer-router-topic"} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			played := make(chan error, 1)
			go func() { played <- play(theirs, recorded(t, name), false) }()
			var seqs []uint64
			d := zmtp.Dealer{Dial: once(ours)}
			r, err := d.Replay(within(t), "tcp://engine:5657", 5, func(seq uint64, payload []byte) error {
				if want := "batch " + string(rune('0'+seq)); string(payload) != want {
					t.Errorf("batch %d is %q, want %q", seq, payload, want)
				}
				seqs = append(seqs, seq)
				return nil
			})
			if err != nil || !slices.Equal(seqs, []uint64{5, 6, 7}) {
				t.Errorf("%v, %v", seqs, err)
			}
			if r != (zmtp.Replayed{First: 5, Last: 7, Count: 3, Bytes: 21}) {
				t.Errorf("%+v", r)
			}
			if err := <-played; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRecordedRefusals(t *testing.T) {
	tests := map[string]struct {
		is   error
		says string
	}{
		"sub-rep":   {zmtp.ErrSocketType, `the peer is a "REP" socket, a SUB talks to PUB`},
		"sub-plain": {io.ErrUnexpectedEOF, "it wants authentication"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			played := make(chan error, 1)
			go func() { played <- play(theirs, recorded(t, name), false) }()
			e := zmtp.Endpoint{Network: "tcp", Address: "engine:5557"}
			_, err := zmtp.Dial(context.Background(), e, zmtp.Config{Type: zmtp.SUB, Handshake: 5 * time.Second}, once(ours))
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
			if err := <-played; err != nil {
				t.Error(err)
			}
		})
	}
}
