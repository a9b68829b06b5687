package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
	"adpdeck/router/settings"
)

// longEnv switches the tests on that take minutes, and the bounds of time that a
// machine with other work cannot promise.
const longEnv = "ADPDECK_LONG"

func long() bool { return os.Getenv(longEnv) != "" }

// within tells a time that has a bound. It is held to the bound only where the
// machine has nothing else to do.
func within(t testing.TB, what string, took, bound time.Duration) {
	t.Helper()
	t.Logf("%s: %v (bound %v)", what, took.Round(time.Millisecond), bound)
	if took > bound && long() {
		t.Errorf("%s took %v, want at most %v", what, took, bound)
	}
}

// whole is adpdeck serve before fake engines, over loopback sockets: seen from
// outside by HTTP and the feed, from inside by the router's own state.
type whole struct {
	t       testing.TB
	h       *house
	url     string
	engines []*enginetest.Engine
	http    *http.Client
	plan    atomic.Pointer[plan] // what a reload reads
	stop    func()
}

// quick are steps of engines that hardly take time.
func quick() enginetest.Timing {
	return enginetest.Timing{PrefillTokensPerSecond: 1e6, DecodeBase: time.Millisecond, DecodePerRequest: time.Microsecond}
}

// fake starts an engine; what cfg leaves open is small and quick.
func fake(t testing.TB, cfg enginetest.Config, addresses ...string) *enginetest.Engine {
	t.Helper()
	if cfg.Kind == "" {
		cfg.Kind = model.EngineVLLM
	}
	if cfg.Ranks == 0 {
		cfg.Ranks = 2
	}
	if cfg.Timing == (enginetest.Timing{}) {
		cfg.Timing = quick()
	}
	if cfg.Events.Endpoint == "" {
		of := eventsOf(cfg.Kind, anyPort, anyPort)
		cfg.Events.Endpoint, cfg.Events.Replay = of.Endpoint, of.Replay
	}
	e, err := enginetest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(addresses) == 0 {
		addresses = []string{"127.0.0.1:0"}
	}
	if err := e.Start(context.Background(), addresses...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// planFor is a settings file for engines: their workers are w0, w1, … in order.
func planFor(engines ...*enginetest.Engine) plan {
	p := plan{settings: model.DefaultSettings(), serve: settings.DefaultServe(), name: "test"}
	p.settings.RouterMode = model.ModeKV
	p.serve.Gateway.Listen, p.serve.FeedListen = "127.0.0.1:0", "127.0.0.1:0"
	p.serve.Gateway.DrainSecs = 0.05
	for _, e := range engines {
		for _, s := range specs(e, "w0") {
			s.ID = fmt.Sprintf("w%d", len(p.serve.Workers))
			p.serve.Workers = append(p.serve.Workers, s)
		}
	}
	return p
}

// stand serves before fakes of cfgs and waits until all of them are known and
// heard. change alters the settings, nil leaves them.
func stand(t testing.TB, change func(*plan), cfgs ...enginetest.Config) *whole {
	t.Helper()
	var engines []*enginetest.Engine
	for _, cfg := range cfgs {
		engines = append(engines, fake(t, cfg))
	}
	w := before(t, change, engines...)
	w.ready()
	return w
}

// before serves before engines that run, and waits for nothing.
func before(t testing.TB, change func(*plan), engines ...*enginetest.Engine) *whole {
	t.Helper()
	p := planFor(engines...)
	if change != nil {
		change(&p)
	}
	w := &whole{t: t, engines: engines, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}}}
	w.plan.Store(&p)
	h, err := newHouse(p, func() (plan, error) { return *w.plan.Load(), nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.h, w.url = h, "http://"+h.httpLn.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.run(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		w.http.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve ended with %v", err)
		}
	}
	t.Cleanup(w.stop)
	return w
}

// ready waits until all workers are up, described and heard.
func (w *whole) ready() {
	w.t.Helper()
	w.until("all workers are up and known", func(s *model.State) bool {
		for i := range s.Workers {
			if s.Workers[i].Liveness != model.LiveUp || len(s.Workers[i].Models) == 0 {
				return false
			}
		}
		return len(s.Workers) == len(w.plan.Load().serve.Workers) && w.h.live.BlockTokens() > 0
	})
	for _, e := range w.engines {
		w.heard(e)
	}
}

// heard waits until the router listens to those events of an engine that the
// settings name.
func (w *whole) heard(e *enginetest.Engine) {
	w.t.Helper()
	named := map[string]bool{}
	for _, s := range w.plan.Load().serve.Workers {
		named[s.Events.Endpoint] = true
		for _, at := range s.Events.RankEndpoints {
			named[at] = true
		}
	}
	for i := range max(e.Config().Ranks, e.Config().Workers) {
		if at := e.EventEndpoint(i); at != "" && named[at] {
			w.until("events are heard", func(*model.State) bool { return e.Subscribers(i) > 0 })
		}
	}
}

// until waits for a state of the router, and says how long that took.
func (w *whole) until(what string, is func(s *model.State) bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for {
		s := w.h.live.Snapshot()
		if is(s) {
			return time.Since(began)
		}
		if time.Since(began) > 40*time.Second {
			b, _ := json.MarshalIndent(map[string]any{"workers": s.Workers, "ranks": s.Ranks, "findings": s.Findings, "index": s.Index, "events": s.Events, "totals": s.Totals}, "", " ")
			w.t.Fatalf("%s: not within %v: %s", what, time.Since(began), b)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// ask is a request of a client; zero fields are left out.
type ask struct {
	path   string // /v1/chat/completions
	model  string // fake-model
	text   string // of the prompt
	tokens []uint32
	most   int // tokens of the answer; 0: 4
	stream bool
	conv   string // X-Session-ID
	at     string // WORKER or WORKER/RANK, asked for by header
	header []string
	ctx    context.Context
}

// answer is what came of it.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of the connection
	target model.Target
}

// ok reports that a whole answer came.
func (a *answer) ok() bool {
	return a.err == nil && a.status == http.StatusOK
}

func (a ask) request(url string) (*http.Request, error) {
	if a.path == "" {
		a.path = "/v1/chat/completions"
	}
	if a.model == "" {
		a.model = "fake-model"
	}
	if a.most == 0 {
		a.most = 4
	}
	var prompt any = a.text
	if a.tokens != nil {
		prompt = a.tokens
	}
	body := map[string]any{"model": a.model}
	switch a.path {
	case "/v1/chat/completions":
		body["messages"], body["max_tokens"] = []map[string]any{{"role": "user", "content": prompt}}, a.most
	case "/v1/completions":
		body["prompt"], body["max_tokens"] = prompt, a.most
	case "/v1/responses":
		body["input"], body["max_output_tokens"] = prompt, a.most
	default:
		body["input"] = prompt
	}
	if a.stream {
		body["stream"] = true
	}
	if a.most >= 40 { // as long as asked for: a test waits for what comes between
		body["ignore_eos"] = true
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if a.ctx == nil {
		a.ctx = context.Background()
	}
	req, err := http.NewRequestWithContext(a.ctx, http.MethodPost, url+a.path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.conv != "" {
		req.Header.Set("X-Session-ID", a.conv)
	}
	if worker, rank, ok := strings.Cut(a.at, "/"); worker != "" {
		req.Header.Set("X-Adpdeck-Worker", worker)
		if ok {
			req.Header.Set("X-Adpdeck-Rank", rank)
		}
	}
	for i := 0; i+1 < len(a.header); i += 2 {
		req.Header.Add(a.header[i], a.header[i+1])
	}
	return req, nil
}

// send sends a request and reads the answer to its end.
func (w *whole) send(a ask) answer {
	resp, err := w.open(a)
	if err != nil {
		return answer{err: err}
	}
	return read(resp)
}

// open sends a request and returns when the head of its answer is there.
func (w *whole) open(a ask) (*http.Response, error) {
	req, err := a.request(w.url)
	if err != nil {
		return nil, err
	}
	return w.http.Do(req)
}

func read(resp *http.Response) answer {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
	a.target = model.Target{Worker: resp.Header.Get("X-Adpdeck-Worker"), Rank: model.NoRank}
	if n, err := strconv.Atoi(resp.Header.Get("X-Adpdeck-Rank")); err == nil {
		a.target.Rank = n
	}
	return a
}

// good sends a request that must be answered whole.
func (w *whole) good(a ask) answer {
	w.t.Helper()
	got := w.send(a)
	if !got.ok() || a.stream && !strings.HasSuffix(got.body, "data: [DONE]\n\n") && a.path != "/v1/responses" {
		w.t.Fatalf("%s for %q: %d %v %.600s", a.path, a.conv, got.status, got.err, got.body)
	}
	return got
}

// ctl runs adpdeck ctl against the feed.
func (w *whole) ctl(args ...string) (out, errOut string, code int) {
	w.t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), append([]string{"ctl", "--feed", w.h.feedLn.Addr().String()}, args...), strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func (w *whole) ctlOK(args ...string) string {
	w.t.Helper()
	out, errOut, code := w.ctl(args...)
	if code != 0 {
		w.t.Fatalf("ctl %v: %s", args, errOut)
	}
	return out
}

// metrics is the gateway's page.
func (w *whole) metrics() string {
	w.t.Helper()
	resp, err := w.http.Get(w.url + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	a := read(resp)
	if !a.ok() {
		w.t.Fatalf("/metrics: %d %v", a.status, a.err)
	}
	return a.body
}

// balance are the requests that are open, counted in three places.
type balance struct {
	carried  int // by the gateway
	booked   int // on ranks
	departed int // on ranks that have left
	engines  int // by the engines
}

func (w *whole) books() (b balance) {
	b.carried, _ = w.h.front.Open()
	b.departed = w.h.live.Departed()
	s := w.h.live.Snapshot()
	for i := range s.Ranks {
		b.booked += s.Ranks[i].InFlight
	}
	for i := range s.Workers {
		b.booked += s.Workers[i].Waiting
	}
	for _, e := range w.engines {
		b.engines += e.Open()
	}
	return b
}

// closed waits until nothing is open anywhere, and wants that nothing was ended
// twice.
func (w *whole) closed() {
	w.t.Helper()
	w.until("nothing is open", func(*model.State) bool { return w.books() == balance{} })
	if n := w.h.live.Strays(); n != 0 {
		w.t.Errorf("%d ends too many", n)
	}
}

// rank is one row of a state.
func rankOf(s *model.State, worker string, rank int) model.Rank {
	i := slices.IndexFunc(s.Ranks, func(r model.Rank) bool { return r.Target == model.Target{Worker: worker, Rank: rank} })
	if i < 0 {
		return model.Rank{Target: model.Target{Rank: model.NoRank}}
	}
	return s.Ranks[i]
}

func workerOf(s *model.State, id string) model.Worker {
	for i := range s.Workers {
		if s.Workers[i].ID == id {
			return s.Workers[i]
		}
	}
	return model.Worker{}
}

func indexOf(s *model.State, worker string, rank int) model.IndexRank {
	for i := range s.Index {
		if s.Index[i].Target == (model.Target{Worker: worker, Rank: rank}) {
			return s.Index[i]
		}
	}
	return model.IndexRank{}
}

func feedOf(s *model.State, worker, name string) model.WorkerFeed {
	for _, f := range workerOf(s, worker).Feeds {
		if f.Name == name {
			return f
		}
	}
	return model.WorkerFeed{}
}

// found is the finding with a code about a worker, one of its ranks or, for
// NoRank, any of them.
func found(s *model.State, code, worker string) (model.Finding, bool) {
	for _, f := range s.Findings {
		if f.Code == code && f.Target.Worker == worker {
			return f, true
		}
	}
	return model.Finding{}, false
}

// foundSaying is the finding with a code whose message holds a word.
func foundSaying(s *model.State, code, word string) (model.Finding, bool) {
	for _, f := range s.Findings {
		if f.Code == code && strings.Contains(f.Message, word) {
			return f, true
		}
	}
	return model.Finding{}, false
}

func conv(s *model.State, id string) *model.Conv {
	for _, c := range s.Convs {
		if c.Key.ID == id {
			return c
		}
	}
	return &model.Conv{}
}

// words are n made-up words that begin with seed.
func words(seed string, n int) string {
	return seed + strings.Repeat(" word", n)
}

// tokens is prompt i of those that have nothing in common.
func tokens(i int) []uint32 {
	p := make([]uint32, 64+16*(i%5))
	for k := range p {
		p[k] = uint32(1000*i + k + 1)
	}
	return p
}

// agrees reports whether the router knows of the caches of engine i, worker wi,
// what is true, as far as the prompts tokens(0) to tokens(n-1) go.
func (w *whole) agrees(i, n int) bool {
	w.t.Helper()
	e, id := w.engines[i], fmt.Sprintf("w%d", i)
	block := e.Config().BlockTokens
	hasher, err := prefix.NewHasher(block, prefix.Seed("", ""))
	if err != nil {
		w.t.Fatal(err)
	}
	for k := range n {
		p := tokens(k)
		var locals []uint64
		for _, l := range hasher.Locals(nil, p) {
			locals = append(locals, uint64(l))
		}
		for _, m := range w.h.live.Matches(&model.Request{Locals: locals, BlockTokens: block, PromptTokens: len(p)}) {
			if m.Target.Worker == id && m.Device != e.Holds(m.Target.Rank, p, "", "") {
				return false
			}
		}
	}
	return true
}

// slowPair are two engines of two ranks whose answers take as long as a test
// wants.
func slowPair() []enginetest.Config {
	slow := enginetest.Config{Timing: enginetest.Timing{PrefillTokensPerSecond: 1e6, DecodeBase: 50 * time.Millisecond, DecodePerRequest: time.Microsecond}}
	return []enginetest.Config{slow, slow}
}

// held are requests that stay open until they are let go.
type held struct {
	w       *whole
	cancel  context.CancelFunc
	answers []*http.Response
}

// hold opens n streams that go on for longer than any test, at a rank or
// wherever they are sent.
func (w *whole) hold(n int, at string) *held {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &held{w: w, cancel: cancel}
	for i := range n {
		resp, err := w.open(ask{ctx: ctx, text: fmt.Sprintf("held %d at %s", i, at), at: at, stream: true, most: 20000})
		if err != nil {
			cancel()
			w.t.Fatal(err)
		}
		h.answers = append(h.answers, resp)
		if resp.StatusCode != http.StatusOK {
			a := read(resp)
			cancel()
			w.t.Fatalf("held request %d: %d %s", i, a.status, a.body)
		}
	}
	return h
}

// targets counts them by rank.
func (h *held) targets() map[string]int {
	at := map[string]int{}
	for _, r := range h.answers {
		at[r.Header.Get("X-Adpdeck-Worker")+"/"+r.Header.Get("X-Adpdeck-Rank")]++
	}
	return at
}

// release ends them: their clients go.
func (h *held) release() {
	h.cancel()
	for _, r := range h.answers {
		_ = r.Body.Close()
	}
}
