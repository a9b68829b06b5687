package enginetest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// ask sends one small request over a route, with headers and extra body fields.
func ask(t *testing.T, e *enginetest.Engine, route model.Route, text string, extra object, header ...string) (int, object) {
	t.Helper()
	messages := []object{{"role": "user", "content": text}}
	o := object{"model": "fake-model", "max_tokens": 2}
	path := map[model.Route]string{
		model.RouteChat: "/v1/chat/completions", model.RouteCompletions: "/v1/completions", model.RouteResponses: "/v1/responses",
		model.RouteEmbeddings: "/v1/embeddings", enginetest.RouteGenerate: "/generate", enginetest.RouteMessages: "/v1/messages",
	}[route]
	switch route {
	case model.RouteChat, enginetest.RouteMessages:
		o["messages"] = messages
	case model.RouteCompletions:
		o["prompt"] = text
	case model.RouteResponses:
		o = object{"model": "fake-model", "input": text, "max_output_tokens": 2}
	case model.RouteEmbeddings:
		o = object{"model": "fake-model", "input": text}
	case enginetest.RouteGenerate:
		o = object{"text": text, "sampling_params": object{"max_new_tokens": 2}}
	}
	for k, v := range extra {
		o[k] = v
	}
	return callJSON(t, e, http.MethodPost, path, marshal(o), header...)
}

// TestRankByRoute is the table of what a rank is taken from, per kind and route:
// rank 2 of 4 is asked for over each channel.
func TestRankByRoute(t *testing.T) {
	const no, yes = false, true
	tests := map[model.EngineKind]map[model.Route]struct{ header, body bool }{
		model.EngineVLLM: {
			model.RouteChat: {yes, no}, model.RouteCompletions: {yes, no}, model.RouteResponses: {no, no}, model.RouteEmbeddings: {no, no},
		},
		model.EngineSGLang: {
			model.RouteChat: {yes, yes}, model.RouteCompletions: {yes, yes}, model.RouteResponses: {no, no}, model.RouteEmbeddings: {no, no},
			enginetest.RouteMessages: {yes, no}, enginetest.RouteGenerate: {no, yes},
		},
		model.EngineTRTLLM: {
			model.RouteChat: {no, no}, model.RouteCompletions: {no, no}, model.RouteResponses: {no, no}, model.RouteEmbeddings: {no, no},
		},
		model.EngineDynamo: {
			model.RouteChat: {yes, yes}, model.RouteCompletions: {yes, yes}, model.RouteResponses: {yes, yes}, model.RouteEmbeddings: {no, no},
		},
	}
	for kind, routes := range tests {
		t.Run(string(kind), func(t *testing.T) {
			e := newEngine(t, enginetest.Config{Kind: kind, Ranks: 4})
			body, header := object{"routed_dp_rank": 2}, "X-Data-Parallel-Rank"
			if kind == model.EngineDynamo {
				body, header = object{"nvext": object{"dp_rank": 2}}, "x-dynamo-dp-rank"
			}
			for route, want := range routes {
				if status, o := ask(t, e, route, "over the header", nil, header, "2"); status != http.StatusOK {
					t.Fatalf("%s by header: %d %v", route, status, o)
				}
				check(t, e, route, "header", want.header)
				status, o := ask(t, e, route, "in the body", body)
				if kind == model.EngineTRTLLM {
					if status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(o["message"]), "extra_forbidden") {
						t.Errorf("%s: a field that the schema lacks got %d %v, want 400", route, status, o)
					}
					continue
				}
				if status != http.StatusOK {
					t.Fatalf("%s by body: %d %v", route, status, o)
				}
				check(t, e, route, "body", want.body)
			}
		})
	}
}

func check(t *testing.T, e *enginetest.Engine, route model.Route, channel string, honoured bool) {
	t.Helper()
	s := last(t, e)
	if honoured && (s.Ran != 2 || s.Asked != 2 || s.By != channel) {
		t.Errorf("%s over %s: %+v, want rank 2", route, channel, s)
	}
	if !honoured && s.Asked != model.NoRank {
		t.Errorf("%s over %s: %+v, want the rank ignored", route, channel, s)
	}
}

func TestRankNumbers(t *testing.T) {
	tests := map[string]struct {
		cfg    enginetest.Config
		header []string
		extra  object
		status int
		asked  int // NoRank: balanced
		text   string
	}{
		"vllm counts inside its node":       {cfg: enginetest.Config{Kind: "vllm", Ranks: 2, StartRank: 2}, header: []string{"X-data-parallel-rank", "1"}, status: 200, asked: 1},
		"vllm refuses a global rank":        {cfg: enginetest.Config{Kind: "vllm", Ranks: 2, StartRank: 2}, header: []string{"X-data-parallel-rank", "3"}, status: 400, text: "data_parallel_rank 3 is out of range [0, 2)"},
		"vllm of old failed":                {cfg: enginetest.Config{Kind: "vllm", Ranks: 2, Habits: enginetest.Habits{OutOfRange: "fail"}}, header: []string{"X-data-parallel-rank", "3"}, status: 500, text: "list index"},
		"vllm told to count globally":       {cfg: enginetest.Config{Kind: "vllm", Ranks: 2, StartRank: 2, Numbers: model.NumbersGlobal}, header: []string{"X-data-parallel-rank", "3"}, status: 200, asked: 1},
		"vllm ignores what is no number":    {cfg: enginetest.Config{Kind: "vllm", Ranks: 2}, header: []string{"X-data-parallel-rank", "one"}, status: 200, asked: model.NoRank},
		"vllm refuses below 0":              {cfg: enginetest.Config{Kind: "vllm", Ranks: 2}, header: []string{"X-data-parallel-rank", "-1"}, status: 400, text: "out of range"},
		"sglang refuses what is no number":  {cfg: enginetest.Config{Kind: "sglang", Ranks: 2}, header: []string{"X-Data-Parallel-Rank", "one"}, status: 400, text: "not an integer"},
		"sglang: the header wins":           {cfg: enginetest.Config{Kind: "sglang", Ranks: 4}, header: []string{"X-Data-Parallel-Rank", "1"}, extra: object{"routed_dp_rank": 3}, status: 200, asked: 1},
		"sglang's old field":                {cfg: enginetest.Config{Kind: "sglang", Ranks: 4}, extra: object{"data_parallel_rank": 3}, status: 200, asked: 3},
		"sglang's field is no number":       {cfg: enginetest.Config{Kind: "sglang", Ranks: 4}, extra: object{"routed_dp_rank": "x"}, status: 400, text: "valid integer"},
		"sglang checks at the entry":        {cfg: enginetest.Config{Kind: "sglang", Ranks: 4}, extra: object{"routed_dp_rank": 4}, status: 400, text: "out of range [0, 4)"},
		"sglang of one rank does not check": {cfg: enginetest.Config{Kind: "sglang"}, extra: object{"routed_dp_rank": 4}, status: 200, asked: model.NoRank},
		"sglang of old balanced":            {cfg: enginetest.Config{Kind: "sglang", Ranks: 4, Habits: enginetest.Habits{OutOfRange: "balance"}}, extra: object{"routed_dp_rank": 4}, status: 200, asked: model.NoRank},
		"dynamo counts globally":            {cfg: enginetest.Config{Kind: "dynamo", Ranks: 2, StartRank: 4}, header: []string{"x-dynamo-dp-rank", "5"}, status: 200, asked: 1},
		"dynamo's old names":                {cfg: enginetest.Config{Kind: "dynamo", Ranks: 2}, header: []string{"x-dp-rank", "1"}, status: 200, asked: 1},
		"dynamo's older names":              {cfg: enginetest.Config{Kind: "dynamo", Ranks: 2}, header: []string{"x-data-parallel-rank", "1"}, status: 200, asked: 1},
		"dynamo over vllm falls back":       {cfg: enginetest.Config{Kind: "dynamo", Ranks: 2}, header: []string{"x-dynamo-dp-rank", "7"}, status: 200, asked: model.NoRank},
		"dynamo over sglang refuses":        {cfg: enginetest.Config{Kind: "dynamo", Ranks: 2, Backend: "sglang"}, header: []string{"x-dynamo-dp-rank", "7"}, status: 400, text: "out of range"},
		"dynamo: no number":                 {cfg: enginetest.Config{Kind: "dynamo", Ranks: 2}, header: []string{"x-dynamo-dp-rank", "-1"}, status: 400, text: "x-dynamo-dp-rank"},
		"dynamo: unknown instance":          {cfg: enginetest.Config{Kind: "dynamo", Ranks: 2}, header: []string{"x-dynamo-worker-instance-id", "12"}, status: 500, text: "instance_id=12 not found"},
		"dynamo: instance beyond u64":       {cfg: enginetest.Config{Kind: "dynamo"}, header: []string{"x-worker-instance-id", "99999999999999999999"}, status: 400, text: "64-bit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, test.cfg)
			status, o := ask(t, e, model.RouteChat, "hello", test.extra, test.header...)
			if status != test.status {
				t.Fatalf("status %d, want %d: %v", status, test.status, o)
			}
			if status != http.StatusOK {
				if text := marshal(o); !strings.Contains(text, test.text) {
					t.Errorf("error %s, want %q in it", text, test.text)
				}
				return
			}
			if s := last(t, e); s.Asked != test.asked {
				t.Errorf("asked %d, want %d", s.Asked, test.asked)
			}
		})
	}
}

func TestDynamoReportsWhereARequestRan(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineDynamo, Workers: 3, Ranks: 2})
	id := e.Config().InstanceBase + 2
	extra := object{"nvext": object{"extra_fields": []string{"worker_id", "timing"}}}
	status, o := ask(t, e, model.RouteChat, "hello", extra, "x-dynamo-worker-instance-id", fmt.Sprint(id), "x-dynamo-dp-rank", "1")
	if status != http.StatusOK {
		t.Fatal(status, o)
	}
	if got := fmt.Sprint(at(t, o, "nvext.worker_id.decode_worker_id")); got != fmt.Sprint(id) || id < 1<<53 {
		t.Errorf("worker id %s, want %d, above 2^53", got, id)
	}
	if got := fmt.Sprint(at(t, o, "nvext.worker_id.decode_dp_rank")); got != "1" {
		t.Errorf("rank %s, want 1", got)
	}
	if at(t, o, "nvext.timing.ttft_ms") == nil {
		t.Error("no timing")
	}
	if _, o := ask(t, e, model.RouteChat, "hello", nil); o["nvext"] != nil {
		t.Errorf("nvext %v came unasked", o["nvext"])
	}
	// The body's ids, and the headers before them.
	ask(t, e, model.RouteChat, "hello", object{"nvext": object{"backend_instance_id": id, "dp_rank": 0}}, "x-dynamo-dp-rank", "1")
	if s := last(t, e); s.Ran != 5 {
		t.Errorf("ran on %d, want 5: the header's rank on the body's worker", s.Ran)
	}
}

func TestDynamoSessions(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineDynamo, Workers: 4, SessionAffinity: true})
	ask(t, e, model.RouteChat, "first", nil, "x-dynamo-session-id", "s-1")
	first := last(t, e).Ran
	for range 6 {
		ask(t, e, model.RouteChat, "next", nil, "x-dynamo-session-id", "s-1")
		if s := last(t, e); s.Ran != first {
			t.Fatalf("the session ran on %d, then on %d", first, s.Ran)
		}
	}
	other := e.Config().InstanceBase + uint64(first+1)%4
	status, o := ask(t, e, model.RouteChat, "next", nil, "x-dynamo-session-id", "s-1", "x-dynamo-worker-instance-id", fmt.Sprint(other))
	if status != http.StatusBadRequest {
		t.Errorf("a session against its binding got %d %v, want 400", status, o)
	}
}

func TestTensorRTConversations(t *testing.T) {
	balance := model.DefaultAttentionDpConfig()
	balance.KVCacheRoutingConversationAffinity = true
	e := newEngine(t, enginetest.Config{Kind: model.EngineTRTLLM, Ranks: 4, Balance: &balance})
	params := func(id string) object { return object{"conversation_params": object{"conversation_id": id}} }
	ran := map[string]int{}
	for turn := range 5 {
		for _, id := range []string{"a", "b", "c", "d"} {
			var status int
			var o object
			if id == "d" {
				route := []model.Route{model.RouteChat, model.RouteCompletions}[turn%2] // both handlers read the headers
				status, o = ask(t, e, route, "turn", nil, "X-Correlation-ID", id, "X-Session-ID", " ")
			} else {
				status, o = ask(t, e, model.RouteChat, "turn", params(" "+id+" "), "X-Session-ID", "not this one")
			}
			if status != http.StatusOK {
				t.Fatal(status, o)
			}
			s := last(t, e)
			if s.Conversation != id {
				t.Fatalf("conversation %q, want %q", s.Conversation, id)
			}
			if turn > 0 && ran[id] != s.Ran {
				t.Errorf("%s ran on %d, then on %d", id, ran[id], s.Ran)
			}
			ran[id] = s.Ran
		}
	}
	if ran["a"] == ran["b"] && ran["b"] == ran["c"] && ran["c"] == ran["d"] {
		t.Errorf("every conversation on one rank: %v", ran)
	}
	if status, _ := ask(t, e, model.RouteChat, "turn", params("  ")); status != http.StatusBadRequest {
		t.Errorf("a blank id got %d, want 400", status)
	}
}

func TestIgnoreRankAndHonours(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 4})
	header := []string{"X-Data-Parallel-Rank", "3"}
	for _, step := range []struct {
		habits string
		chat   bool
		answer bool // responses
	}{
		{`{}`, true, false},
		{`{"ignore_rank": ["chat"]}`, false, false},
		{`{"ignore_rank": ["*"], "honours": {"responses": ["header"]}}`, false, false},
		{`{"ignore_rank": []}`, true, true},
		{`{"honours": {}}`, true, true}, // what is there stays
		{`{"honours": {"chat": []}}`, false, true},
	} {
		if err := e.SetJSON([]byte(step.habits)); err != nil {
			t.Fatal(err)
		}
		ask(t, e, model.RouteChat, "x", nil, header...)
		if got := last(t, e).Asked == 3; got != step.chat {
			t.Errorf("%s: chat honoured %v, want %v", step.habits, got, step.chat)
		}
		ask(t, e, model.RouteResponses, "x", nil, header...)
		if got := last(t, e).Asked == 3; got != step.answer {
			t.Errorf("%s: responses honoured %v, want %v", step.habits, got, step.answer)
		}
	}
}

func TestOwnBalance(t *testing.T) {
	for kind, spread := range map[model.EngineKind]int{model.EngineSGLang: 4, model.EngineTRTLLM: 4} {
		e := newEngine(t, enginetest.Config{Kind: kind, Ranks: 4, Timing: enginetest.Timing{DecodeBase: 1}, Habits: enginetest.Habits{RankHeader: true}})
		seen := map[string]bool{}
		for i := range 12 {
			resp, _ := call(t, e, http.MethodPost, "/v1/chat/completions", chat(fmt.Sprint("hello ", i), nil))
			seen[resp.Header.Get(enginetest.RankHeader)] = true
		}
		if kind == model.EngineSGLang && len(seen) != spread || seen[""] {
			t.Errorf("%s: ranks %v of 12 requests, want %d", kind, seen, spread)
		}
	}
	// vLLM counts what waits and runs: while nothing ends, requests spread evenly.
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 4, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{NoFirstToken: true}}})
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			resp, err := client().Post(e.URL(model.NoRank)+"/v1/chat/completions", "application/json", strings.NewReader(chat("hello", nil)))
			if err == nil {
				resp.Body.Close()
			}
		}()
	}
	eventually(t, "eight requests wait", func() bool { return e.Open() == 8 })
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
	count := map[int]int{}
	for range 8 {
		<-done
	}
	for _, s := range e.Served() {
		count[s.Ran]++
	}
	for rank := range 4 {
		if count[rank] != 2 {
			t.Errorf("rank %d ran %d of 8, want 2: %v", rank, count[rank], count)
		}
	}
}
