package zmtp_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adpdeck/router/engine/zmtp"
)

// python finds an interpreter that has pyzmq; Debian's package serves only its
// own one.
var python = sync.OnceValue(func() string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import zmq").Run() == nil {
			return name
		}
	}
	return ""
})

// engine is testdata/engine.py, a publisher on real libzmq.
type engine struct {
	t           *testing.T
	cmd         *exec.Cmd
	in          io.WriteCloser
	out         *bufio.Scanner
	pub, replay string
}

func startEngine(t *testing.T, pub, replay, framing string, heartbeat, buffer int) *engine {
	t.Helper()
	if python() == "" {
		t.Skip("python3 with pyzmq is not installed (Debian: apt-get install python3-zmq)")
	}
	e := &engine{t: t, cmd: exec.Command(python(), filepath.Join("testdata", "engine.py"),
		pub, replay, framing, fmt.Sprint(heartbeat), fmt.Sprint(buffer))}
	var errs strings.Builder
	e.cmd.Stderr = &errs
	var err error
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.out = bufio.NewScanner(out)
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.kill()
		if t.Failed() {
			t.Log(errs.String())
		}
	})
	if n, _ := fmt.Sscan(e.line(), &e.pub, &e.replay); n != 2 {
		t.Fatalf("the engine did not start: %s", errs.String())
	}
	return e
}

func (e *engine) line() string {
	e.out.Scan()
	return e.out.Text()
}

func (e *engine) do(format string, args ...any) string {
	fmt.Fprintf(e.in, format+"\n", args...)
	return e.line()
}

// kill ends the process as a crash does.
func (e *engine) kill() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

// catch publishes until a batch arrives, as a PUB socket does not say when its
// subscriber is there, and returns the newest batch.
func (e *engine) catch(batches <-chan got) got {
	for range 200 {
		e.do("publish 1 10")
		select {
		case g := <-batches:
			return g
		case <-time.After(50 * time.Millisecond):
		}
	}
	e.t.Fatal("no batch arrived")
	return got{}
}

func batch(seq uint64, size int) string { return fmt.Sprintf("%d:%s", seq, strings.Repeat("x", size)) }

func TestLibzmqPublisher(t *testing.T) {
	for name, pub := range map[string]string{
		"tcp": "tcp://127.0.0.1:*",
		"ipc": "ipc://" + filepath.Join(t.TempDir(), "kv"),
	} {
		for _, heartbeat := range []int{0, 50} {
			t.Run(fmt.Sprintf("%s, heartbeat %d ms", name, heartbeat), func(t *testing.T) {
				e := startEngine(t, pub, "tcp://127.0.0.1:*", "old", heartbeat, 1000)
				s, batches := follow(t, zmtp.SubscriberOptions{
					Endpoint: e.pub, Topics: []string{"kv@"}, Heartbeat: 100 * time.Millisecond, Silence: 5 * time.Second,
				})
				at := e.catch(batches).seq
				e.do("other")
				for _, size := range []int{0, 1, 255, 256, 700, 100_000, 3 << 20} {
					for range 20 {
						e.do("publish 1 %d", size)
						g := next(t, batches)
						if at++; g.seq != at || g.conn != 1 || g.topic != "kv@pod" || g.payload != batch(at, size) {
							t.Fatalf("got batch %d of %d bytes of connection %d, want %d", g.seq, len(g.payload), g.conn, at)
						}
					}
				}
				e.do("publish 20000 700")
				for range 20_000 {
					if g := next(t, batches); g.seq != at+1 {
						t.Fatalf("batch %d after %d", g.seq, at)
					}
					at++
				}
				// Some heartbeats of both sides pass.
				began := time.Now()
				until(t, "half a second passes", func() bool { return time.Since(began) > 500*time.Millisecond })
				e.do("publish 1 1")
				if g := next(t, batches); g.seq != at+1 {
					t.Errorf("batch %d after %d", g.seq, at)
				}
				if st := s.Status(); st.Conn != 1 || st.LastError != nil || st.Dropped+st.Foreign+st.Malformed != 0 {
					t.Errorf("status %+v", st)
				}
			})
		}
	}
}

// A crash and a new process on the same port: numbers from 0, a new connection.
func TestLibzmqRestart(t *testing.T) {
	e := startEngine(t, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "old", 0, 1000)
	s, batches := follow(t, zmtp.SubscriberOptions{Endpoint: e.pub})
	for conn := uint64(1); conn <= 3; conn++ {
		g := e.catch(batches)
		if g.conn != conn || conn > 1 && g.seq > 100 {
			t.Errorf("got batch %d of connection %d, want connection %d", g.seq, g.conn, conn)
		}
		e.do("publish 500 10")
		for want := g.seq + 1; want < g.seq+501; want++ {
			if g := next(t, batches); g.seq != want || g.conn != conn {
				t.Fatalf("got batch %d of connection %d, want %d of %d", g.seq, g.conn, want, conn)
			}
		}
		e.kill()
		until(t, "the loss shows", func() bool { return !s.Status().Connected })
		e = startEngine(t, e.pub, "tcp://127.0.0.1:*", "old", 0, 1000)
	}
}

func TestLibzmqReplay(t *testing.T) {
	for _, framing := range []string{"old", "topic"} {
		t.Run(framing, func(t *testing.T) {
			e := startEngine(t, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", framing, 50, 300)
			e.do("publish 1000 700")
			for _, from := range []uint64{0, 700, 950, 999, 1000} {
				var seqs []uint64
				_, err := zmtp.Replay(within(t), e.replay, from, func(seq uint64, payload []byte) error {
					if string(payload) != batch(seq, 700) {
						t.Errorf("batch %d has other content", seq)
					}
					seqs = append(seqs, seq)
					return nil
				})
				var evicted *zmtp.EvictedError
				if errors.As(err, &evicted) != (from < 700) || err != nil && evicted == nil {
					t.Errorf("from %d: %v", from, err)
				}
				if from < 1000 && !slices.Equal(seqs, span(max(from, 700), 999)) || from == 1000 && seqs != nil {
					t.Errorf("from %d: %d batches", from, len(seqs))
				}
			}
		})
	}
}

// What is no publisher is refused with the cause.
func TestLibzmqWrongSocket(t *testing.T) {
	e := startEngine(t, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "old", 0, 10)
	s, _ := follow(t, zmtp.SubscriberOptions{Endpoint: e.replay})
	until(t, "the refusal shows", func() bool { return errors.Is(s.Status().LastError, zmtp.ErrSocketType) })
	if _, err := zmtp.Replay(within(t), e.pub, 0, nil); !errors.Is(err, zmtp.ErrSocketType) {
		t.Errorf("error %v", err)
	}
}

// A process that stands still is found although its connection stands, and
// followed again when it goes on.
func TestLibzmqHung(t *testing.T) {
	e := startEngine(t, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "old", 0, 10)
	s, batches := follow(t, zmtp.SubscriberOptions{
		Endpoint: e.pub, Heartbeat: 50 * time.Millisecond, Silence: 500 * time.Millisecond, Handshake: 500 * time.Millisecond,
	})
	before := e.catch(batches)
	e.signal(syscall.SIGSTOP)
	until(t, "the silence shows", func() bool { st := s.Status(); return !st.Connected && errors.Is(st.LastError, zmtp.ErrSilent) })
	e.signal(syscall.SIGCONT)
	if g := e.catch(batches); g.conn <= before.conn || g.seq <= before.seq {
		t.Errorf("got batch %d of connection %d after %d of %d", g.seq, g.conn, before.seq, before.conn)
	}
}

func (e *engine) signal(sig syscall.Signal) {
	if err := e.cmd.Process.Signal(sig); err != nil {
		e.t.Fatal(err)
	}
}
