package scrape

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

func seed(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 4<<10)]) // long seeds make slow fuzzing
	}
	for _, small := range []string{
		"vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 1\nvllm:num_requests_running{engine=\"1\"} 27\n",
		"vllm:cache_config_info{engine=\"0\",block_size=\"16\",num_gpu_blocks=\"100\",kv_cache_size_tokens=\"1600\"} 1\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n",
		"vllm:prefix_cache_queries_total 8\nvllm:prefix_cache_hits_total 6\nprocess_start_time_seconds 1.7e9\nvllm:engine_healthy 1\n",
		"sglang:num_queue_reqs{dp_rank=\"0\",tp_rank=\"1\",priority=\"\"} 4\nsglang:num_queue_reqs{dp_rank=\"0\",priority=\"1\"} 4\n",
		"sglang:max_total_num_tokens{dp_rank=\"0\"} 20480\nsglang:token_usage{dp_rank=\"0\"} 0.5\nsglang:cache_config_info{page_size=\"16\",num_pages=\"9\"} 1\n",
		"dynamo_frontend_worker_active_decode_blocks{worker_id=\"18446744073709551615\",dp_rank=\"1\"} 42\n",
		"dynamo_component_router_worker_registered{router_worker_id=\"5\",dp_rank=\"0\"} 1\ndynamo_frontend_model_total_kv_blocks{model=\"m\"} 9\n",
	} {
		f.Add([]byte(small))
	}
}

// sound fails the test on a page that breaks a promise of the package.
func sound(t *testing.T, p *Page, err error) {
	t.Helper()
	if err != nil {
		if _, ok := err.(*Refusal); !ok {
			t.Fatalf("an error without a reason: %v", err)
		}
		return
	}
	if len(p.Ranks) > MaxRanks || !slices.IsSorted(p.Advertised) || len(p.Refused.List) > MaxRefused {
		t.Fatalf("%d ranks, advertised %v, %d refusals", len(p.Ranks), p.Advertised, len(p.Refused.List))
	}
	for i := range p.Ranks {
		r := &p.Ranks[i]
		if r.Rank < 0 || r.Rank > MaxRank || i > 0 && p.Ranks[i-1].Rank >= r.Rank {
			t.Fatalf("rank %d at %d", r.Rank, i)
		}
		for _, m := range []model.Maybe{r.Running, r.Waiting, r.Tokens, r.PendingTokens, r.KVUsedBlocks, r.KVTotalBlocks, r.CacheHit} {
			if m.Known() && (m < 0 || math.IsInf(float64(m), 0)) {
				t.Fatalf("figure %v in %+v", m, r)
			}
		}
		if r.CacheHit > 1 {
			t.Fatalf("cache hit %v", r.CacheHit)
		}
	}
	if p.BlockTokens < 0 || p.KVBlocks < 0 || p.MaxActive < 0 {
		t.Fatalf("advert %+v", p.Advert)
	}
}

func FuzzVLLM(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := VLLM(Answer{Body: data})
		sound(t, &p, err)
		p.Inside(2, 2, model.NumbersAuto)
	})
}

func FuzzSGLangMetrics(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := SGLangMetrics(Answer{Body: data}, 16)
		sound(t, &p, err)
	})
}

func FuzzSGLangLoads(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := SGLangLoads(Answer{Body: data}, 16)
		sound(t, &p, err)
	})
}

func FuzzTRTRows(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, ranks := range []int{0, 1, 8} {
			p, err := TRTRows(Answer{Body: data}, ranks)
			sound(t, &p, err)
		}
	})
}

func FuzzDynamo(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Dynamo(Answer{Body: data})
		if err != nil {
			return
		}
		for i := range d.Workers {
			if d.Worker(d.Workers[i].ID) != &d.Workers[i] {
				t.Fatalf("worker %d is not found", d.Workers[i].ID)
			}
			sound(t, &d.Workers[i].Page, nil)
		}
	})
}

func FuzzInfo(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if i, err := SGLangInfo(Answer{Body: data}); err == nil && (i.BlockTokens < 0 || i.KVBlocks < 0 || len(i.Advertised) > MaxRanks) {
			t.Fatalf("%+v", i)
		}
	})
}

func FuzzModelsAndHealth(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		models, _, err := Models(Answer{Body: data})
		for _, m := range models {
			if err != nil || m.ID == "" {
				t.Fatalf("%+v, %v", m, err)
			}
		}
		for _, kind := range []model.EngineKind{model.EngineVLLM, model.EngineDynamo} {
			if s := Health(kind, Answer{Status: 200, Body: data}); s.Live != (s.Why == "") {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func FuzzBatch(f *testing.F) {
	var e event.Encoder
	f.Add(e.AppendBatch(nil, 1.5, 3, []event.Event{{Kind: event.Stored, BlockTokens: 2, Hashes: make([]event.Hash, 1), Tokens: []uint32{1, 2}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := Batch(data); err == nil && (a.BlockTokens < 0 || len(a.Advertised) > 1) {
			t.Fatalf("%+v", a)
		}
	})
}
