package enginetest_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

var update = flag.Bool("update", false, "write the golden answers anew")

// What differs from run to run in an answer, and what is too much to read.
var (
	clockWords = regexp.MustCompile(`\b1[6-9]\d{8}(\.\d+)?\b|\b1\.[6-9]\d*e\+09\b|\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)|\d\d-\d\d-\d{4} [0-9:.]+`)
	idWords    = regexp.MustCompile(`\b(chatcmpl|cmpl|resp|msg|embd|rs)[-_][0-9a-zA-Z-]+`)
	portWords  = regexp.MustCompile(`127\.0\.0\.1:\d+|"endpoint_port_base":\d+`)
	timeWords  = regexp.MustCompile(`"(iterLatencyMS|ttft_ms|itl_ms|total_time_ms|e2e_latency|gen_throughput|last_gen_throughput)":[0-9.e+-]+`)
	bucketRows = regexp.MustCompile(`(?m)^[a-z0-9_:]+_bucket\{[^\n]*\n`)
	secondRows = regexp.MustCompile(`(?m)^([a-z0-9_:]+(?:_seconds|_throughput|_ms)(?:_bucket|_sum|_count)?(?:\{[^}]*\})?) \S+$`)
)

func stable(text string) string {
	text = clockWords.ReplaceAllString(text, "TIME")
	text = idWords.ReplaceAllString(text, "$1-ID")
	text = portWords.ReplaceAllString(text, "PORT")
	text = timeWords.ReplaceAllString(text, `"$1":TIME`)
	text = bucketRows.ReplaceAllString(text, "")
	return secondRows.ReplaceAllString(text, "$1 TIME")
}

// script is what is asked of each kind, in this order: every address of its own,
// and what it answers to a client's mistakes.
func script(kind model.EngineKind) []string {
	all := []string{
		"GET /health", "GET /v1/models",
		`POST /v1/chat/completions {"model":"fake-model","messages":[{"role":"user","content":"hello you"}],"max_tokens":3}`,
		`POST /v1/chat/completions {"model":"fake-model","messages":[{"role":"user","content":"hello you"}],"max_tokens":1,"stream":true,"stream_options":{"include_usage":true}}`,
		`POST /v1/completions {"model":"fake-model","prompt":[1,2,3],"max_tokens":2}`,
		`POST /v1/embeddings {"model":"fake-model","input":"hello"}`,
		`POST /v1/responses {"model":"fake-model","input":"hello","max_output_tokens":2}`,
		`POST /v1/chat/completions {"model":"nobody","messages":[{"role":"user","content":"x"}],"max_tokens":1}`,
		`POST /v1/chat/completions {"model":`, `POST /v1/chat/completions {"model":"fake-model"}`,
		"GET /nowhere", "GET /v1/chat/completions",
	}
	own := map[model.EngineKind][]string{
		model.EngineVLLM: {
			"GET /version", "GET /ping", "GET /load", "GET /metrics", `POST /tokenize {"model":"fake-model","prompt":"hello you"}`, "POST /reset_prefix_cache",
			`POST /v1/chat/completions X-data-parallel-rank:9 {"model":"fake-model","messages":[{"role":"user","content":"x"}],"max_tokens":1}`,
			`POST /v1/chat/completions X-data-parallel-rank:one {"model":"fake-model","messages":[{"role":"user","content":"x"}],"max_tokens":1}`,
		},
		model.EngineSGLang: {
			"GET /health_generate", "GET /server_info", "GET /get_server_info", "GET /v1/loads", "GET /v1/loads?include=core,queues&dp_rank=1", "GET /v1/loads?include=nothing",
			"GET /v1/loads?format=prometheus", "GET /get_load", "GET /metrics", `POST /tokenize {"model":"fake-model","prompt":"hello you"}`, "POST /flush_cache",
			`POST /v1/chat/completions X-Data-Parallel-Rank:one {"model":"fake-model","messages":[{"role":"user","content":"x"}],"max_tokens":1}`,
		},
		model.EngineTRTLLM: {
			"GET /health_generate", "GET /version", "GET /server_info", "GET /metrics", "GET /metrics", "POST /kv_cache_events", "POST /kv_cache_events", "GET /kv_cache_events",
			"GET /perf_metrics", "GET /prometheus/metrics", "GET /steady_clock_offset",
			`POST /v1/chat/completions {"model":"fake-model","messages":[{"role":"user","content":"x"}],"max_tokens":1,"attention_dp_rank":1}`,
			`POST /v1/chat/completions {"model":"fake-model","messages":[{"role":"user","content":"x"}],"max_tokens":1,"conversation_params":{"conversation_id":" c "}}`,
		},
		model.EngineDynamo: {
			"GET /live", "GET /metrics", "GET /busy_threshold",
			`POST /v1/chat/completions x-dynamo-dp-rank:1 {"model":"fake-model","messages":[{"role":"user","content":"x"}],"max_tokens":1,"nvext":{"extra_fields":["worker_id"]}}`,
			`POST /v1/chat/completions x-dynamo-worker-instance-id:7 {"model":"fake-model","messages":[{"role":"user","content":"x"}],"max_tokens":1}`,
			`POST /v1/chat/completions x-dynamo-dp-rank:one {"model":"fake-model","messages":[{"role":"user","content":"x"}],"max_tokens":1}`,
		},
	}
	return append(all, own[kind]...)
}

// TestGoldenAnswers pins every address of each fake: status, content type and
// body. What a release of an engine says otherwise shows as a change here.
func TestGoldenAnswers(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(string(kind), func(t *testing.T) {
			e := newEngine(t, enginetest.Config{Kind: kind, Ranks: 2, Seed: 7})
			var b strings.Builder
			for _, line := range script(kind) {
				method, rest, _ := strings.Cut(line, " ")
				path, rest, _ := strings.Cut(rest, " ")
				var header []string
				if name, value, ok := strings.Cut(rest, ":"); ok && !strings.HasPrefix(rest, "{") {
					value, rest, _ = strings.Cut(value, " ")
					header = []string{name, value}
				}
				if method == http.MethodPost {
					header = append(header, "Content-Type", "application/json")
				}
				resp, body := call(t, e, method, path, rest, header...)
				fmt.Fprintf(&b, "> %s\n< %d %s\n%s\n\n", line, resp.StatusCode, resp.Header.Get("Content-Type"), strings.TrimSpace(stable(body)))
			}
			file := filepath.Join("testdata", "golden", string(kind)+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, have, asked := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n"), ""
			for i := range min(len(got), len(have)) {
				if strings.HasPrefix(have[i], "> ") {
					asked = have[i]
				}
				if got[i] != have[i] {
					t.Fatalf("%s\nline %d differs (go test -update writes it anew):\n%s\nwas\n%s", asked, i+1, got[i], have[i])
				}
			}
			if len(got) != len(have) {
				t.Errorf("%d lines, were %d", len(got), len(have))
			}
		})
	}
}
