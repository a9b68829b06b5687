package enginetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// instant are steps without a duration.
func instant() enginetest.Timing { return enginetest.Timing{Instant: true} }

// newEngine starts an engine on a free port.
func newEngine(t *testing.T, cfg enginetest.Config) *enginetest.Engine {
	t.Helper()
	if cfg.Timing == (enginetest.Timing{}) {
		cfg.Timing = instant()
	}
	e, err := enginetest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(context.Background(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// client keeps no connection, so that no goroutine of its outlives a test.
func client() *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
}

// object is a JSON object.
type object = map[string]any

// call sends a request and reads the answer's status, headers and body. header
// holds names and values in turn.
func call(t *testing.T, e *enginetest.Engine, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, e.URL(model.NoRank)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client().Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp, string(raw)
}

// callJSON is call for an answer that is an object; numbers stay as written.
func callJSON(t *testing.T, e *enginetest.Engine, method, path, body string, header ...string) (int, object) {
	t.Helper()
	resp, text := call(t, e, method, path, body, header...)
	var o object
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%s %s: %q: %v", method, path, text, err)
	}
	return resp.StatusCode, o
}

// at digs in nested objects and lists: "choices.0.message".
func at(t *testing.T, v any, path string) any {
	t.Helper()
	for _, p := range strings.Split(path, ".") {
		switch x := v.(type) {
		case object:
			v = x[p]
		case []any:
			i := int(p[0] - '0')
			if i >= len(x) {
				t.Fatalf("%s: no element %d in %v", path, i, x)
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// last is the request that was served last.
func last(t *testing.T, e *enginetest.Engine) enginetest.Served {
	t.Helper()
	s := e.Served()
	if len(s) == 0 {
		t.Fatal("no request was served")
	}
	return s[len(s)-1]
}

// chat is a chat body of one user message and a few tokens.
func chat(text string, more object) string {
	o := object{"model": "fake-model", "messages": []object{{"role": "user", "content": text}}, "max_tokens": 4}
	for k, v := range more {
		o[k] = v
	}
	return marshal(o)
}

func marshal(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return b.String()
}

// set changes habits.
func set(t *testing.T, e *enginetest.Engine, change func(*enginetest.Habits)) {
	t.Helper()
	if err := e.Set(change); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a state that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// manual is a clock that moves when told.
type manual struct {
	mu    sync.Mutex
	now   time.Time
	calls []*pending
}

type pending struct {
	c    *manual
	at   time.Time
	f    func()
	gone bool
}

func newManual() *manual { return &manual{now: time.Unix(1_760_000_000, 0)} }

func (m *manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *manual) AfterFunc(d time.Duration, f func()) enginetest.Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &pending{c: m, at: m.now.Add(d), f: f}
	if d <= 0 {
		p.gone = true
		go f()
		return p
	}
	m.calls = append(m.calls, p)
	return p
}

func (p *pending) Stop() bool {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	was := !p.gone
	p.gone = true
	return was
}

// waiting is how many calls are to come.
func (m *manual) waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, p := range m.calls {
		if !p.gone {
			n++
		}
	}
	return n
}

// advance moves the clock and makes the calls that are due, one after another, in
// the caller's goroutine.
func (m *manual) advance(d time.Duration) {
	m.mu.Lock()
	end := m.now.Add(d)
	for {
		var first *pending
		keep := m.calls[:0]
		for _, p := range m.calls {
			if p.gone {
				continue
			}
			keep = append(keep, p)
			if !p.at.After(end) && (first == nil || p.at.Before(first.at)) {
				first = p
			}
		}
		m.calls = keep
		if first == nil {
			break
		}
		first.gone, m.now = true, first.at
		m.mu.Unlock()
		first.f()
		m.mu.Lock()
	}
	m.now = end
	m.mu.Unlock()
}
