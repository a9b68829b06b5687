package scrape

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

// Safety item 22: answers that are none.
func TestAnswersThatAreNone(t *testing.T) {
	html := page(t, "error.html").Body
	good := "vllm:num_requests_running{engine=\"0\"} 1\n"
	for name, c := range map[string]struct {
		a     Answer
		want  Reason
		words string
	}{
		"HTML with 200":        {Answer{Status: 200, Body: html}, ContentType, "is there a proxy or a login before the engine?"},
		"HTML by its header":   {Answer{Status: 200, ContentType: "text/html; charset=utf-8", Body: []byte(good)}, ContentType, "HTML"},
		"HTML with 502":        {Answer{Status: 502, Body: html}, BadStatus, "HTTP 502, saying \"<!DOCTYPE html>"},
		"503":                  {Answer{Status: 503}, BadStatus, "HTTP 503"},
		"404":                  {Answer{Status: 404, Body: []byte(`{"detail":"Not Found"}`)}, BadStatus, "are the kind and the address right?"},
		"JSON":                 {Answer{Status: 200, Body: []byte(`[{"iter":1}]`)}, ContentType, "Prometheus text was expected, but the answer is JSON"},
		"JSON by its header":   {Answer{Status: 200, ContentType: "application/json", Body: []byte(good)}, ContentType, "application/json"},
		"protobuf":             {Answer{Status: 200, ContentType: "application/vnd.google.protobuf; proto=x", Body: []byte(good)}, ContentType, "protobuf"},
		"empty":                {Answer{Status: 200}, Empty, "empty"},
		"white":                {Answer{Status: 200, Body: []byte(" \n\t\n")}, Empty, "empty"},
		"too large":            {Answer{Status: 200, Body: make([]byte, MaxPageBytes+1)}, TooLarge, "over the limit"},
		"too large an error":   {Answer{Status: 500, Body: make([]byte, MaxPageBytes+1)}, TooLarge, "over the limit"},
		"another engine":       {Answer{Status: 200, Body: page(t, "sglang.prom").Body}, NoFigures, "is the kind of the engine right?"},
		"no usable line":       {body("vllm:num_requests_running{engine=\"0\" 1\n"), BadLine, "num_requests_running"},
		"no usable rank":       {body("vllm:num_requests_running{engine=\"-1\"} 1\n"), BadRank, `the engine "-1"`},
		"cut in its only line": {body("vllm:num_requests_running{engine=\"0\"} 2"), Truncated, "ends in the middle of a line"},
		"control characters":   {body("\x1b[31mvllm\x9b"), Truncated, `\x1b[31mvllm`},
	} {
		_, err := VLLM(c.a)
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		t.Run(name, func(t *testing.T) { refusedAs(t, err, c.want, c.words) })
	}
	for name, a := range map[string]Answer{
		"HTML":     {Status: 200, Body: html},
		"text":     {Status: 200, Body: []byte(good)},
		"protobuf": {ContentType: "application/vnd.google.protobuf", Body: []byte("{}")},
	} {
		if _, err := SGLangLoads(a, 0); err == nil || err.(*Refusal).Reason != ContentType {
			t.Errorf("%s as JSON: %v", name, err)
		}
	}
}

// One bad line costs itself; the rest of the page is used.
func TestOneBadLine(t *testing.T) {
	const rank1 = "vllm:num_requests_running{engine=\"1\"} 27\n"
	for name, c := range map[string]struct {
		line string
		want Reason
	}{
		"a label cut":        {"vllm:num_requests_running{engine=\"0\n", BadLine},
		"a bracket missing":  {"vllm:num_requests_running{engine=\"0\" 5\n", BadLine},
		"no value":           {"vllm:num_requests_running{engine=\"0\"}\n", BadLine},
		"a word":             {"vllm:num_requests_running{engine=\"0\"} many\n", BadLine},
		"a bad escape":       {"vllm:num_requests_running{engine=\"0\\x\"} 5\n", BadLine},
		"not UTF-8":          {"vllm:num_requests_running{engine=\"0\xff\"} 5\n", BadLine},
		"two values":         {"vllm:num_requests_running{engine=\"0\"} 5 6 7\n", BadLine},
		"NaN":                {"vllm:num_requests_running{engine=\"0\"} NaN\n", BadNumber},
		"infinite":           {"vllm:num_requests_running{engine=\"0\"} +Inf\n", BadNumber},
		"minus one":          {"vllm:num_requests_running{engine=\"0\"} -1\n", BadNumber},
		"huge":               {"vllm:num_requests_running{engine=\"0\"} 1e300\n", BadNumber},
		"usage in percent":   {"vllm:cache_config_info{engine=\"1\",num_gpu_blocks=\"10\"} 1\nvllm:kv_cache_usage_perc{engine=\"1\"} 55\n", BadNumber},
		"a rank with a zero": {"vllm:num_requests_running{engine=\"01\"} 5\n", BadRank},
		"a rank too high":    {"vllm:num_requests_running{engine=\"65536\"} 5\n", BadRank},
		"a line too long":    {"vllm:num_requests_running{engine=\"0\",x=\"" + strings.Repeat("x", MaxLineBytes) + "\"} 5\n", BadLine},
	} {
		for _, text := range []string{c.line + rank1, rank1 + c.line, rank1 + c.line + rank1} {
			p, err := VLLM(body(text))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if len(p.Refused.List) != 1 || p.Refused.List[0].Reason != c.want {
				t.Errorf("%s: refused %v, want %s", name, p.Refused.List, c.want)
			}
			if last := p.Ranks[len(p.Ranks)-1]; last.Rank != 1 || last.Running != 27 {
				t.Errorf("%s: the good line is lost: %+v", name, p.Ranks)
			}
		}
	}
}

func TestHalfPage(t *testing.T) {
	whole := page(t, "vllm.prom").Body
	cut := bytes.Index(whole, []byte(`vllm:num_requests_running{engine="2"`)) + 20
	p, err := VLLM(Answer{Status: 200, Body: whole[:cut]})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "ranks", p.Advertised, []int{0, 1})
	same(t, "refused", reasons(&p.Refused), []Reason{Truncated})
	p, err = VLLM(Answer{Status: 200, ContentType: "application/openmetrics-text; version=1.0.0", Body: []byte("vllm:num_requests_running{engine=\"0\"} 1\n")})
	if err != nil || !p.Refused.Has(Truncated) {
		t.Errorf("without the end marker: %v, %v", err, p.Refused)
	}
	p, err = VLLM(Answer{Status: 200, ContentType: "application/openmetrics-text; version=1.0.0", Body: []byte("vllm:num_requests_running{engine=\"0\"} 1\n# EOF\n")})
	if err != nil || p.Refused.Count > 0 {
		t.Errorf("with it: %v, %v", err, p.Refused)
	}
}

// Lines with carriage returns, indents and comments are what the format
// allows, or proxies make of it.
func TestLooseLines(t *testing.T) {
	p, err := VLLM(body("\ufeff# a page\r\n\r\n  vllm:num_requests_running { engine = \"3\" , x=\"a\\nb\\\"} c\" , } 4 1759843212000\r\nvllm:num_requests_running_created{engine=\"9\"} 1\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "reports", p.Reports(), []model.RankReport{report(3, func(r *model.RankReport) { r.Running = 4 })})
	if p.Refused.Count > 0 {
		t.Errorf("refused %v", p.Refused.List)
	}
}

func TestInside(t *testing.T) {
	for name, c := range map[string]struct {
		ranks        []int
		start, count int
		numbers      model.RankNumbers
		want         []int // ranks with figures
		advertised   []int
		refused      int
	}{
		"alone":                 {[]int{0, 1}, 0, 2, "", []int{0, 1}, []int{0, 1}, 0},
		"global":                {[]int{2, 3}, 2, 2, "", []int{0, 1}, []int{0, 1}, 0},
		"local":                 {[]int{0, 1}, 2, 2, "", []int{0, 1}, []int{0, 1}, 0},
		"part of global":        {[]int{3}, 2, 2, "", []int{1}, []int{1}, 0},
		"part of local":         {[]int{1}, 2, 2, "", []int{1}, []int{1}, 0},
		"could be both":         {[]int{2, 3}, 2, 4, "", []int{0, 1}, []int{0, 1}, 0},
		"known to be local":     {[]int{2, 3}, 2, 4, model.NumbersLocal, []int{2, 3}, []int{2, 3}, 0},
		"known to be global":    {[]int{0, 1, 2}, 2, 2, model.NumbersGlobal, []int{0}, []int{0}, 2},
		"a port for each rank":  {[]int{5}, 3, 1, "", []int{0}, []int{0}, 0},
		"grown":                 {[]int{0, 1, 2, 3}, 0, 2, "", []int{0, 1}, []int{0, 1, 2, 3}, 2},
		"the number is asked":   {[]int{4, 5, 6}, 4, 0, "", []int{0, 1, 2}, []int{0, 1, 2}, 0},
		"asked, and it's local": {[]int{0, 1}, 4, 0, "", []int{0, 1}, []int{0, 1}, 0},
	} {
		var b strings.Builder
		for _, r := range c.ranks {
			fmt.Fprintf(&b, "vllm:num_requests_running{engine=\"%d\"} %d\n", r, r)
		}
		p, err := VLLM(body(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		p.Inside(c.start, c.count, c.numbers)
		var got []int
		for _, r := range p.Reports() {
			got = append(got, r.Rank)
		}
		same(t, name, got, c.want)
		same(t, name+", advertised", p.Advertised, c.advertised)
		if p.Refused.Count != c.refused {
			t.Errorf("%s: refused %v", name, p.Refused.List)
		}
	}
}

func TestBatchAdvertises(t *testing.T) {
	var e event.Encoder
	payload := e.AppendBatch(nil, 1.5, 3, []event.Event{{
		Kind: event.Stored, BlockTokens: 2, Hashes: make([]event.Hash, 1), Tokens: []uint32{1, 2},
	}})
	a, err := Batch(payload)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "advert", a, Advert{Advertised: []int{3}, BlockTokens: 2})
	_, err = Batch([]byte("{}"))
	refusedAs(t, err, BadBatch)
}

// hostile are inputs of 1 MiB that are as costly as can be.
func hostile() map[string][]byte {
	const size = 1 << 20
	fill := func(s string) []byte { return []byte(strings.Repeat(s, size/len(s))) }
	list := func(s string) []byte { return append(append([]byte("["), fill(s+",")...), "null]"...) }
	labels := "vllm:num_requests_running{engine=\"1\"" + strings.Repeat(",a=\"\"", 3000) + "} 1\n"
	var ranks, workers bytes.Buffer
	for i := 0; ranks.Len() < size; i++ {
		fmt.Fprintf(&ranks, "sglang:num_running_reqs{dp_rank=\"%d\"} 1\n", i)
		fmt.Fprintf(&workers, "dynamo_frontend_worker_active_decode_blocks{worker_id=\"%d\"} 1\n", i)
	}
	return map[string][]byte{
		"short lines":      fill("vllm:num_requests_running 1\n"),
		"labels":           fill(labels),
		"one label often":  fill("vllm:num_requests_running{" + strings.Repeat("engine=\"1\",", 1400) + "} 1\n"),
		"bad lines":        fill("vllm:num_requests_running x\n"),
		"few bad lines":    fill(strings.Repeat("vllm:num_requests_running 1\n", 999) + "vllm:num_requests_running x\n"),
		"one line":         append([]byte("vllm:num_requests_running{engine=\""), fill("x")...),
		"comments":         fill("#\n"),
		"empty lines":      fill("\n"),
		"histograms":       fill("vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.5\"} 1.0\n"),
		"many ranks":       ranks.Bytes(),
		"many workers":     workers.Bytes(),
		"objects":          list("{}"),
		"ranks":            list(`{"dp_rank":1,"attentionDpRank":1,"iter":1}`),
		"nested":           fill("["),
		"nested objects":   fill(`{"loads":`),
		"not numbers":      list("NaN"),
		"loads of nothing": []byte(`{"loads":` + string(list("{}")) + `}`),
		"models":           []byte(`{"data":` + string(list(`{"id":"x"}`)) + `}`),
		"instances":        []byte(`{"status":"healthy","instances":` + string(list(`{"instance_id":7}`)) + `}`),
		"internal states":  []byte(`{"version":"1","internal_states":` + string(list("{}")) + `}`),
	}
}

// The bars of safety item 1: at most 64 MiB of heap and 50 ms a MiB. Memory is
// what is allocated in all, collected or not, an upper bound. Time is checked
// ten times as high, for what grows with the square: a busy machine and the
// race detector must not fail the test. The verbose log has the true figures.
func TestBounds(t *testing.T) {
	for name, input := range hostile() {
		for entry, read := range map[string]func(Answer){
			"vllm":   func(a Answer) { _, _ = VLLM(a) },
			"sglang": func(a Answer) { _, _ = SGLangMetrics(a, 16) },
			"loads":  func(a Answer) { _, _ = SGLangLoads(a, 16) },
			"info":   func(a Answer) { _, _ = SGLangInfo(a) },
			"trt":    func(a Answer) { _, _ = TRTRows(a, 4) },
			"dynamo": func(a Answer) { _, _ = Dynamo(a) },
			"models": func(a Answer) { _, _, _ = Models(a) },
			"health": func(a Answer) { _ = Health(model.EngineDynamo, a) },
		} {
			heap, took := cost(func() { read(Answer{Status: 200, Body: input}) })
			if heap > 16<<20 || took > 20*time.Millisecond {
				t.Logf("%s as %s: %d MiB, %v", name, entry, heap>>20, took)
			}
			if heap > 64<<20 || took > 500*time.Millisecond {
				t.Errorf("%s as %s: %d MiB of heap, %v", name, entry, heap>>20, took)
			}
		}
	}
}

// cost measures what f allocates, and the time of the fastest of three runs, or of
// ten where three are slow: others may have the machine for a while.
func cost(f func()) (heap uint64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took = timed(f)
	runtime.ReadMemStats(&after)
	for run := 1; run < 3 || run < 10 && took > 500*time.Millisecond; run++ {
		took = min(took, timed(f))
	}
	return after.TotalAlloc - before.TotalAlloc, took
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
