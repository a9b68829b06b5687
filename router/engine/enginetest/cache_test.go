package enginetest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"adpdeck/router/model"
)

// TestCacheAgainstItsDiary lets requests come, grow and go in any order and
// compares the cache with what its diary tells a listener.
func TestCacheAgainstItsDiary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(rapid.IntRange(4, 24).Draw(t, "blocks"), rapid.Bool().Draw(t, "twins"))
		told := map[uint64]int{}
		type held struct {
			hashes []uint64
			blocks []int32
			named  int
		}
		var open []*held
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // a request of one of a few chains
				chain, n := rapid.Uint64Range(0, 3).Draw(t, "chain"), rapid.IntRange(1, 6).Draw(t, "length")
				h := &held{}
				for i := range n {
					h.hashes = append(h.hashes, chain<<8+uint64(i)+1)
				}
				found, idle := c.match(h.hashes)
				if n-found > c.free-idle {
					continue
				}
				h.blocks, h.named = c.take(nil, h.hashes[:found]), found
				for range n - found {
					at, ok := c.alloc()
					if !ok {
						t.Fatal("no block where one was free")
					}
					h.blocks = append(h.blocks, at)
				}
				open = append(open, h)
			case 1: // a block is computed
				for _, h := range open {
					if i := h.named; i < len(h.hashes) {
						ch := change{hash: h.hashes[i], child: i > 0}
						if i > 0 {
							ch.parent = h.hashes[i-1]
						}
						h.blocks[i] = c.name(h.blocks[i], ch)
						h.named++
					}
				}
			case 2:
				if len(open) > 0 {
					c.release(open[0].blocks)
					open = open[1:]
				}
			case 3:
				c.clear()
			}
			for _, ch := range c.diary {
				switch {
				case ch.cleared:
					clear(told)
				case ch.removed:
					if told[ch.hash]--; told[ch.hash] == 0 {
						delete(told, ch.hash)
					}
				default:
					told[ch.hash]++
				}
			}
			c.diary = nil
			compare(t, c, told)
		}
	})
}

func compare(t *rapid.T, c *cache, told map[uint64]int) {
	t.Helper()
	real, free, named := map[uint64]int{}, 0, 0
	for _, b := range c.blocks {
		if b.refs == 0 {
			free++
		}
		if b.named {
			named++
			real[b.hash]++
		}
	}
	if free != c.free || named != c.named || len(real) != len(c.byHash) {
		t.Fatalf("free %d of %d, named %d of %d, findable %d of %d", c.free, free, c.named, named, len(c.byHash), len(real))
	}
	for h, n := range real {
		if _, ok := c.byHash[h]; !ok || told[h] != n || n > 1 && !c.twins {
			t.Fatalf("block %#x is held %d times, told %d times, findable %v", h, n, told[h], ok)
		}
	}
	if len(told) != len(real) {
		t.Fatalf("told of %d blocks, held are %d", len(told), len(real))
	}
	chained := 0
	for at := c.oldest; at != nowhere; at = c.blocks[at].newer {
		chained++
	}
	if chained != free {
		t.Fatalf("%d blocks in the free list, %d are free", chained, free)
	}
}

// FuzzRequests sends any body to every route of every kind, and to /__fake: an
// answer comes, and it is a JSON or a stream.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{"model": "fake-model", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}`,
		`{"model": "fake-model", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url"}]}], "stream": true, "max_tokens": 2}`,
		`{"model": "fake-model", "prompt": [1, 2, 4294967295], "max_tokens": 1}`, `{"input": ["a", "b"], "model": "fake-model", "dimensions": 3}`,
		`{"input": [{"role": "user", "content": null}], "model": "fake-model", "max_output_tokens": 2}`, `{"text": "x", "sampling_params": {"max_new_tokens": 1}}`,
		`{"nvext": {"backend_instance_id": 18446744073709551615, "dp_rank": 0}, "model": "fake-model", "prompt": "x", "max_tokens": 1}`,
		`{"conversation_params": {"conversation_id": 7}, "prompt": "x", "max_tokens": 1}`, `{"routed_dp_rank": 1.5, "prompt": "x"}`,
		`{"habits": {"on": ["metrics"]}, "do": "restart"}`, `{"input": []}`, `{"input": [ ]}`, `null`, `[]`, ``,
	} {
		f.Add(seed)
	}
	kinds := []model.EngineKind{model.EngineVLLM, model.EngineSGLang, model.EngineTRTLLM, model.EngineDynamo}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 4096 {
			t.Skip("long answers take long")
		}
		for _, kind := range kinds {
			e, err := New(Config{Kind: kind, Ranks: 2, Blocks: 64, Timing: Timing{Instant: true}})
			if err != nil {
				t.Fatal(err)
			}
			h := e.Handler(model.NoRank)
			for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/generate", "/v1/messages", "/tokenize", "/busy_threshold"} {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
				stream := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
				if !stream && !json.Valid(w.Body.Bytes()) {
					t.Errorf("%s %s: %d %q", kind, path, w.Code, w.Body)
				}
			}
			if n := e.Open(); n != 0 {
				t.Errorf("%s: %d requests left", kind, n)
			}
			_ = e.obey([]byte(body)) // a restart, a habit or an error; never a panic
			e.Close()
		}
	})
}
