package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"adpdeck/router/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink records what it is told.
type sink struct {
	mu       sync.Mutex
	lines    []string // in order, without loads and events
	at       []time.Time
	joined   map[string]model.WorkerSpec
	live     map[string]bool // by target
	why      map[string]string
	loads    map[string][]model.RankReport
	taken    map[string]time.Time
	observed map[string]int
	blind    map[string]string // why there are no loads
	sources  map[string]string // where loads are from
	events   []string
	findings map[string]model.Finding
	refuse   error
	gaps     chan model.Gap
	told     chan struct{} // capacity 1
}

func newSink() *sink {
	return &sink{
		joined: map[string]model.WorkerSpec{}, live: map[string]bool{}, why: map[string]string{}, loads: map[string][]model.RankReport{},
		taken: map[string]time.Time{}, observed: map[string]int{}, blind: map[string]string{}, sources: map[string]string{}, findings: map[string]model.Finding{},
		gaps: make(chan model.Gap, 16), told: make(chan struct{}, 1),
	}
}

func (s *sink) note(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
	s.at = append(s.at, time.Now())
}

// do runs f with the record to itself and wakes who waits for news.
func (s *sink) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	nudge(s.told)
}

func (s *sink) Join(spec model.WorkerSpec) error {
	var err error
	s.do(func() {
		s.note("join %s ranks=%d", spec.ID, spec.Ranks)
		if err = s.refuse; err == nil {
			s.joined[spec.ID] = spec
		}
	})
	return err
}

func (s *sink) Leave(worker string) error {
	s.do(func() {
		s.note("leave %s", worker)
		delete(s.joined, worker)
	})
	return nil
}

func (s *sink) Live(worker string, rank int, live bool, why string) error {
	s.do(func() {
		s.note("live %s %v", model.Target{Worker: worker, Rank: rank}, live)
		for r := range s.joined[worker].Ranks {
			if rank == model.NoRank || rank == r {
				t := model.Target{Worker: worker, Rank: r}.String()
				s.live[t], s.why[t] = live, why
			}
		}
	})
	return nil
}

func (s *sink) Restarted(worker string, rank int, why string) {
	s.do(func() { s.note("restarted %s: %s", model.Target{Worker: worker, Rank: rank}, why) })
}

func (s *sink) Observe(worker string, at time.Time, loads []model.RankReport) {
	s.do(func() {
		s.loads[worker], s.taken[worker] = loads, at
		s.observed[worker]++
		delete(s.blind, worker)
	})
}

func (s *sink) LoadsFrom(worker, source string) { s.do(func() { s.sources[worker] = source }) }

func (s *sink) Unobserved(worker string, why string) { s.do(func() { s.blind[worker] = why }) }

func (s *sink) EventsOn(worker string, rank int, conn, seq uint64, payload []byte) {
	s.do(func() {
		s.events = append(s.events, fmt.Sprintf("%s/%d conn %d seq %d: %d bytes", worker, rank, conn, seq, len(payload)))
	})
}

func (s *sink) EventsJSON(worker string, payload []byte) {
	s.do(func() { s.events = append(s.events, worker+" "+string(payload)) })
}

func (s *sink) RouterEvents(worker string, payload []byte, json bool) {
	s.do(func() {
		s.events = append(s.events, fmt.Sprintf("%s plane %d bytes json=%v", worker, len(payload), json))
	})
}

func (s *sink) Gaps() <-chan model.Gap { return s.gaps }

func (s *sink) Replayed(worker string, rank int, seq uint64, payload []byte) {
	s.do(func() {
		s.events = append(s.events, fmt.Sprintf("%s/%d replay %d: %d bytes", worker, rank, seq, len(payload)))
	})
}

func (s *sink) ReplayDone(worker string, rank int, err error) {
	s.do(func() { s.events = append(s.events, fmt.Sprintf("%s/%d done: %v", worker, rank, err)) })
}

func (s *sink) Found(f model.Finding) {
	s.do(func() { s.findings[f.Code+" "+f.Target.String()] = f })
}

func (s *sink) Cleared(code string, t model.Target) {
	s.do(func() { delete(s.findings, code+" "+t.String()) })
}

// await waits in real time until is holds.
func (s *sink) await(t *testing.T, what string, most time.Duration, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	late := time.After(most)
	for {
		s.mu.Lock()
		ok := is()
		s.mu.Unlock()
		if ok {
			return time.Since(began)
		}
		select {
		case <-s.told:
		case <-late:
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Fatalf("%s: not within %v: %v, findings %v, blind %v, events %d", what, most, s.lines, s.findings, s.blind, len(s.events))
		}
	}
}

// get reads the record.
func get[T any](s *sink, f func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

func (s *sink) isLive(target string) bool { return get(s, func() bool { return s.live[target] }) }

func (s *sink) count(prefix string) int {
	return get(s, func() int {
		n := 0
		for _, l := range s.lines {
			if strings.HasPrefix(l, prefix) {
				n++
			}
		}
		return n
	})
}

// mode is how a host behaves.
type mode string

const (
	good      mode = "good"
	refused   mode = "refused"
	blackhole mode = "blackhole" // packets vanish
	halfOpen  mode = "half-open" // accepts and never answers
	reset     mode = "reset"
	drip      mode = "slow headers"
	flood     mode = "never-ending header"
	stall     mode = "body that stops"
)

// host is one address of the network in memory.
type host struct {
	mu      sync.Mutex
	mode    mode
	pages   map[string]string // answers by path
	status  map[string]int
	slow    map[string]time.Duration
	asked   map[string]int
	bodies  map[string]string
	headers map[string]http.Header

	conns chan net.Conn
	done  chan struct{}
}

func (h *host) set(m mode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mode = m
}

func (h *host) is() mode {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mode
}

func (h *host) page(path, body string, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages[path], h.status[path] = body, status
}

func (h *host) times(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[path]
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m := h.is(); m == halfOpen || m == blackhole {
		<-r.Context().Done()
		return
	} else if m != good {
		panic(http.ErrAbortHandler)
	}
	h.mu.Lock()
	h.asked[r.URL.Path]++
	h.headers[r.URL.Path] = r.Header.Clone()
	body, ok := h.pages[r.URL.Path]
	status, wait := h.status[r.URL.Path], h.slow[r.URL.Path]
	h.mu.Unlock()
	if r.Method == http.MethodPost {
		b := make([]byte, 4096)
		n, _ := r.Body.Read(b)
		h.mu.Lock()
		h.bodies[r.URL.Path] = string(b[:n])
		h.mu.Unlock()
	}
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// Accept, Close and Addr make the host a listener.
func (h *host) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *host) Close() error {
	select {
	case <-h.done:
	default:
		close(h.done)
	}
	return nil
}

func (h *host) Addr() net.Addr { return &net.TCPAddr{} }

// network is a network in memory whose waits are all in a bubble's time.
type network struct {
	mu    sync.Mutex
	hosts map[string]*host
	wg    sync.WaitGroup
	srvs  []*http.Server
}

func newNetwork() *network { return &network{hosts: map[string]*host{}} }

// host adds one that serves /health.
func (n *network) host(addr string) *host {
	h := &host{
		mode: good, pages: map[string]string{"/health": ""}, status: map[string]int{"/health": 200}, slow: map[string]time.Duration{},
		asked: map[string]int{}, bodies: map[string]string{}, headers: map[string]http.Header{}, conns: make(chan net.Conn), done: make(chan struct{}),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[addr] = h
	srv := &http.Server{Handler: h}
	n.srvs = append(n.srvs, srv)
	n.wg.Go(func() { _ = srv.Serve(h) })
	return h
}

func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.srvs {
		_ = s.Close()
	}
	n.wg.Wait()
}

func (n *network) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	h := n.hosts[addr]
	n.mu.Unlock()
	m := refused
	if h != nil {
		m = h.is()
	}
	switch m {
	case refused:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case blackhole:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	if m == good {
		select {
		case h.conns <- far:
			return near, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n.wg.Go(func() { misbehave(far, m) })
	return near, nil
}

// misbehave is a peer that is no good server.
func misbehave(c net.Conn, m mode) {
	defer c.Close()
	buf := make([]byte, 4096)
	if _, err := c.Read(buf); err != nil || m == reset {
		return
	}
	var line string
	pause := time.Duration(0)
	switch m {
	case halfOpen:
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	case drip:
		line, pause = "X-Slow: 1\r\n", 300*time.Millisecond
	case flood:
		line = "X-More: " + strings.Repeat("a", 1000) + "\r\n"
	case stall:
		line, pause = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", time.Hour
	}
	if m != stall {
		if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\n")); err != nil {
			return
		}
	}
	for {
		if _, err := c.Write([]byte(line)); err != nil {
			return
		}
		if pause > 0 {
			_ = c.SetReadDeadline(time.Now().Add(pause))
			if _, err := c.Read(buf); err != nil && !strings.Contains(err.Error(), "timeout") {
				return
			}
		}
	}
}

// rig is a fleet that runs in a bubble.
type rig struct {
	*sink
	net   *network
	fleet *Fleet
	stop  func()
}

// bubble runs a test in virtual time: prepare makes the hosts, then the fleet of
// the workers runs.
func bubble(t *testing.T, workers []model.EngineSpec, prepare func(n *network), run func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{sink: newSink(), net: newNetwork()}
		prepare(r.net)
		f, err := New(workers, r.sink, Options{Dial: r.net.Dial, Rand: func() float64 { return 0.5 }, Getenv: func(string) string { return "key" }})
		if err != nil {
			t.Fatal(err)
		}
		r.fleet = f
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		r.stop = func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		run(t, r)
		began := time.Now()
		r.stop()
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("the fleet took %v to stop", d)
		}
		r.net.close()
	})
}

// until waits until is holds, and reports how long that took in bubble time.
func until(t *testing.T, most time.Duration, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > most {
			t.Fatalf("not within %v", most)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	return time.Since(began)
}

const vllmPage = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} %d
vllm:num_requests_running{engine="1",model_name="m"} %d
# TYPE process_start_time_seconds gauge
process_start_time_seconds %d
`

func prometheus(h *host, page string) { h.page("/metrics", page, 200) }

func sortedLines(s *sink) []string {
	return get(s, func() []string { return slices.Clone(s.lines) })
}
