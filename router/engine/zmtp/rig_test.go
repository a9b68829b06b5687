package zmtp_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/engine/zmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// within bounds what a test waits for on real sockets.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func listen(t *testing.T, opt zmq.Options) *zmq.Publisher {
	t.Helper()
	p, err := zmq.Listen(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// got is a batch that was kept.
type got struct {
	conn, seq uint64
	topic     string
	payload   string
}

// follow runs a subscriber until the test ends. Its batches come out of the
// channel, which holds many.
func follow(t *testing.T, opt zmtp.SubscriberOptions) (*zmtp.Subscriber, <-chan got) {
	t.Helper()
	out := make(chan got, 1<<16)
	if opt.HandleBatch == nil && opt.Handle == nil {
		opt.HandleBatch = func(b zmtp.Batch) {
			out <- got{b.Conn, b.Seq, string(b.Topic), string(b.Payload)}
		}
	}
	s, err := zmtp.NewSubscriber(opt)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s, out
}

func run(t testing.TB, s interface{ Run(context.Context) }) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func next(t *testing.T, from <-chan got) got {
	t.Helper()
	select {
	case g := <-from:
		return g
	case <-time.After(15 * time.Second):
		t.Fatal("no batch came")
		return got{}
	}
}

// until polls a condition that nothing announces.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(15 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// line is one direction of a recorded conversation.
type line struct {
	ours bool // written by the client that was recorded
	data []byte
}

// recorded reads a conversation that testdata/record.py had with libzmq.
func recorded(t testing.TB, name string) []line {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	for l := range strings.Lines(string(text)) {
		mark, digits, ok := strings.Cut(strings.TrimSpace(l), " ")
		if !ok || mark == "#" {
			continue
		}
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines = append(lines, line{mark == ">", data})
	}
	return lines
}

// play answers on nc as libzmq did, and reports whether the other side wrote what
// the recorded client wrote. It leaves nc open when hold is set.
func play(nc net.Conn, lines []line, hold bool) error {
	if !hold {
		defer nc.Close()
	}
	for _, l := range lines {
		if !l.ours {
			if _, err := nc.Write(l.data); err != nil {
				return err
			}
			continue
		}
		have := make([]byte, len(l.data))
		if n, err := io.ReadFull(nc, have); err != nil {
			return errors.Join(err, errors.New("read "+hex.EncodeToString(have[:n])))
		}
		if !bytes.Equal(have, l.data) {
			return errors.New("wrote " + hex.EncodeToString(have) + "\nwant  " + hex.EncodeToString(l.data))
		}
	}
	return nil
}

// once is a dialer that gives out nc and then refuses.
func once(nc net.Conn) zmtp.DialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		if nc == nil {
			return nil, errors.New("connection refused")
		}
		c := nc
		nc = nil
		return c, nil
	}
}
