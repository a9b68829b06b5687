package enginetest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/zmtp"
	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

// tap gathers the batches that leave an engine.
type tap struct {
	mu  sync.Mutex
	got []enginetest.Batch
}

func (p *tap) take(b enginetest.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, b)
}

// sequence is the numbers of a publisher's batches so far, and forgets them.
func (p *tap) sequence(publisher int) []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []uint64
	for _, b := range p.got {
		if b.Publisher == publisher {
			out = append(out, b.Seq)
		}
	}
	p.got = nil
	return out
}

// fill makes a rank store n batches: one prompt each, of a block and one token of
// answer.
func fill(t *testing.T, e *enginetest.Engine, rank, n int) {
	t.Helper()
	for range n {
		body := object{"max_tokens": 1, "ignore_eos": true, "prompt": fmt.Sprintf("prompt number %d of rank %d with some words more to fill a block of tokens", len(e.Served()), rank)}
		if status, o := callJSON(t, e, http.MethodPost, "/v1/completions", marshal(withModel(body)), "X-Data-Parallel-Rank", fmt.Sprint(rank)); status != http.StatusOK {
			t.Fatal(status, o)
		}
	}
	e.Flush()
}

func withModel(o object) object {
	o["model"] = "fake-model"
	return o
}

func TestEventHabits(t *testing.T) {
	tests := map[string]struct {
		habits string
		want   []uint64 // numbers of ten batches of rank 0, as they come
	}{
		"none":      {`{}`, []uint64{0, 1, 2, 3, 4, 5}},
		"drop":      {`{"drop_every": 3}`, []uint64{0, 1, 3, 4}},
		"duplicate": {`{"duplicate_every": 2}`, []uint64{0, 1, 1, 2, 3, 3, 4, 5, 5}},
		"reorder":   {`{"reorder_every": 3}`, []uint64{0, 1, 3, 2, 4}},
		"silent":    {`{"events_silent": true}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var p tap
			e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Events: enginetest.EventsConfig{OnBatch: p.take}})
			if err := e.SetJSON([]byte(test.habits)); err != nil {
				t.Fatal(err)
			}
			fill(t, e, 0, 6)
			if got := p.sequence(0); !slices.Equal(got, test.want) {
				t.Errorf("batches %v, want %v", got, test.want)
			}
		})
	}
}

func TestDropTheNextBatches(t *testing.T) {
	var p tap
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Events: enginetest.EventsConfig{OnBatch: p.take}})
	if _, o := callJSON(t, e, http.MethodPost, enginetest.ControlPath, `{"do": "drop", "rank": 0, "count": 2}`); o["error"] != nil {
		t.Fatal(o)
	}
	fill(t, e, 0, 4)
	if got := p.sequence(0); !slices.Equal(got, []uint64{2, 3}) {
		t.Errorf("batches %v, want 2 and 3", got)
	}
	if err := e.DropBatches(2, 1); err == nil {
		t.Error("batches of a rank that is not there were dropped")
	}
}

func TestOnlyRank0Publishes(t *testing.T) {
	var p tap
	e := newEngine(t, enginetest.Config{
		Kind: model.EngineSGLang, Ranks: 2, Events: enginetest.EventsConfig{OnBatch: p.take},
		Habits: enginetest.Habits{EventHabits: enginetest.EventHabits{EventsRank0Only: true}},
	})
	fill(t, e, 1, 2)
	fill(t, e, 0, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.got {
		if b.Publisher != 0 {
			t.Errorf("rank %d published", b.Publisher)
		}
	}
	if len(p.got) != 1 {
		t.Errorf("%d batches, want 1", len(p.got))
	}
}

func TestEncodings(t *testing.T) {
	tests := map[string]struct {
		kind   model.EngineKind
		habits enginetest.EventHabits
		first  byte // of the first event: fixarray 9x or fixmap 8x
		fields int
	}{
		"vllm, maps":        {kind: "vllm", first: 0x80, fields: 12},
		"vllm of old":       {kind: "vllm", habits: enginetest.EventHabits{Form: "array", Fields: 6}, first: 0x90, fields: 7},
		"sglang":            {kind: "sglang", first: 0x90, fields: 7},
		"sglang, six long":  {kind: "sglang", habits: enginetest.EventHabits{Fields: 5}, first: 0x90, fields: 6},
		"sglang, maps":      {kind: "sglang", habits: enginetest.EventHabits{Form: "map"}, first: 0x80, fields: 12},
		"trtllm":            {kind: "trtllm", first: 0x80, fields: 12},
		"vllm, 32-byte ids": {kind: "vllm", habits: enginetest.EventHabits{Hash: "bytes"}, first: 0x80, fields: 12},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var p tap
			e := newEngine(t, enginetest.Config{Kind: test.kind, BlockTokens: 16, Habits: enginetest.Habits{EventHabits: test.habits}, Events: enginetest.EventsConfig{OnBatch: p.take}})
			if test.kind == model.EngineTRTLLM {
				call(t, e, http.MethodPost, "/v1/completions", marshal(object{"prompt": strings.Repeat("some words ", 20), "max_tokens": 1}))
				e.Flush()
			} else {
				fill(t, e, 0, 1)
			}
			payload := p.got[0].Payload
			// fixarray of 3, float64 (9 bytes), fixarray of 1, the event.
			if got := payload[11]; got&0xf0 != test.first || int(got&0x0f) != test.fields {
				t.Errorf("the event begins with %#x, want %#x with %d fields", got, test.first, test.fields)
			}
			var d event.Decoder
			var b event.Batch
			if err := d.Batch(payload, &b); err != nil || b.Refused.Total() > 0 || b.Rank != 0 {
				t.Errorf("decode: %v, %s, rank %d", err, b.Refused.LastError(), b.Rank)
			}
		})
	}
}

// hear subscribes to a rank over ZMQ until the test ends.
func hear(t *testing.T, e *enginetest.Engine, rank int) *tap {
	t.Helper()
	p := &tap{}
	s, err := zmtp.NewSubscriber(zmtp.SubscriberOptions{Endpoint: e.EventEndpoint(rank), HandleBatch: func(b zmtp.Batch) {
		p.take(enginetest.Batch{Publisher: rank, Topic: string(b.Topic), Seq: b.Seq, Payload: slices.Clone(b.Payload)})
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	eventually(t, "the subscription", func() bool { return e.Subscribers(rank) == 1 })
	return p
}

func (p *tap) numbers() []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []uint64
	for _, b := range p.got {
		out = append(out, b.Seq)
	}
	return out
}

func TestZMQWithReplay(t *testing.T) {
	events := enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0", Topic: "kv@pod@m"}
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Events: events})
	p := hear(t, e, 1)
	if err := e.DropBatches(1, 2); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 1, 3)
	eventually(t, "batch 2", func() bool { return slices.Equal(p.numbers(), []uint64{2}) })
	if err := e.SetJSON([]byte(`{"reorder_every": 5}`)); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 1, 3)
	eventually(t, "reordered batches", func() bool { return slices.Equal(p.numbers(), []uint64{2, 3, 5, 4}) })
	if err := e.SetJSON([]byte(`{"reorder_every": 0, "duplicate_every": 7}`)); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 1, 1)
	eventually(t, "a batch twice", func() bool { return slices.Equal(p.numbers(), []uint64{2, 3, 5, 4, 6, 6}) })
	if p.got[0].Topic != "kv@pod@m" {
		t.Errorf("topic %q", p.got[0].Topic)
	}
	replayed := replay(t, e, 1, 0)
	if !slices.Equal(replayed, []uint64{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("replay brought %v, want all seven", replayed)
	}

	// A restart: numbers from 0, nothing of before, the caches empty.
	before := e.EventEndpoint(1)
	if err := e.Restart(1); err != nil {
		t.Fatal(err)
	}
	if after := e.EventEndpoint(1); after != before {
		t.Errorf("a restart moved the endpoint from %s to %s", before, after)
	}
	eventually(t, "the subscriber's return", func() bool { return e.Subscribers(1) == 1 })
	fill(t, e, 1, 1)
	eventually(t, "batch 0", func() bool { return slices.Equal(p.numbers(), []uint64{2, 3, 5, 4, 6, 6, 0}) })
	if replayed := replay(t, e, 1, 0); !slices.Equal(replayed, []uint64{0}) {
		t.Errorf("after the restart the replay brought %v", replayed)
	}
}

func replay(t *testing.T, e *enginetest.Engine, rank int, from uint64) []uint64 {
	t.Helper()
	var out []uint64
	_, err := zmtp.Replay(context.Background(), e.ReplayEndpoint(rank), from, func(seq uint64, _ []byte) error {
		out = append(out, seq)
		return nil
	})
	var evicted *zmtp.EvictedError
	if err != nil && !errors.As(err, &evicted) {
		t.Fatal(err)
	}
	return out
}

// TestReplayFraming looks at the frames of an answer: SGLang's and old vLLM's
// begin with the number, newer ones with the topic.
func TestReplayFraming(t *testing.T) {
	for kind, frames := range map[model.EngineKind]int{model.EngineVLLM: 4, model.EngineSGLang: 3} {
		for _, framing := range []string{"", "old", "new"} {
			want := map[string]int{"": frames, "old": 3, "new": 4}[framing]
			e := newEngine(t, enginetest.Config{
				Kind: kind, Habits: enginetest.Habits{EventHabits: enginetest.EventHabits{Framing: framing}},
				Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"},
			})
			fill(t, e, 0, 1)
			endpoint, err := zmtp.ParseEndpoint(e.ReplayEndpoint(0))
			if err != nil {
				t.Fatal(err)
			}
			conn, err := zmtp.Dial(context.Background(), endpoint, zmtp.Config{Type: zmtp.DEALER}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.WriteRaw(zmtp.AppendMessage(nil, nil, make([]byte, 8))); err != nil {
				t.Fatal(err)
			}
			got, err := conn.Read()
			if err != nil || len(got) != want {
				t.Errorf("%s, framing %q: %d frames, %v, want %d", kind, framing, len(got), err, want)
			}
			conn.Close()
		}
	}
}

func TestEventPortsCountUp(t *testing.T) {
	for _, test := range []struct {
		endpoint string
		rank     int
		want     string // empty: an error
	}{
		{"tcp://*:5557", 3, "tcp://*:5560"},
		{"tcp://127.0.0.1:0", 3, "tcp://127.0.0.1:0"},
		{"tcp://[::1]:5557", 1, "tcp://[::1]:5558"},
		{"ipc:///tmp/kv", 0, "ipc:///tmp/kv"},
		{"ipc:///tmp/kv", 2, "ipc:///tmp/kv_dp2"},
		{"tcp://h:65535", 1, ""},
		{"tcp://h", 0, ""},
	} {
		got, err := enginetest.CountUp(test.endpoint, test.rank)
		if (err != nil) != (test.want == "") || err == nil && got != test.want {
			t.Errorf("%s for rank %d: %q, %v, want %q", test.endpoint, test.rank, got, err, test.want)
		}
	}
}

func TestEventsHang(t *testing.T) {
	e := newEngine(t, enginetest.Config{
		Kind: model.EngineVLLM, Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0"},
		Habits: enginetest.Habits{EventHabits: enginetest.EventHabits{EventsHang: true}},
	})
	endpoint, err := zmtp.ParseEndpoint(e.EventEndpoint(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := zmtp.Dial(context.Background(), endpoint, zmtp.Config{Type: zmtp.SUB, Handshake: 50 * time.Millisecond}, nil); err == nil {
		t.Error("a hanging socket shook hands")
	}
	set(t, e, func(h *enginetest.Habits) { h.EventsHang = false })
	hear(t, e, 0)
}

func TestDynamoEventPlane(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineDynamo, Workers: 2, Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0"}})
	got := make(chan [][]byte, 1)
	s, err := zmtp.NewSubscriber(zmtp.SubscriberOptions{Endpoint: e.EventEndpoint(1), Handle: func(m zmtp.Message) {
		var frames [][]byte
		for _, f := range m.Frames {
			frames = append(frames, slices.Clone(f))
		}
		got <- frames
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	defer func() { cancel(); <-done }()
	eventually(t, "the subscription", func() bool { return e.Subscribers(1) == 1 })
	id := e.Config().InstanceBase + 1
	body := withModel(object{"prompt": strings.Repeat("some words ", 20), "max_tokens": 1})
	callJSON(t, e, http.MethodPost, "/v1/completions", marshal(body), "x-dynamo-worker-instance-id", fmt.Sprint(id))
	frames := <-got
	if len(frames) != 4 || string(frames[0]) != "kv-events" || binary.BigEndian.Uint64(frames[1]) != id || binary.BigEndian.Uint64(frames[2]) != 0 {
		t.Fatalf("frames %q", frames[:3])
	}
	if f := frames[3]; f[0] != 1 || int(binary.BigEndian.Uint32(f[1:5])) != len(f)-5 {
		t.Fatalf("envelope %x", f[:5])
	}
	envelope, err := readAny(frames[3][5:])
	if err != nil || envelope.(object)["publisher_id"] != id {
		t.Fatalf("%v, %v", envelope, err)
	}
}

func TestCacheReset(t *testing.T) {
	var p tap
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Events: enginetest.EventsConfig{OnBatch: p.take}})
	fill(t, e, 0, 1)
	prompt := enginetest.Tokenize("prompt number 0 of rank 0 with some words more to fill a block of tokens")
	if e.Holds(0, prompt, "", "") == 0 {
		t.Fatal("nothing cached")
	}
	call(t, e, http.MethodPost, "/reset_prefix_cache", "")
	if n := e.Holds(0, prompt, "", ""); n != 0 {
		t.Errorf("%d tokens held after the reset", n)
	}
	var d event.Decoder
	var b event.Batch
	if err := d.Batch(p.got[len(p.got)-1].Payload, &b); err != nil || len(b.Events) != 1 || b.Events[0].Kind != event.Cleared {
		t.Errorf("the last batch is %v, %v", b.Events, err)
	}
}

func TestDrainedEvents(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineTRTLLM, Ranks: 2, Events: enginetest.EventsConfig{JSONEvents: 5}})
	ask := func(i int) {
		call(t, e, http.MethodPost, "/v1/completions", marshal(object{"prompt": fmt.Sprint(i, strings.Repeat(" some words", 20)), "max_tokens": 1}))
	}
	ask(0)
	_, text := call(t, e, http.MethodPost, "/kv_cache_events", "")
	for _, want := range []string{`"type":"created"`, `"type":"stored"`, `"attention_dp_rank":1`, `"parent_hash":null`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if _, again := call(t, e, http.MethodPost, "/kv_cache_events", ""); again != "[]" {
		t.Errorf("a second reader got %s", again)
	}
	if resp, _ := call(t, e, http.MethodGet, "/kv_cache_events", ""); resp.StatusCode == http.StatusOK {
		t.Error("GET drains the events")
	}
	for i := range 9 {
		ask(i + 1)
	}
	_, text = call(t, e, http.MethodPost, "/kv_cache_events", "")
	if n := strings.Count(text, `"event_id"`); n != 5 {
		t.Errorf("%d events kept, want the newest 5", n)
	}
}
