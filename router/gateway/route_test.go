package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

// place asks /v1/route.
func (g *rig) place(t testing.TB, ask string) (routeAnswer, int) {
	t.Helper()
	resp, body := g.post(t, "/v1/route", ask)
	var a routeAnswer
	if resp.StatusCode == 200 {
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	return a, resp.StatusCode
}

// end ends a placement and wants that status.
func (g *rig) end(t testing.TB, id, query string, status int) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, g.server.URL+"/v1/route/"+id+query, nil)
	resp, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != status {
		t.Errorf("DELETE of placement %s%s: %d, want %d", id, query, resp.StatusCode, status)
	}
}

func TestRoute(t *testing.T) {
	g := newRig(t, rigOptions{workers: 2, ranks: 2})
	a, status := g.place(t, `{"model":"m","conversation":" c ","tenant":"t","token_ids":[1,2,3,4,5,6,7,8,9],"priority":3,"expected_output":100}`)
	if status != 200 || a.Rank == nil || a.URL != g.engines.servers[a.Worker].URL || a.Headers["X-Data-Parallel-Rank"] != fmt.Sprint(*a.Rank) ||
		len(a.Strip) == 0 || a.Channel != "header" || a.PromptTokens != 9 || a.MatchedTokens != 0 || a.Decision == 0 || a.ExpiresSecs != 600 {
		t.Fatalf("%d %+v", status, a)
	}
	c := conv(t, g, model.ConvKey{Tenant: "t", Model: "m", ID: "c"})
	if c.Open != 1 || c.Last.Worker != a.Worker {
		t.Errorf("%+v", c)
	}
	if resp, body := g.post(t, "/v1/route/"+a.ID+"/first_token", fmt.Sprintf(`{"rank":%d,"cached_tokens":0,"ttft_ms":12.5}`, *a.Rank)); resp.StatusCode != 204 {
		t.Errorf("first token: %d %s", resp.StatusCode, body)
	}
	g.post(t, "/v1/route/"+a.ID+"/first_token", ``)
	if c = conv(t, g, c.Key); c.Honoured != 1 {
		t.Errorf("%+v", c)
	}
	g.end(t, a.ID, "?outcome=never", 400)
	g.end(t, a.ID, "", 204)
	g.end(t, a.ID, "", 404)
	g.end(t, "x", "", 404)
	if resp, body := g.post(t, "/v1/route/"+a.ID+"/first_token", `{}`); resp.StatusCode != 404 || !strings.Contains(body, "ask /v1/route") {
		t.Errorf("after its end: %d %s", resp.StatusCode, body)
	}
	// The same prompt again, by text and by hashes: the rank is taken to hold it.
	b, _ := g.place(t, `{"model":"m","token_ids":[1,2,3,4,5,6,7,8,9]}`)
	if b.Worker != a.Worker || *b.Rank != *a.Rank || b.MatchedTokens != 8 {
		t.Errorf("the second one went to %s/%d with %d tokens, the first to %s/%d", b.Worker, *b.Rank, b.MatchedTokens, a.Worker, *a.Rank)
	}
	g.end(t, b.ID, "?outcome=cancelled", 204)
	p, _ := g.place(t, `{"prompt":"a text of a few words, twice"}`)
	if p.PromptTokens != 7 {
		t.Errorf("%+v", p)
	}
	g.end(t, p.ID, "", 204)
	e, _ := g.place(t, `{"worker":"w1","rank":1,"route":"completions","prompt_tokens":77}`)
	if e.Worker != "w1" || *e.Rank != 1 || e.PromptTokens != 77 {
		t.Errorf("%+v", e)
	}
	g.end(t, e.ID, "", 204)
	h, status := g.place(t, `{"block_hashes":[18446744073709551615,5]}`)
	if status != 200 || h.PromptTokens != 8 {
		t.Errorf("%d %+v", status, h)
	}
	g.end(t, h.ID, "", 204)
	if g.inFlight() != 0 || g.router.Strays() != 0 {
		t.Errorf("%d on the books, %d strays", g.inFlight(), g.router.Strays())
	}
}

// TestPlacementsTellNoSecretAndHaveNone wants the engine's key kept from who asks
// for placements, and nobody able to guess another one's.
func TestPlacementsTellNoSecretAndHaveNone(t *testing.T) {
	g := newRig(t, rigOptions{})
	g.engines.key = "engines-secret"
	resp, body := g.post(t, "/v1/route", `{}`)
	if resp.StatusCode != 200 || strings.Contains(body, g.engines.key) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	a, _ := g.place(t, `{}`)
	for i := range 1000 {
		g.end(t, fmt.Sprint(i), "", 404)
	}
	g.end(t, a.ID, "", 204)
}

func TestRouteRefusals(t *testing.T) {
	g := newRig(t, rigOptions{})
	for name, tt := range map[string]struct {
		ask    string
		status int
		word   string
	}{
		"unknown field":  {`{"modle":"m"}`, 400, "modle"},
		"two documents":  {`{} {}`, 400, "after its end"},
		"two prompts":    {`{"prompt":"x","token_ids":[1]}`, 400, "one of"},
		"rank alone":     {`{"rank":1}`, 400, "name it in worker"},
		"negative rank":  {`{"worker":"w0","rank":-5}`, 400, "count from 0"},
		"no such rank":   {`{"worker":"w0","rank":9}`, 400, "has ranks 0 to 1"},
		"no such worker": {`{"worker":"w9"}`, 400, "choose one of"},
		"route":          {`{"route":"x"}`, 400, "give chat"},
		"long id":        {`{"conversation":"` + strings.Repeat("x", 300) + `"}`, 400, "300 bytes"},
		"too many":       {`{"block_hashes":[1,2,3],"prompt_tokens":4}`, 400, "full blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := g.post(t, "/v1/route", tt.ask)
			if resp.StatusCode != tt.status || !strings.Contains(body, tt.word) {
				t.Errorf("%d %s, want %d with %q", resp.StatusCode, body, tt.status, tt.word)
			}
		})
	}
	if g.inFlight() != 0 {
		t.Error("refused placements are on the books")
	}
}

func TestAbandonedPlacementsExpire(t *testing.T) {
	g := newRig(t, rigOptions{spec: model.GatewaySpec{RequestTimeoutSecs: 60}})
	a, _ := g.place(t, `{}`)
	b, _ := g.place(t, `{}`)
	g.clock.ahead.Add(int64(50 * time.Second))
	g.post(t, "/v1/route/"+b.ID+"/first_token", ``)
	g.clock.ahead.Add(int64(20 * time.Second))
	g.Tick()
	if n := g.inFlight(); n != 1 {
		t.Errorf("%d are on the books, want the one that was heard of", n)
	}
	g.end(t, a.ID, "", 404)
	g.end(t, b.ID, "", 204)
	if !strings.Contains(g.get(t, "/metrics"), "adpdeck_gateway_abandoned_total 1") {
		t.Error("not counted as abandoned")
	}
}

func TestQuery(t *testing.T) {
	g := newRig(t, rigOptions{workers: 2, ranks: 2})
	a, _ := g.place(t, `{"model":"m","token_ids":[1,2,3,4,5,6,7,8,9]}`)
	g.end(t, a.ID, "", 204)
	ids := make([]string, 0, 2)
	for _, l := range g.prompts.ReadRaw(model.ConvKey{}, []uint32{1, 2, 3, 4, 5, 6, 7, 8}, "", "", "").Locals {
		ids = append(ids, fmt.Sprint(int64(l))) // as a client with signed numbers
	}
	for path, ask := range map[string]string{
		"/query":         `{"model_name":"m","token_ids":[1,2,3,4,5,6,7,8,99],"routing_group":"default"}`,
		"/query_by_hash": `{"model_name":"m","block_hashes":[` + strings.Join(ids, ",") + `]}`,
	} {
		resp, body := g.post(t, path, ask)
		var got queryAnswer
		if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s: %v", path, resp.StatusCode, body, err)
		}
		in := got.Instances[a.Worker]
		if in == nil || in.LongestMatched != 8 || in.GPU != 8 || in.CPU != 8 || in.Disk != 8 || in.DP[fmt.Sprint(*a.Rank)] != 8 || !in.Approximate ||
			got.Scores[a.Worker][fmt.Sprint(*a.Rank)] != 8 || got.Scores[a.Worker][fmt.Sprint(1-*a.Rank)] != 0 || len(got.Scores) != 2 {
			t.Errorf("%s: %s", path, body)
		}
	}
	for _, tt := range [][2]string{
		{"/query", `{}`},
		{"/query_by_hash", `{"token_ids":[1]}`},
		{"/query_by_hash", `{"block_hashes":[1],"cache_salt":"s"}`},
		{"/query_by_hash", `{"block_hashes":[1.5]}`},
		{"/query_by_hash", `{"block_hashes":[18446744073709551616]}`},
	} {
		if resp, body := g.post(t, tt[0], tt[1]); resp.StatusCode != 400 || !strings.Contains(body, "error") {
			t.Errorf("%s %s: %d %s", tt[0], tt[1], resp.StatusCode, body)
		}
	}
	if resp, body := g.post(t, "/query", `{"token_ids":[]}`); resp.StatusCode != 200 || !strings.Contains(body, `"scores":{}`) {
		t.Errorf("no tokens: %d %s", resp.StatusCode, body)
	}
	if g.inFlight() != 0 {
		t.Error("a look-up is on the books")
	}
}
