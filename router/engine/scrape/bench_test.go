package scrape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// manyRanks is a page of 64 ranks with all that a real one has: 3 of its 4
// parts by length are histograms.
func manyRanks(tb testing.TB) []byte {
	tb.Helper()
	const ranks = 64
	var b bytes.Buffer
	for _, line := range bytes.SplitAfter(page(tb, "vllm.prom").Body, []byte("\n")) {
		if !bytes.Contains(line, []byte(`engine="`)) {
			b.Write(line)
			continue
		}
		if !bytes.Contains(line, []byte(`engine="1"`)) {
			continue
		}
		for r := range ranks {
			b.Write(bytes.Replace(line, []byte(`engine="1"`), fmt.Appendf(nil, `engine="%d"`, r), 1))
		}
	}
	return b.Bytes()
}

func BenchmarkVLLM64Ranks(b *testing.B) {
	a := Answer{Status: 200, Body: manyRanks(b)}
	b.SetBytes(int64(len(a.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if p, err := VLLM(a); err != nil || len(p.Ranks) != 64 {
			b.Fatal(err)
		}
	}
}

func BenchmarkSGLangLoads64Ranks(b *testing.B) {
	var rows []map[string]any
	for r := range 64 {
		rows = append(rows, map[string]any{
			"dp_rank": r, "timestamp": 1785921323.25, "num_running_reqs": 9, "num_waiting_reqs": 4, "num_waiting_uncached_tokens": 1200,
			"num_used_tokens": 10241, "num_total_tokens": 12641, "max_total_num_tokens": 20480, "token_usage": 0.5,
			"gen_throughput": 812.4, "cache_hit_rate": 0.75, "utilization": 0.0, "max_running_requests": 128,
		})
	}
	data, err := json.Marshal(map[string]any{"timestamp": "2026-08-06T09:15:23.481920+00:00", "loads": rows})
	if err != nil {
		b.Fatal(err)
	}
	a := Answer{Status: 200, Body: data}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if p, err := SGLangLoads(a, 16); err != nil || len(p.Ranks) != 64 {
			b.Fatal(err)
		}
	}
}

func BenchmarkTRTRows16Ranks(b *testing.B) {
	a := page(b, "trt_rows.json")
	b.SetBytes(int64(len(a.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if p, err := TRTRows(a, 16); err != nil || len(p.Ranks) != 16 {
			b.Fatal(err)
		}
	}
}
