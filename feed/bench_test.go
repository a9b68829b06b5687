package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"adpdeck/router/model"
)

func change64(seq int) *model.Change {
	s := bigState(0, 64)
	for i := range s.Ranks {
		s.Ranks[i].Requests = uint64(seq)
	}
	return &model.Change{At: s.At, Version: 1, Ranks: s.Ranks, Totals: &model.Totals{Hit: 0.9}}
}

func BenchmarkEncodeChange(b *testing.B) {
	ch := change64(1)
	b.ReportAllocs()
	for b.Loop() {
		msgs, _, err := encodeChange("0123456789abcdef", 1, ch)
		if err != nil || len(msgs) != 1 {
			b.Fatal(len(msgs), err)
		}
		b.ReportMetric(float64(len(msgs[0])), "wire-B/op")
	}
}

func BenchmarkDecodeChange(b *testing.B) {
	msgs, _, _ := encodeChange("0123456789abcdef", 1, change64(1))
	b.SetBytes(int64(len(msgs[0])))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(msgs[0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := bigState(model.MaxFeedConvs, 64)
	b.ReportAllocs()
	for b.Loop() {
		size, parts := 0, 0
		snap := newSnapshot("e", 1, s)
		for more := true; more; parts++ {
			var msg []byte
			msg, more, _ = snap.next()
			size += len(msg)
		}
		b.ReportMetric(float64(size), "wire-B/op")
		b.ReportMetric(float64(parts), "parts/op")
	}
}

// BenchmarkFanOut publishes to 64 outboxes, each emptied as a writer would.
func BenchmarkFanOut(b *testing.B) {
	opt := ServerOptions{}
	opt.defaults()
	h := newHub(&opt, &counters{})
	h.reset(bigState(1_000, 64))
	var boxes []*outbox
	for range 64 {
		p := &peer{box: newOutbox(opt.QueueMessages, opt.QueueBytes)}
		p.box.start()
		h.peers[p] = struct{}{}
		boxes = append(boxes, p.box)
	}
	ch := change64(1)
	b.ReportAllocs()
	for b.Loop() {
		h.publish(ch)
		for _, o := range boxes {
			for msg, _, _ := o.next(); msg != nil; msg, _, _ = o.next() {
			}
		}
	}
}

// steady is a source that changes 64 ranks whenever it is told to.
type steady struct {
	mu  sync.Mutex
	n   int
	c   chan struct{}
	ask *model.State
}

func (s *steady) Apply(c model.Command) model.Reply { return model.Reply{ID: c.ID} }
func (s *steady) Subscribe() *steady                { return s }
func (s *steady) Start() *model.State               { return s.ask }
func (s *steady) C() <-chan struct{}                { return s.c }
func (s *steady) Close()                            {}
func (s *steady) Take(int) (*model.Change, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := change64(s.n)
	ch.Decisions = []*model.Decision{{ID: uint64(time.Now().UnixNano())}} // when it was taken
	return ch, false
}

// BenchmarkServe64 serves 64 clients over TCP, ten changes of 64 ranks a second
// (one per op), and reports the share of a core that server and clients used
// together, and the time from Take to the last byte at a client.
func BenchmarkServe64(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Skip(err)
	}
	src := &steady{c: make(chan struct{}, 1), ask: bigState(0, 64)}
	srv := NewServer(From(src), ServerOptions{ChangePeriod: leastPeriod})
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = srv.Serve(ctx, ln) })
	var mu sync.Mutex
	var ages []time.Duration
	d := websocket.Dialer{Subprotocols: []string{Protocol}}
	for range 64 {
		conn, _, err := d.Dial("ws://"+ln.Addr().String()+Path, nil)
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			defer conn.Close()
			for {
				_, r, err := conn.NextReader()
				if err != nil {
					return
				}
				msg, _ := io.ReadAll(r)
				if kind, _ := kindOf(msg); kind == kindDecisions {
					var f struct {
						Decisions []struct{ ID int64 } `json:"decisions"`
					}
					_ = json.Unmarshal(msg, &f)
					mu.Lock()
					ages = append(ages, time.Duration(time.Now().UnixNano()-f.Decisions[0].ID))
					mu.Unlock()
				}
			}
		})
	}
	tick := time.NewTicker(100 * time.Millisecond)
	cpu, began := cpuTime(), time.Now()
	for b.Loop() {
		<-tick.C
		src.mu.Lock()
		src.n++
		src.mu.Unlock()
		nudge(src.c)
	}
	b.ReportMetric(100*float64(cpuTime()-cpu)/float64(time.Since(began)), "%core")
	stop()
	all.Wait()
	if slices.Sort(ages); len(ages) > 0 {
		b.ReportMetric(float64(ages[len(ages)*99/100].Microseconds())/1e3, "p99-ms")
	}
	if st := srv.Stats(); st.Frames > 0 {
		b.ReportMetric(float64(st.Bytes)/float64(st.Frames), "wire-B/frame")
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprint("getrusage: ", err))
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
