package zmq_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/engine/zmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// subscribe connects a raw SUB, and waits until the publisher knows it.
func subscribe(t *testing.T, p *zmq.Publisher, topics ...string) *zmtp.Conn {
	t.Helper()
	e, err := zmtp.ParseEndpoint(p.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	c, err := zmtp.Dial(within(t), e, zmtp.Config{Type: zmtp.SUB, Silence: 10 * time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	n := p.Subscribers()
	if err := c.Subscribe(topics...); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitSubscribers(within(t), n+1); err != nil {
		t.Fatal(err)
	}
	return c
}

// seqs reads n batches and returns their numbers.
func seqs(t *testing.T, c *zmtp.Conn, n int) (out []uint64) {
	t.Helper()
	for range n {
		frames, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		b, err := zmtp.Message{Frames: frames}.Batch()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Seq)
	}
	return out
}

// The bytes that libzmq's SUB, DEALER and REQ wrote are understood, and the
// publisher writes what those took; see zmtp/testdata/record.py.
func TestRecordedClients(t *testing.T) {
	tests := map[string]struct {
		old    bool
		router bool
	}{
		"pub-sub":       {},
		"pub-sub-old":   {old: true},
		"router-dealer": {router: true},
		"router-req":    {router: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := listen(t, zmq.Options{Topic: "kv@pod", Replay: "tcp://127.0.0.1:0", OldMinor: tt.old})
			endpoint := p.Endpoint()
			if tt.router {
				endpoint = p.ReplayEndpoint()
				for i := range 4 {
					p.Publish(fmt.Append(nil, i))
				}
			}
			nc, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if err := nc.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			speak(t, nc, filepath.Join("..", "..", "zmtp", "testdata", name+".txt"))
			want := []byte("\x01\x00\x01\x08\x00\x00\x00\x00\x00\x00\x00\x02\x00\x012" +
				"\x01\x00\x01\x08\x00\x00\x00\x00\x00\x00\x00\x03\x00\x013" +
				"\x01\x00\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00")
			if !tt.router {
				if err := p.WaitSubscribers(within(t), 1); err != nil {
					t.Fatal(err)
				}
				p.Publish([]byte("hi"))
				want = []byte("\x01\x06kv@pod\x01\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02hi")
			}
			expect(t, nc, want)
		})
	}
}

// speak writes what libzmq wrote and expects what it was sent.
func speak(t *testing.T, nc net.Conn, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		mark, digits, _ := strings.Cut(strings.TrimSpace(l), " ")
		if mark == "#" {
			continue
		}
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		if mark == ">" {
			expect(t, nc, data)
		} else if _, err := nc.Write(data); err != nil {
			t.Fatal(err)
		}
	}
}

func expect(t *testing.T, nc net.Conn, want []byte) {
	t.Helper()
	have := make([]byte, len(want))
	if n, err := io.ReadFull(nc, have); err != nil || !bytes.Equal(have, want) {
		t.Fatalf("read %x, %v\nwant %x", have[:n], err, want)
	}
}

func TestSubscriptions(t *testing.T) {
	p := listen(t, zmq.Options{Topic: "kv@a"})
	all, one, other := subscribe(t, p, ""), subscribe(t, p, "kv@a", "kv@"), subscribe(t, p, "kv@b")
	p.Publish([]byte("x"))
	p.PublishFrames([]byte("kv@b"), make([]byte, 8), []byte("for the other"))
	if got := seqs(t, one, 1); got[0] != 0 {
		t.Error(got)
	}
	seqs(t, all, 2)
	seqs(t, other, 1)
	// Two subscriptions, one taken back: it is still subscribed.
	if err := one.Write([]byte("\x00kv@a")); err != nil {
		t.Fatal(err)
	}
	if err := one.Write([]byte("\x00kv@")); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitSubscribers(within(t), 2); err != nil {
		t.Fatal(err)
	}
	all.Close()
	if err := p.WaitSubscribers(within(t), 1); err != nil {
		t.Fatal(err)
	}
}

// A subscriber that does not read loses what is beyond the mark, and only it.
func TestHighWaterMark(t *testing.T) {
	p := listen(t, zmq.Options{HWM: 10})
	slow, quick := subscribe(t, p, ""), subscribe(t, p, "")
	const n = 400
	for seq := range uint64(n) {
		p.Publish(make([]byte, 256<<10)) // the kernel holds some megabytes
		if got := seqs(t, quick, 1); got[0] != seq {
			t.Fatalf("batch %d, want %d", got[0], seq)
		}
	}
	lost := int(p.Figures().BeyondHWM)
	if lost < n/4 {
		t.Errorf("only %d of %d lost", lost, n)
	}
	got := seqs(t, slow, n-lost)
	if !slices.IsSorted(got) || got[0] != 0 {
		t.Errorf("the slow one has %v", got)
	}
}

// run publishes n batches under faults and returns what arrives.
func run(t *testing.T, f zmq.Faults, seed uint64, n int) ([]uint64, zmq.Figures) {
	t.Helper()
	p := listen(t, zmq.Options{Seed: seed, Faults: f})
	c := subscribe(t, p, "")
	for range n {
		p.Publish([]byte("x"))
	}
	p.Flush()
	fig := p.Figures()
	return seqs(t, c, n-int(fig.Dropped)+int(fig.Duplicated)), fig
}

func TestBatchFaults(t *testing.T) {
	drop, fig := run(t, zmq.Faults{Drop: 0.2}, 1, 500)
	if fig.Dropped < 60 || fig.Dropped > 140 || !slices.IsSorted(drop) {
		t.Errorf("%+v", fig)
	}
	twice, fig := run(t, zmq.Faults{Duplicate: 0.2}, 1, 500)
	if len(twice) < 560 || len(slices.Compact(slices.Clone(twice))) != 500 {
		t.Errorf("%+v", fig)
	}
	mixed, fig := run(t, zmq.Faults{Reorder: 0.2}, 1, 500)
	if fig.Reordered < 50 || slices.IsSorted(mixed) {
		t.Errorf("%+v", fig)
	}
	slices.Sort(mixed)
	if len(slices.Compact(mixed)) != 500 {
		t.Error("a reordered batch is lost")
	}
	all := zmq.Faults{Drop: 0.1, Duplicate: 0.1, Reorder: 0.1}
	a, _ := run(t, all, 7, 200)
	b, _ := run(t, all, 7, 200)
	c, _ := run(t, all, 8, 200)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("the seed does not decide")
	}
}

func TestCutInTheMiddleOfAFrame(t *testing.T) {
	p := listen(t, zmq.Options{Faults: zmq.Faults{CutAfter: 200}})
	c := subscribe(t, p, "")
	p.Publish(make([]byte, 500))
	if _, err := c.Read(); err == nil || errors.Is(err, zmtp.ErrSilent) {
		t.Errorf("error %v", err)
	}
	if err := p.WaitSubscribers(within(t), 0); err != nil {
		t.Error(err)
	}
}

// A stopped publisher refuses and publishes nothing; a started one is new.
func TestStopAndStart(t *testing.T) {
	p := listen(t, zmq.Options{Endpoint: "ipc://" + filepath.Join(t.TempDir(), "kv"), Heartbeat: time.Second})
	p.Publish([]byte("x"))
	if seq := p.Publish([]byte("x")); seq != 1 {
		t.Error(seq)
	}
	p.Stop()
	if _, err := net.Dial("unix", strings.TrimPrefix(p.Endpoint(), "ipc://")); err == nil {
		t.Error("a stopped publisher takes connections")
	}
	p.Publish([]byte("x"))
	if err := errors.Join(p.Start(), p.Start()); err != nil {
		t.Fatal(err)
	}
	c := subscribe(t, p, "")
	p.Publish([]byte("x"))
	if got := seqs(t, c, 1); got[0] != 0 {
		t.Errorf("number %d after a restart", got[0])
	}
}

func TestBadEndpoints(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "tcp://nohost.invalid:0", "tcp://127.0.0.1", "ipc:///no/such/folder/kv"} {
		if _, err := zmq.Listen(zmq.Options{Endpoint: at}); err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("%s: error %v", at, err)
		}
		if _, err := zmq.Listen(zmq.Options{Replay: at}); err == nil {
			t.Errorf("replay at %s: no error", at)
		}
	}
}

// libzmq's own clients are served, heartbeats included.
func TestLibzmqClients(t *testing.T) {
	python := ""
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import zmq").Run() == nil {
			python = name
		}
	}
	if python == "" {
		t.Skip("python3 with pyzmq is not installed (Debian: apt-get install python3-zmq)")
	}
	for _, old := range []bool{false, true} {
		p := listen(t, zmq.Options{
			Topic: "kv@pod", Replay: "tcp://127.0.0.1:0", TopicInReplay: !old, OldMinor: old,
			Heartbeat: 50 * time.Millisecond, Faults: zmq.Faults{OneByte: true},
		})
		sub := exec.CommandContext(within(t), python, filepath.Join("testdata", "client.py"), "sub", p.Endpoint(), "kv@", "3")
		var out strings.Builder
		sub.Stdout = &out
		if err := sub.Start(); err != nil {
			t.Fatal(err)
		}
		if err := p.WaitSubscribers(within(t), 1); err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1, 300, 70_000} {
			p.Publish(make([]byte, size))
		}
		if err := sub.Wait(); err != nil || out.String() != "kv@pod 0 1\nkv@pod 1 300\nkv@pod 2 70000\n" {
			t.Errorf("%q, %v", out.String(), err)
		}
		got, err := exec.CommandContext(within(t), python, filepath.Join("testdata", "client.py"), "replay", p.ReplayEndpoint(), "1").Output()
		if err != nil || string(got) != "1 300\n2 70000\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
}
