package feedtest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"adpdeck/feed/feedtest"
	"adpdeck/router/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair makes a connection on a bad network; wrapped is the dialer's end.
func pair(t *testing.T, buffer int) (bad *feedtest.Bad, wrapped, plain net.Conn) {
	t.Helper()
	mem := feedtest.NewNetwork(buffer)
	bad = feedtest.NewBad()
	accepted := make(chan net.Conn)
	go func() {
		c, err := mem.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	wrapped, err := bad.Dial(mem.Dial)(context.Background(), "tcp", "anywhere")
	if err != nil {
		t.Fatal(err)
	}
	return bad, wrapped, <-accepted
}

func TestNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := pair(t, 4)
		_ = a.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := a.Write([]byte("123456")); n != 4 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a full buffer took %d bytes, error %v", n, err)
		}
		got := make([]byte, 9)
		if n, err := b.Read(got); n != 4 || err != nil || string(got[:n]) != "1234" {
			t.Errorf("read %q, error %v", got[:n], err)
		}
		_ = b.SetReadDeadline(time.Now().Add(time.Second))
		began := time.Now()
		if _, err := b.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		_ = b.SetDeadline(time.Time{})
		_ = a.SetDeadline(time.Time{})
		_, _ = a.Write([]byte("bye"))
		a.Close()
		if rest, err := io.ReadAll(b); string(rest) != "bye" || err != nil {
			t.Errorf("read %q, error %v", rest, err)
		}
		if _, err := b.Write([]byte("x")); err == nil {
			t.Error("wrote to a closed connection")
		}
		b.Close()
	})
}

func TestListenerCloses(t *testing.T) {
	mem := feedtest.NewNetwork(1)
	mem.Close()
	if _, err := mem.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if _, err := mem.Dial(context.Background(), "", ""); err == nil {
		t.Error("dialled a closed listener")
	}
}

func TestBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, a, b := pair(t, 100)
		got := make([]byte, 9)
		read := func() string {
			n, err := a.Read(got)
			if err != nil {
				return err.Error()
			}
			return string(got[:n])
		}
		bad.Slice(1)
		_, _ = b.Write([]byte("12"))
		if s := read() + read(); s != "12" {
			t.Errorf("in slices: %q", s)
		}
		bad.Slice(0)
		bad.Garbage([]byte("??"))
		_, _ = b.Write([]byte("34"))
		if s := read(); s != "??" {
			t.Errorf("garbage: %q", s)
		}
		bad.Latency(time.Second)
		began := time.Now()
		_, _ = b.Write([]byte("56"))
		if s := read(); s != "56" || time.Since(began) != time.Second {
			t.Errorf("late: %q after %v", s, time.Since(began))
		}
		bad.HalfOpen(true)
		_ = a.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = b.Write([]byte("78"))
		if n, err := a.Write([]byte("lost")); n != 4 || err != nil {
			t.Errorf("half-open write: %d, %v", n, err)
		}
		if _, err := a.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("half-open read: %v", err)
		}
		if bad.Open() != 1 {
			t.Errorf("%d open", bad.Open())
		}
		bad.Cut()
		if _, err := io.ReadAll(b); err != nil || bad.Open() != 0 {
			t.Errorf("cut: %v, %d open", err, bad.Open())
		}
		b.Close()
	})
}

// TestBadPace has reads take their time, and packets be lost for a while.
func TestBadPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, a, b := pair(t, 4096)
		got := make([]byte, 4096)
		took := func(bytes int) time.Duration {
			t.Helper()
			_, _ = b.Write(make([]byte, bytes))
			began := time.Now()
			if n, err := io.ReadFull(a, got[:bytes]); err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			return time.Since(began)
		}
		bad.Bandwidth(1000)
		if d := took(2000); d != 2*time.Second {
			t.Errorf("2,000 bytes at 1,000 a second in %v", d)
		}
		bad.Bandwidth(0)
		bad.Jitter(time.Second, time.Second)
		least, most := time.Hour, time.Duration(0)
		for range 100 {
			d := took(1)
			least, most = min(least, d), max(most, d)
		}
		if least > 500*time.Millisecond || most < 1500*time.Millisecond || most > 2*time.Second {
			t.Errorf("1 s give or take 1 s was %v to %v", least, most)
		}
		bad.Jitter(0, 0)
		bad.Blackhole(true)
		_ = a.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = b.Write([]byte("lost"))
		if _, err := a.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("in the hole: %v", err)
		}
		_ = a.SetDeadline(time.Time{})
		time.AfterFunc(time.Minute, func() { bad.Blackhole(false) })
		began := time.Now()
		if n, err := a.Write([]byte("kept")); n != 4 || err != nil || time.Since(began) != time.Minute {
			t.Errorf("%d %v after %v", n, err, time.Since(began))
		}
		if n, err := b.Read(got); string(got[:n]) != "kept" || err != nil {
			t.Errorf("after the hole: %q %v", got[:n], err)
		}
		if d := took(3); d != 0 {
			t.Errorf("well again it took %v", d)
		}
		a.Close()
		b.Close()
	})
}

// TestRelay carries both ways, and a reset as a reset.
func TestRelay(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	r, err := feedtest.NewRelay(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	open := func() (near, far net.Conn) {
		t.Helper()
		near, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if far, err = ln.Accept(); err != nil {
			t.Fatal(err)
		}
		return near, far
	}
	near, far := open()
	_, _ = near.Write([]byte("there"))
	got := make([]byte, 5)
	if _, err := io.ReadFull(far, got); err != nil || string(got) != "there" {
		t.Errorf("%q %v", got, err)
	}
	_, _ = far.Write([]byte("back"))
	far.Close()
	if all, err := io.ReadAll(near); err != nil || string(all) != "back" {
		t.Errorf("%q %v", all, err)
	}
	near.Close()

	r.ResetAfter(100)
	near, far = open()
	_, _ = far.Write(make([]byte, 99))
	if n, err := io.ReadFull(near, make([]byte, 99)); err != nil {
		t.Errorf("%d %v", n, err)
	}
	_, _ = far.Write(make([]byte, 9))
	if n, err := io.Copy(io.Discard, near); n > 1 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes, then %v", n, err)
	}
	if _, err := far.Read(got); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the far end read %v", err)
	}
	near.Close()
	far.Close()
	r.ResetAfter(0)
	near, far = open() // open when it closes
	r.Close()
	if _, err := near.Read(got); err == nil {
		t.Error("a closed relay carries")
	}
	near.Close()
	far.Close()
}

// TestSource coalesces what was not taken and applies a command id once.
func TestSource(t *testing.T) {
	s := feedtest.NewSource(feedtest.State(1, 2, 3))
	sub := s.Subscribe()
	start := sub.Start()
	key := start.Convs[0].Key
	s.Publish(&model.Change{Version: 2, Convs: []*model.Conv{feedtest.Conv("new", start.At)}})
	s.Publish(&model.Change{Version: 3, Gone: []model.ConvKey{key, {Tenant: "tenant-a", Model: "m", ID: "new"}}, Decisions: []*model.Decision{{ID: 1}, {ID: 2}, {ID: 3}}})
	<-sub.C()
	ch, resync := sub.Take(2)
	if resync || ch.Version != 3 || len(ch.Convs) != 0 || len(ch.Gone) != 2 || len(ch.Decisions) != 2 || ch.DecisionsLeftOut != 1 {
		t.Errorf("resync %v, change %+v", resync, ch)
	}
	if ch, resync := sub.Take(2); ch != nil || resync {
		t.Errorf("taken twice: %+v", ch)
	}
	for range 3 {
		if r := s.Apply(model.Command{ID: "x"}); !r.Accepted || r.Version != 4 {
			t.Errorf("reply %+v", r)
		}
	}
	if len(s.Applied()) != 1 || s.State().Version != 4 || len(s.State().Convs) != 2 {
		t.Errorf("%d applied, version %d, %d conversations", len(s.Applied()), s.State().Version, len(s.State().Convs))
	}
	s.SetState(start)
	if _, resync := sub.Take(2); !resync {
		t.Error("no resync after SetState")
	}
	sub.Close()
	if s.Subscribers() != 0 {
		t.Error("a closed subscription is held")
	}
}
