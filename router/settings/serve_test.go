package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"adpdeck/router/model"
)

const cluster = `
router_mode: kv
workers:
  - id: v0
    kind: vllm
    url: http://10.0.0.1:8000
    group: moe
    start_rank: 0
    ranks: 4
    rank_numbers: local
    events:
      endpoint: tcp://10.0.0.1:5557
      replay: tcp://10.0.0.1:5657
      topic: kv
    max_num_active_requests: 256
    block_tokens: 16
  - {id: v1, kind: vllm, rank_urls: ["http://a:1", "http://b:2"], group: moe, start_rank: 4, steer: port, events: {bind: "tcp://*:5557"}}
  - id: d0
    kind: dynamo
    url: http://front:8000
    instance_id: 18446744073709551615
    events: {transport: nats, topic: ns.backend, loads: [ns.load, ns.steps]}
    models: [deepseek-r1]
    api_key_env: DYN_KEY
gateway:
  listen: 0.0.0.0:80
  request_timeout_secs: 1.5
  derive_conversation: true
  retry: off
  tenant_header: X-Tenant
  tokenize: text
feed: {listen: 127.0.0.1:9}
`

func TestServe(t *testing.T) {
	d, err := Parse("cluster.yaml", []byte(cluster))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultServe()
	want.FeedListen = "127.0.0.1:9"
	want.Gateway.Listen, want.Gateway.RequestTimeoutSecs, want.Gateway.DeriveConversation = "0.0.0.0:80", 1.5, true
	want.Gateway.Retry, want.Gateway.TenantHeader, want.Gateway.Tokenize = false, "X-Tenant", TokenizeText
	want.Workers = []model.EngineSpec{
		{
			ID: "v0", Kind: model.EngineVLLM, URL: "http://10.0.0.1:8000", Group: "moe", Ranks: 4, RankNumbers: model.NumbersLocal,
			Events:               model.EventSource{Endpoint: "tcp://10.0.0.1:5557", Replay: "tcp://10.0.0.1:5657", Topic: "kv"},
			MaxNumActiveRequests: 256, BlockTokens: 16,
		},
		{ID: "v1", Kind: model.EngineVLLM, RankURLs: []string{"http://a:1", "http://b:2"}, Group: "moe", StartRank: 4, Steering: model.SteerPort, Events: model.EventSource{Bind: "tcp://*:5557"}},
		{
			ID: "d0", Kind: model.EngineDynamo, URL: "http://front:8000", InstanceID: 1<<64 - 1,
			Events: model.EventSource{Transport: "nats", Topic: "ns.backend", Loads: []string{"ns.load", "ns.steps"}}, Models: []string{"deepseek-r1"}, APIKeyEnv: "DYN_KEY",
		},
	}
	if diff := cmp.Diff(want, d.Serve()); diff != "" {
		t.Error(diff)
	}
	if got := d.Settings().RouterMode; got != model.ModeKV {
		t.Errorf("router_mode %q", got)
	}
}

func TestServeSurvivesUpdate(t *testing.T) {
	d, err := Parse("cluster.yaml", []byte(cluster))
	if err != nil {
		t.Fatal(err)
	}
	before, s := d.Serve(), d.Settings()
	s.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight = 4
	s.SetWeight(model.Target{Worker: "v0", Rank: 1}, 0.5)
	if err := d.Update(s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, d.Serve()); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(string(d.Bytes()), cluster) {
		t.Errorf("the text before what was added has changed:\n%s", d.Bytes())
	}
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"workers: 3", `f:1:10: workers: want a list, each with id, kind and url, not "3"`},
		{"workers:\n  - kind: vllm", "f:2:9: this worker has no id; give it a name that stays, pins and weights name it"},
		{"workers:\n  - id: a", "f:2:7: worker a has no kind; want one of vllm, sglang, trtllm, dynamo"},
		{"workers:\n  - id: a\n    kind: tgi", `f:3:11: kind is "tgi"; want one of vllm, sglang, trtllm, dynamo`},
		{"workers:\n  - id: a\n    kind: vllm\n    port: 1", `f:4:5: workers has no key "port"; allowed are id, kind, url, `},
		{"workers:\n  - {id: a, kind: vllm, ranks: 5000}", "f:2:32: ranks is 5000; want 0 to 4096"},
		{"workers:\n  - {id: a, kind: vllm, ranks: -1}", "f:2:32: ranks is -1; want 0 to 4096"},
		{"workers:\n  - {id: a, kind: vllm, models: m}", `models: want a list of texts, not "m"`},
		{"workers:\n  - {id: a, kind: dynamo, instance_id: 1.5}", `instance_id is "1.5"; want a whole number from 0 to 18446744073709551615`},
		{"workers:\n  - {id: a, kind: vllm, events: {base: 1}}", `workers/events has no key "base"; allowed are transport, endpoint`},
		{"workers:\n  - {id: a, kind: vllm, rank_urls: [http://a:1]}", "rank_urls: want a text, not a mapping; put it in quotes"},
		{"gateway: {listen: [1]}", "listen: want a text, not a list"},
		{"gateway: {drain_secs: 0}", "drain_secs is 0; want seconds, more than 0 and at most 86400"},
		{"gateway: {drain_secs: .nan}", "drain_secs is NaN; want seconds"},
		{"gateway: {tokenise: text}", `gateway has no key "tokenise"; allowed are listen`},
		{"feed: {listen: \"a\\nb\"}", "listen holds a control character"},
	} {
		_, err := Parse("f", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestEngineArgs(t *testing.T) {
	a, err := ParseEngineArgs("engine.yaml", []byte(`
backend: pytorch
tensor_parallel_size: 8
enable_attention_dp: true
max_batch_size: 128
max_num_tokens: 8192
speculative_config: {decoding_type: MTP}
kv_cache_config: {tokens_per_block: 32, event_buffer_max_size: 16384, enable_block_reuse: true}
attention_dp_config:
  kv_cache_routing_conversation_affinity: true
`))
	if err != nil {
		t.Fatal(err)
	}
	if a.Ranks() != 8 || a.MaxBatchSize != 128 || a.MaxNumTokens != 8192 || a.TokensPerBlock != 32 || a.EventBufferMaxSize != 16384 {
		t.Errorf("read %+v", a)
	}
	if a.Settings.AttentionDpConfig.Policy() != model.PolicyConversation {
		t.Error("attention_dp_config was not read")
	}
	if a, err := ParseEngineArgs("e", []byte("tensor_parallel_size: 8")); err != nil || a.Ranks() != 1 {
		t.Errorf("without attention DP: %d ranks, %v", a.Ranks(), err)
	}
	if _, err := ParseEngineArgs("e", []byte("attention_dp_config: {enable_balancing: true}")); err == nil {
		t.Error("an unknown field of attention_dp_config was taken")
	}
}
