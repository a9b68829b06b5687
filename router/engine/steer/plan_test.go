package steer

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"adpdeck/router/model"
)

var (
	vllm    = &model.EngineSpec{ID: "w0", Kind: model.EngineVLLM, URL: "http://a:8000", StartRank: 2, Ranks: 2}
	sglang  = &model.EngineSpec{ID: "w0", Kind: model.EngineSGLang, URL: "http://a:30000", StartRank: 4, Ranks: 4}
	trtllm  = &model.EngineSpec{ID: "w0", Kind: model.EngineTRTLLM, URL: "http://a:8000", Ranks: 4}
	dynamo  = &model.EngineSpec{ID: "w0", Kind: model.EngineDynamo, URL: "http://a:8000", StartRank: 8, Ranks: 4, InstanceID: 1<<63 + 1}
	perPort = &model.EngineSpec{ID: "w0", Kind: model.EngineVLLM, RankURLs: []string{"http://a:8000", "http://a:8001"}, Ranks: 2}
)

func with(spec *model.EngineSpec, f func(*model.EngineSpec)) *model.EngineSpec {
	c := *spec
	f(&c)
	return &c
}

func steered(how model.Steering) func(*model.EngineSpec) {
	return func(s *model.EngineSpec) { s.Steering = how }
}

func TestForTellsTheRankWhereTheEngineReadsIt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec    *model.EngineSpec
		rank    int
		route   model.Route
		conv    string
		header  http.Header
		body    string // of {"model":"m"} after the edit
		channel string
	}{
		"vllm local numbers": {
			spec: vllm, rank: 1, route: model.RouteChat, conv: "c",
			header: http.Header{"X-Data-Parallel-Rank": {"1"}}, body: `{"model":"m"}`, channel: "header",
		},
		"vllm global numbers by override": {
			spec: with(vllm, func(s *model.EngineSpec) { s.RankNumbers = model.NumbersGlobal }), rank: 1, route: model.RouteChat,
			header: http.Header{"X-Data-Parallel-Rank": {"3"}}, body: `{"model":"m"}`, channel: "header",
		},
		"vllm elsewhere: sent, to be noticed": {
			spec: vllm, rank: 0, route: model.RouteEmbeddings,
			header: http.Header{"X-Data-Parallel-Rank": {"0"}}, body: `{"model":"m"}`, channel: "header",
		},
		"a port says it all": {
			spec: perPort, rank: 1, route: model.RouteResponses, conv: "c",
			header: http.Header{}, body: `{"model":"m"}`, channel: "port",
		},
		"sglang both, global numbers": {
			spec: sglang, rank: 1, route: model.RouteCompletions,
			header: http.Header{"X-Data-Parallel-Rank": {"5"}}, body: `{"model":"m","routed_dp_rank":5}`, channel: "header+body",
		},
		"sglang responses: no field that may be refused": {
			spec: sglang, rank: 1, route: model.RouteResponses,
			header: http.Header{"X-Data-Parallel-Rank": {"5"}}, body: `{"model":"m"}`, channel: "header",
		},
		"sglang body alone": {
			spec: with(sglang, steered(model.SteerBody)), rank: 0, route: model.RouteChat,
			header: http.Header{}, body: `{"model":"m","routed_dp_rank":4}`, channel: "body",
		},
		"sglang body alone where none is read": {
			spec: with(sglang, steered(model.SteerBody)), rank: 0, route: model.RouteResponses,
			header: http.Header{}, body: `{"model":"m"}`, channel: "none",
		},
		"trtllm picks and is told the conversation": {
			spec: trtllm, rank: model.NoRank, route: model.RouteChat, conv: "c-1",
			header: http.Header{"X-Session-Id": {"c-1"}}, body: `{"model":"m","conversation_params":{"conversation_id":"c-1"}}`, channel: "conversation",
		},
		"trtllm picks even if a rank was chosen": {
			spec: trtllm, rank: 2, route: model.RouteChat, conv: "c-1",
			header: http.Header{"X-Session-Id": {"c-1"}}, body: `{"model":"m","conversation_params":{"conversation_id":"c-1"}}`, channel: "conversation",
		},
		"trtllm responses: header only": {
			spec: trtllm, rank: model.NoRank, route: model.RouteResponses, conv: "c-1",
			header: http.Header{"X-Session-Id": {"c-1"}}, body: `{"model":"m"}`, channel: "conversation",
		},
		"trtllm id that no header can carry": {
			spec: trtllm, rank: model.NoRank, route: model.RouteChat, conv: "c\r\n\"1",
			header: http.Header{}, body: `{"model":"m","conversation_params":{"conversation_id":"c\r\n\"1"}}`, channel: "conversation",
		},
		"trtllm responses: such an id as a digest": {
			spec: trtllm, rank: model.NoRank, route: model.RouteResponses, conv: "c\n",
			header: http.Header{"X-Session-Id": {"adpdeck-a3a5e715f0cc574a73c3f9bebb6bc24f"}}, body: `{"model":"m"}`, channel: "conversation",
		},
		"trtllm keyless": {
			spec: trtllm, rank: model.NoRank, route: model.RouteChat,
			header: http.Header{}, body: `{"model":"m"}`, channel: "none",
		},
		"trtllm by override: only what the client named, as others are told it": {
			spec: with(trtllm, steered(model.SteerNone)), rank: model.NoRank, route: model.RouteChat, conv: "c",
			header: http.Header{"X-Session-Id": {"c"}}, body: `{"model":"m"}`, channel: "none",
		},
		"trtllm by override: nothing that was derived": {
			spec: with(trtllm, steered(model.SteerNone)), rank: model.NoRank, route: model.RouteChat, conv: "derived:1",
			header: http.Header{}, body: `{"model":"m"}`, channel: "none",
		},
		"trtllm is told what was derived": {
			spec: trtllm, rank: model.NoRank, route: model.RouteResponses, conv: "derived:1",
			header: http.Header{"X-Session-Id": {"derived:1"}}, body: `{"model":"m"}`, channel: "conversation",
		},
		"vllm picks": {
			spec: with(vllm, steered(model.SteerNone)), rank: model.NoRank, route: model.RouteChat, conv: "c",
			header: http.Header{"X-Session-Id": {"c"}}, body: `{"model":"m"}`, channel: "none",
		},
		"sglang picks and reads none": {
			spec: with(sglang, steered(model.SteerNone)), rank: model.NoRank, route: model.RouteChat, conv: "c",
			header: http.Header{}, body: `{"model":"m"}`, channel: "none",
		},
		"dynamo worker and rank, no float": {
			spec: dynamo, rank: 1, route: model.RouteChat, conv: "c",
			header: http.Header{"X-Dynamo-Dp-Rank": {"9"}, "X-Dynamo-Worker-Instance-Id": {"9223372036854775809"}},
			body:   `{"model":"m","nvext":{"extra_fields":["worker_id"]}}`, channel: "header",
		},
		"dynamo in the body": {
			spec: with(dynamo, steered(model.SteerBody)), rank: 1, route: model.RouteChat,
			header: http.Header{}, body: `{"model":"m","nvext":{"dp_rank":9,"backend_instance_id":9223372036854775809,"extra_fields":["worker_id"]}}`, channel: "body",
		},
		"dynamo worker only": {
			spec: dynamo, rank: model.NoRank, route: model.RouteChat, conv: "c",
			header: http.Header{"X-Dynamo-Worker-Instance-Id": {"9223372036854775809"}, "X-Dynamo-Session-Id": {"c"}},
			body:   `{"model":"m","nvext":{"extra_fields":["worker_id"]}}`, channel: "none",
		},
		"dynamo picks by session": {
			spec: with(dynamo, steered(model.SteerConversation)), rank: model.NoRank, route: model.RouteChat, conv: "c",
			header: http.Header{"X-Dynamo-Worker-Instance-Id": {"9223372036854775809"}, "X-Dynamo-Session-Id": {"c"}},
			body:   `{"model":"m","nvext":{"extra_fields":["worker_id"]}}`, channel: "conversation",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := For(tc.spec, tc.rank, tc.route, tc.conv)
			if err != nil {
				t.Fatal(err)
			}
			body, err := Edit([]byte(`{"model":"m"}`), p.Body)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.header, p.Header); d != "" {
				t.Error("header", d)
			}
			if string(body) != tc.body || p.Channel != tc.channel {
				t.Errorf("body %s by %s, want %s by %s", body, p.Channel, tc.body, tc.channel)
			}
		})
	}
}

func TestForRefusesARankThatTheWorkerHasNot(t *testing.T) {
	t.Parallel()
	for _, rank := range []int{2, 99, -7} {
		if _, err := For(vllm, rank, model.RouteChat, ""); err == nil || !strings.Contains(err.Error(), "ranks 0 to 1") {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if _, err := For(perPort, model.NoRank, model.RouteChat, ""); err == nil || !strings.Contains(err.Error(), "no rank was chosen") {
		t.Errorf("no rank for a port: %v", err)
	}
}

// TestNothingOfTheClientsOwnChoicePasses sends every way to name a rank or a
// worker, and every conversation id, through every kind and way to steer.
func TestNothingOfTheClientsOwnChoicePasses(t *testing.T) {
	t.Parallel()
	const body = `{"routed_dp_rank":424242,"data_parallel_rank":424242,"model":"m","routed_dp_\u0072ank":424242,
		"nvext":{"dp_rank":424242,"backend_instance_id":424242,"decode_worker_id":424242,"keep":1,"prefill_dp_rank":424242},"nvext":{"dp_rank":424242}}`
	for _, spec := range []*model.EngineSpec{vllm, sglang, trtllm, dynamo, perPort} {
		for _, how := range []model.Steering{model.SteerAuto, model.SteerHeader, model.SteerBody, model.SteerHeaderBody, model.SteerNone, model.SteerConversation} {
			if Why(spec.Kind, how) != "" || how != model.SteerAuto && len(spec.RankURLs) > 0 {
				continue
			}
			for _, route := range Routes() {
				p, err := For(with(spec, steered(how)), 0, route, "conv")
				if err != nil {
					t.Fatal(err)
				}
				h := http.Header{}
				for _, name := range slices.Concat(rankHeaders(), conversationHeaders(spec.Kind)) {
					h.Set(name, "424242")
				}
				for _, name := range p.Strip {
					if name != http.CanonicalHeaderKey(name) {
						t.Errorf("%s is not in canonical form", name)
					}
					h.Del(name)
				}
				for name, v := range h {
					t.Errorf("%s %s %s: %s: %s passes", spec.Kind, how, route, name, v)
				}
				got, err := Edit([]byte(body), p.Body)
				if err != nil {
					t.Fatal(err)
				}
				foreign := spec.Kind == model.EngineVLLM || spec.Kind == model.EngineTRTLLM // these read none of the fields
				if strings.Contains(string(got), "424242") && !foreign {
					left := strings.Count(string(got), "424242")
					want := 3 // the other kind's names
					if spec.Kind == model.EngineSGLang {
						want = 5
					}
					if left != want {
						t.Errorf("%s %s %s: %d foreign ranks pass in %s", spec.Kind, how, route, left, got)
					}
				}
			}
		}
	}
}

// TestNoIDOfTheClientsPasses: what a client names in the body reaches no engine
// that would read it, however that is steered; what the router says does.
func TestNoIDOfTheClientsPasses(t *testing.T) {
	t.Parallel()
	bodies := map[model.EngineKind]string{
		model.EngineVLLM:   `{"session_id":"theirs","vllm_xargs":{"session_id":"theirs","keep":1}}`,
		model.EngineTRTLLM: `{"conversation_params":{"conversation_id":"theirs"},"prompt_cache_key":"theirs","client_metadata":{"thread_id":"theirs","session_id":"theirs"}}`,
		model.EngineDynamo: `{"nvext":{"agent_context":{"session_id":"theirs"},"session_control":{"session_id":"theirs"}}}`,
	}
	for _, spec := range []*model.EngineSpec{vllm, trtllm, dynamo} {
		for _, how := range []model.Steering{model.SteerAuto, model.SteerNone, model.SteerConversation} {
			if Why(spec.Kind, how) != "" {
				continue
			}
			for _, rank := range []int{0, model.NoRank} {
				for _, conv := range []string{"", "hashed"} {
					p, err := For(with(spec, steered(how)), rank, model.RouteChat, conv)
					if err != nil {
						t.Fatal(err)
					}
					got, err := Edit([]byte(bodies[spec.Kind]), p.Body)
					if err != nil || strings.Contains(string(got), "theirs") {
						t.Errorf("%s %s: %s (%v)", spec.Kind, how, got, err)
					}
				}
			}
		}
	}
}

func TestARankAndAConversationAreNeverSentTogether(t *testing.T) {
	t.Parallel()
	for _, spec := range []*model.EngineSpec{vllm, sglang, trtllm, dynamo, perPort} {
		for _, route := range Routes() {
			p, err := For(spec, 1, route, "conv")
			if err != nil {
				t.Fatal(err)
			}
			rank, session := false, false
			for name := range p.Header {
				rank = rank || strings.HasSuffix(name, "Rank")
				session = session || strings.Contains(name, "Session")
			}
			for _, f := range p.Body {
				rank = rank || f.JSON != nil && strings.HasSuffix(f.Name, "rank")
				session = session || f.JSON != nil && f.Name == fieldConversation
			}
			if rank && session {
				t.Errorf("%s %s: %v %v", spec.Kind, route, p.Header, p.Body)
			}
		}
	}
}

func TestTableIsWholeAndAgreesWithFor(t *testing.T) {
	t.Parallel()
	rows := Table()
	if len(rows) != len(Kinds())*len(Routes()) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.Source == "" {
			t.Errorf("%s %s: no source", r.Kind, r.Route)
		}
		if (r.HeaderName == "") != (r.Kind == model.EngineTRTLLM) {
			t.Errorf("%s %s: header %q", r.Kind, r.Route, r.HeaderName)
		}
	}
	// v0.5.19 ignored both (sglang#38729); OpenAIServingResponses of newer trees reads both.
	if r := RowOf(model.EngineSGLang, model.RouteResponses); r.Header != Untold || r.Body != Untold || r.Port != Heeded {
		t.Errorf("sglang responses: %+v", r)
	}
	// OpenAIServingResponses and PoolingServing hand no rank to the engine.
	for _, route := range []model.Route{model.RouteResponses, model.RouteEmbeddings} {
		if r := RowOf(model.EngineVLLM, route); r.Header != Ignored || r.Port != Heeded {
			t.Errorf("vllm %s: %+v", route, r)
		}
	}
	if RowOf(model.EngineVLLM, model.RouteExternal) != RowOf(model.EngineVLLM, model.RouteChat) {
		t.Error("a route that another carries is not read as a chat")
	}
}

// TestDynamoIsLeftNoHalfAContext: session_id is required in Dynamo's AgentContext
// (protocols/common/extensions.rs), so that a context without it is refused.
func TestDynamoIsLeftNoHalfAContext(t *testing.T) {
	spec := model.EngineSpec{ID: "d", Kind: model.EngineDynamo, URL: "http://d", Ranks: 2, InstanceID: 1<<63 + 1}
	plan, err := For(&spec, 1, model.RouteChat, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Edit([]byte(`{"nvext":{"agent_context":{"session_id":"s","parent_session_id":"p"},"extra_fields":["timing"]}}`), plan.Body)
	if want := `{"nvext":{"extra_fields":["timing","worker_id"]}}`; string(got) != want || err != nil {
		t.Errorf("%s %v", got, err)
	}
}
