package enginetest_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
	"adpdeck/router/prefix/event"
)

// follower is a router's view of an engine's caches: an index fed by its events.
type follower struct {
	t      *testing.T
	hasher prefix.Hasher
	index  *prefix.Index
	ids    []prefix.ID
	feeds  []*event.Feed
	json   []*event.Feed
	mu     sync.Mutex
	events int
}

func follow(t *testing.T, block, ranks int) *follower {
	t.Helper()
	h, err := prefix.NewHasher(block, prefix.Seed("", ""))
	if err != nil {
		t.Fatal(err)
	}
	index, err := prefix.New(prefix.Options{MaxBlocks: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{t: t, hasher: h, index: index}
	for r := range ranks {
		id, err := index.Add(model.Target{Worker: "w", Rank: r})
		if err != nil {
			t.Fatal(err)
		}
		f.ids = append(f.ids, id)
		feed, err := event.NewFeed(event.Config{Rank: r, Ranks: ranks, BlockTokens: block}, f.apply)
		if err != nil {
			t.Fatal(err)
		}
		f.feeds = append(f.feeds, feed)
		feed, err = event.NewFeed(event.Config{Format: event.TRTJSON, Rank: r, Ranks: ranks, BlockTokens: block}, f.apply)
		if err != nil {
			t.Fatal(err)
		}
		f.json = append(f.json, feed)
	}
	return f
}

// drained takes one answer of TensorRT-LLM's list of events.
func (f *follower) drained(text string) {
	f.t.Helper()
	var refused event.Tally
	pieces, err := event.Drain([]byte(text), nil, &refused)
	if err != nil || refused.Total() != 0 {
		f.t.Fatalf("%v, %s", err, refused.LastError())
	}
	for _, p := range pieces {
		f.json[p.Rank].Live(time.Unix(1, 0), 1, p.ID, p.Raw)
	}
}

func (f *follower) apply(b *event.Batch) {
	if b.Refused.Total() > b.Refused.Count(event.Informal) {
		f.t.Errorf("an event was refused: %s", b.Refused.LastError())
	}
	for i := range b.Events {
		f.one(&b.Events[i])
	}
}

func (f *follower) one(e *event.Event) {
	f.events++
	id := f.ids[e.Rank]
	out := prefix.Event{HasParent: e.HasParent, Parent: prefix.ExternalUint(uint64(e.Parent))}
	switch e.Kind {
	case event.Cleared:
		out.Kind = prefix.Cleared
		if e.Restart {
			_ = f.index.Restart(id)
			return
		}
	case event.Removed:
		out.Kind = prefix.Removed
		for _, h := range e.Hashes {
			out.Hashes = append(out.Hashes, prefix.ExternalUint(uint64(h)))
		}
	case event.Stored:
		locals := f.hasher.WithSeed(prefix.Seed(e.LoRA, e.Salt)).Locals(nil, e.Tokens)
		for i, h := range e.Hashes {
			b := prefix.Block{External: prefix.ExternalUint(uint64(h))}
			if len(e.Local) > 0 {
				b.Local = prefix.Local(e.Local[i])
			} else {
				b.Local = locals[i]
			}
			if uint64(b.Local) == uint64(h) {
				f.t.Error("an engine's hash is the router's own")
			}
			out.Blocks = append(out.Blocks, b)
		}
	default:
		return
	}
	done, err := f.index.Apply(id, &prefix.Batch{Events: []prefix.Event{out}})
	if err != nil || done.Refused+done.Waiting > 0 || done.Unknown > 0 {
		f.t.Errorf("apply %v: %+v, %v", e.Kind, done, err)
	}
}

// holds is how many tokens the index credits a rank with.
func (f *follower) holds(rank int, tokens []uint32, lora, salt string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var m prefix.Matches
	f.index.NewMatcher().Match(f.hasher.WithSeed(prefix.Seed(lora, salt)).Chains(nil, tokens), &m)
	return int(m.Device[f.ids[rank]]) * f.hasher.BlockTokens()
}

// batch takes a batch as it left the engine.
func (f *follower) batch(kind model.EngineKind, b enginetest.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind != model.EngineDynamo {
		f.feeds[b.Publisher].Live(time.Unix(1, 0), 1, b.Seq, b.Payload)
		return
	}
	envelope, err := readAny(b.Payload)
	if err != nil {
		f.t.Error(err)
		return
	}
	list, err := readAny(envelope.(object)["payload"].([]byte))
	if err != nil {
		f.t.Error(err)
		return
	}
	var d event.Decoder
	var out event.Batch
	if err := d.RouterEvents([]byte(marshal(list)), &out); err != nil {
		f.t.Errorf("%s: %v", marshal(list), err)
	}
	for i := range out.Events { // two ranks a worker
		out.Events[i].Rank += int32(b.Publisher) * 2
	}
	f.apply(&out)
}

// readAny reads any msgpack value.
func readAny(b []byte) (any, error) {
	v, rest, err := msgp.ReadIntfBytes(b)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind the value", len(rest))
	}
	return v, err
}

// TestEventsAreTheTruth runs conversations over small caches, so that blocks are
// reused, grown into, evicted and made twice, and compares for every prompt what
// the engine holds, what its events told an index, and what answers report.
func TestEventsAreTheTruth(t *testing.T) {
	tests := map[string]enginetest.Config{
		"vllm":                 {Kind: "vllm"},
		"vllm, arrays":         {Kind: "vllm", Habits: enginetest.Habits{EventHabits: enginetest.EventHabits{Form: "array", Hash: "bytes"}}},
		"vllm, hardly a cache": {Kind: "vllm", Blocks: 40},
		"vllm, barrier":        {Kind: "vllm", Timing: enginetest.Timing{Instant: true, Barrier: true, ChunkTokens: 64}},
		"sglang":               {Kind: "sglang"},
		"sglang, long arrays":  {Kind: "sglang", Habits: enginetest.Habits{EventHabits: enginetest.EventHabits{Fields: 8}}},
		"sglang, maps":         {Kind: "sglang", Habits: enginetest.Habits{EventHabits: enginetest.EventHabits{Form: "map", NoBatchRank: true}}},
		"trtllm":               {Kind: "trtllm"},
		"trtllm, drained":      {Kind: "trtllm"},
		"dynamo":               {Kind: "dynamo", Workers: 2},
	}
	for name, cfg := range tests {
		t.Run(name, func(t *testing.T) {
			cfg.Ranks, cfg.BlockTokens, cfg.Seed = 4, 8, 7
			ranks := 4
			if cfg.Kind == model.EngineDynamo {
				cfg.Ranks = 2
			}
			if cfg.Blocks == 0 {
				cfg.Blocks = 150
			}
			if cfg.Kind == model.EngineVLLM {
				cfg.Adapters = []string{"lora-1"}
			}
			drained := name == "trtllm, drained"
			f := follow(t, 8, ranks)
			if !drained {
				cfg.Events.OnBatch = func(b enginetest.Batch) { f.batch(cfg.Kind, b) }
			}
			e := newEngine(t, cfg)
			drain := func() {
				if !drained {
					return
				}
				_, text := call(t, e, http.MethodPost, "/kv_cache_events", "")
				f.drained(text)
			}
			talks := converse(t, e, cfg, drain, f)
			drain()
			e.Quiet(t)
			checked := 0
			for _, prompt := range talks {
				for r := range ranks {
					for n := len(prompt.tokens); n > 0; n /= 2 {
						engine, index := e.Holds(r, prompt.tokens[:n], prompt.lora, prompt.salt), f.holds(r, prompt.tokens[:n], prompt.lora, prompt.salt)
						if engine != index {
							t.Fatalf("rank %d: the engine holds %d tokens of a prompt of %d, its events say %d", r, engine, n, index)
						}
						checked++
					}
				}
			}
			if f.events == 0 || checked < 100 {
				t.Fatalf("%d events, %d comparisons", f.events, checked)
			}
			t.Logf("%d events, %d comparisons, all equal", f.events, checked)
		})
	}
}

// talk is the prompt of a conversation as it stands.
type talk struct {
	tokens     []uint32
	lora, salt string
}

// converse holds 12 conversations of 8 turns, one request at a time and some at
// once, and checks the cached tokens that are reported against the index.
func converse(t *testing.T, e *enginetest.Engine, cfg enginetest.Config, drain func(), f *follower) []talk {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	type conv struct {
		messages   []object
		lora, salt string
	}
	convs := make([]conv, 12)
	var talks []talk
	for turn := range 8 {
		for i := range convs {
			c := &convs[i]
			if turn == 0 {
				c.messages = []object{{"role": "system", "content": "You answer briefly and never twice the same."}}
				if cfg.Kind == model.EngineVLLM {
					c.lora, c.salt = []string{"", "lora-1"}[i%2], []string{"", "", "tenant"}[i%3]
				}
			}
			c.messages = append(c.messages, object{"role": "user", "content": words(rng, 4+rng.IntN(12))})
			if cfg.Kind == "vllm" && cfg.Blocks < 100 && len(c.messages) > 8 {
				c.messages = c.messages[:2]
			}
			body := object{"model": "fake-model", "messages": c.messages, "max_tokens": 5 + rng.IntN(20)}
			if c.lora != "" {
				body["model"] = c.lora
			}
			if c.salt != "" {
				body["cache_salt"] = c.salt
			}
			drain()
			var header []string
			rank := rng.IntN(4)
			switch cfg.Kind {
			case model.EngineDynamo:
				header = []string{"x-dynamo-worker-instance-id", fmt.Sprint(e.Config().InstanceBase + uint64(rank/2)), "x-dynamo-dp-rank", fmt.Sprint(rank % 2)}
			default:
				header = []string{"X-Data-Parallel-Rank", fmt.Sprint(rank)}
			}
			prompt := talk{tokens: e.Prompt(t, body), lora: c.lora, salt: c.salt}
			e.Flush()
			var before []int
			for r := range 4 {
				before = append(before, f.holds(r, prompt.tokens[:len(prompt.tokens)-1], c.lora, c.salt))
			}
			status, o := callJSON(t, e, http.MethodPost, "/v1/chat/completions", marshal(body), header...)
			if status != http.StatusOK {
				t.Fatal(status, o)
			}
			s := last(t, e)
			if cfg.Kind != model.EngineTRTLLM && s.Ran != rank {
				t.Fatalf("ran on %d, asked for %d", s.Ran, rank)
			}
			if got := fmt.Sprint(at(t, o, "usage.prompt_tokens_details.cached_tokens")); got != fmt.Sprint(before[s.Ran]) || s.PromptTokens != len(prompt.tokens) {
				t.Fatalf("%s tokens cached of %d on rank %d, the index said %d of %d", got, s.PromptTokens, s.Ran, before[s.Ran], len(prompt.tokens))
			}
			c.messages = append(c.messages, object{"role": "assistant", "content": at(t, o, "choices.0.message.content")})
			talks = append(talks, prompt)
		}
	}
	// The same prompt several times at once: vLLM keeps equal blocks twice.
	var g sync.WaitGroup
	for i := range 24 {
		body := object{"model": "fake-model", "messages": convs[i%3].messages, "max_tokens": 12}
		g.Go(func() { call(t, e, http.MethodPost, "/v1/chat/completions", marshal(body)) })
	}
	g.Wait()
	return talks
}

func words(rng *rand.Rand, n int) string {
	s := ""
	for range n {
		s += fmt.Sprintf("%x ", rng.Uint32N(1<<20))
	}
	return s
}
