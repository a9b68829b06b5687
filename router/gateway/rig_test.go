package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"adpdeck/router"
	"adpdeck/router/engine"
	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engineHandler answers for an engine; behave is the request's field of that name.
type engineHandler func(w http.ResponseWriter, r *http.Request, behave string, body []byte)

// fakeEngines are engines behind one loopback server each.
type fakeEngines struct {
	mu       sync.Mutex
	specs    []model.EngineSpec
	servers  map[string]*httptest.Server
	failed   map[model.Target]int
	answered map[model.Target]int
	channel  string
	key      string // of the engines
	tokens   func(body []byte) ([]uint32, error)
	ran      func(t model.Target, h http.Header, body []byte) (model.Target, string, bool)
	client   *http.Transport
	dumb     string   // the worker without a tokenizer
	asked    []string // the workers whose tokenizer was asked
	loras    []engine.Adapter
}

func (f *fakeEngines) Upstream(t model.Target, route model.Route, conv string) (engine.Upstream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.servers[t.Worker]
	if s == nil {
		return engine.Upstream{}, fmt.Errorf("no worker %q", t.Worker)
	}
	u, err := url.Parse(s.URL)
	up := engine.Upstream{Base: u, Header: http.Header{}, Strip: []string{"X-Data-Parallel-Rank", "X-Session-Id"}, Channel: f.channel, Transport: f.client}
	if f.key != "" {
		up.Header.Set("Authorization", "Bearer "+f.key)
	}
	if t.Rank != model.NoRank {
		up.Header.Set("X-Data-Parallel-Rank", strconv.Itoa(t.Rank))
	} else {
		up.Header.Set("X-Session-Id", conv)
	}
	return up, err
}

func (f *fakeEngines) Ran(t model.Target, h http.Header, body []byte) (model.Target, string, bool) {
	if f.ran != nil {
		return f.ran(t, h, body)
	}
	n, err := strconv.Atoi(h.Get("X-Ran"))
	return model.Target{Worker: t.Worker, Rank: n}, "header", err == nil
}

func (f *fakeEngines) Tokenize(_ context.Context, worker string, _ model.Route, body []byte) (engine.TokenList, error) {
	f.mu.Lock()
	f.asked = append(f.asked, worker)
	f.mu.Unlock()
	if f.tokens == nil || worker == f.dumb {
		return engine.TokenList{}, errors.New("no tokenizer")
	}
	ids, err := f.tokens(body)
	return engine.TokenList{Tokens: ids}, err
}

func (f *fakeEngines) Models() []byte { return []byte(`{"object":"list","data":[{"id":"m"}]}`) }

func (f *fakeEngines) Adapters() []engine.Adapter { return f.loras }

func (f *fakeEngines) Workers() []model.EngineSpec {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]model.EngineSpec(nil), f.specs...)
}

func (f *fakeEngines) Health() (all []engine.WorkerHealth) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.specs {
		all = append(all, engine.WorkerHealth{ID: s.ID, Ranks: s.Ranks, Live: s.Ranks})
	}
	return all
}

func (f *fakeEngines) Failed(t model.Target, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed[t]++
}

func (f *fakeEngines) Answered(t model.Target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered[t]++
}

type wallClock struct{ ahead atomic.Int64 }

func (c *wallClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// rig is a gateway before engines, with a server and a client.
type rig struct {
	*Gateway
	engines *fakeEngines
	clock   *wallClock
	server  *httptest.Server
	client  *http.Client
	// seen are the requests that reached an engine.
	mu   sync.Mutex
	seen []seenRequest
}

type seenRequest struct {
	worker string
	rank   string
	header http.Header
	path   string
	body   string
}

type rigOptions struct {
	workers, ranks, cap int
	spec                model.GatewaySpec
	mode                model.RouterMode
	settings            func(*model.Settings)
	wrap                func(http.Handler) http.Handler
	handler             engineHandler
	models              []string // of the first worker
}

func newRig(t testing.TB, o rigOptions) *rig {
	t.Helper()
	if o.workers == 0 {
		o.workers, o.ranks = 2, 2
	}
	if o.cap == 0 {
		o.cap = 1 << 16
	}
	if o.mode == "" {
		o.mode = model.ModeKV
	}
	if o.handler == nil {
		o.handler = behaves
	}
	g := &rig{clock: &wallClock{}, engines: &fakeEngines{
		servers: map[string]*httptest.Server{}, failed: map[model.Target]int{}, answered: map[model.Target]int{}, channel: steer.ChannelHeader,
		client: &http.Transport{MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 256, DisableCompression: true},
	}}
	cfg := router.Config{Clock: g.clock, Record: true, Seed: 1}
	cfg.Settings.RouterMode = o.mode
	cfg.Settings.AttentionDpConfig = model.DefaultAttentionDpConfig()
	cfg.Settings.ClusterConfig = model.DefaultClusterConfig()
	if o.settings != nil {
		o.settings(&cfg.Settings)
	}
	for i := range o.workers {
		id := fmt.Sprintf("w%d", i)
		cfg.Workers = append(cfg.Workers, model.WorkerSpec{ID: id, Ranks: o.ranks, MaxNumActiveRequests: o.cap, Engine: "vllm", BlockTokens: 4})
		if i == 0 {
			cfg.Workers[0].Models = o.models
		}
		g.engines.specs = append(g.engines.specs, model.EngineSpec{ID: id, Kind: model.EngineVLLM, StartRank: i * o.ranks, Ranks: o.ranks})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			g.mu.Lock()
			g.seen = append(g.seen, seenRequest{id, r.Header.Get("X-Data-Parallel-Rank"), r.Header.Clone(), r.URL.RequestURI(), string(body)})
			g.mu.Unlock()
			var said struct {
				Behave string `json:"behave"`
			}
			_ = json.Unmarshal(body, &said)
			o.handler(w, r, said.Behave, body)
		}))
		g.engines.servers[id] = s
	}
	r, err := router.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if g.Gateway, err = New(Options{Router: r, Engines: g.engines, Spec: o.spec, Clock: g.clock}); err != nil {
		t.Fatal(err)
	}
	var h http.Handler = g.Gateway
	if o.wrap != nil {
		h = o.wrap(h)
	}
	g.server = httptest.NewUnstartedServer(h)
	g.server.Config = g.Server("")
	g.server.Config.Handler = h
	g.server.Start()
	g.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	t.Cleanup(func() { g.shut() })
	return g
}

func (g *rig) shut() {
	g.client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g.Drain(ctx)
	g.server.Close()
	for _, s := range g.engines.servers {
		s.CloseClientConnections()
		s.Close()
	}
	g.engines.client.CloseIdleConnections()
}

const okBody = `{"id":"x","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":40,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":16}}}`

func chunk(i int) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"t%d"}}]}`+"\n\n", i)
}

const usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":16}}}` + "\n\n"

// behaves is an engine that does what the request asks for.
func behaves(w http.ResponseWriter, r *http.Request, behave string, body []byte) {
	stream := bytes.Contains(body, []byte(`"stream":true`))
	if stream {
		w.Header().Set("Content-Type", "text/event-stream")
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	send := func(s string) {
		_, _ = io.WriteString(w, s)
		_ = http.NewResponseController(w).Flush()
	}
	events := func() {
		for i := range 3 {
			send(chunk(i))
		}
		if bytes.Contains(body, []byte(`"include_usage":true`)) {
			send(usageEvent)
		}
		send("data: [DONE]\n\n")
	}
	switch behave {
	case "reset": // before the first byte
		abort(w, "")
	case "half header":
		abort(w, "HTTP/1.1 200 OK\r\nContent-Ty")
	case "endless header":
		conn, buf, _ := w.(http.Hijacker).Hijack()
		defer conn.Close()
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\n")
		for {
			if _, err := fmt.Fprintf(buf, "X-%d: %s\r\n", time.Now().UnixNano(), strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	case "mid-stream":
		send(chunk(0))
		panic(http.ErrAbortHandler)
	case "slow": // until the client goes
		<-r.Context().Done()
	case "stuck": // the same, after a chunk
		send(chunk(0))
		<-r.Context().Done()
	case "500":
		w.WriteHeader(500)
		send(`{"error":{"message":"boom"}}`)
	case "10 MiB error":
		w.WriteHeader(500)
		for range 10 {
			send(strings.Repeat("x", 1<<20))
		}
	case "error event":
		send("data: {\"error\":{\"message\":\"dead\"}}\n\n")
	default:
		if stream {
			events()
		} else {
			send(okBody)
		}
	}
}

// abort resets the connection after writing text raw.
func abort(w http.ResponseWriter, text string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, text)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// post sends a body and returns the whole answer.
func (g *rig) post(t testing.TB, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	resp, err := g.send(t.Context(), path, body, header...)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp, string(all) + "!" + err.Error()
	}
	return resp, string(all)
}

func (g *rig) send(ctx context.Context, path, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.server.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return g.client.Do(req)
}

// inFlight sums the router's bookings.
func (g *rig) inFlight() (n int) {
	s := g.router.Snapshot()
	for i := range s.Ranks {
		n += s.Ranks[i].InFlight
	}
	return n
}

// until waits for something that other goroutines bring about.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 5 s in vain: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (g *rig) requests() []seenRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]seenRequest(nil), g.seen...)
}

// inProcess are engines that answer without a network.
type inProcess struct{ *fakeEngines }

func (f *inProcess) Upstream(t model.Target, route model.Route, conv string) (engine.Upstream, error) {
	up, err := f.fakeEngines.Upstream(t, route, conv)
	up.Transport = answers{}
	return up, err
}
