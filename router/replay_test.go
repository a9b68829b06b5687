package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"

	"github.com/tinylib/msgp/msgp"
)

func replaying(c *Config) {
	for i := range c.Workers {
		c.Workers[i].KVReplay = true
	}
}

// publisher keeps what a rank has published, as a replay endpoint does.
type publisher struct{ batches [][]byte }

// TestReplayRepairs: at random losses the router asks from the first batch that
// is missing on, and after the answer it knows what the rank holds; nothing is
// wiped, and nothing is asked twice.
func TestReplayRepairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, replaying)
	e := newEngine(b, 0)
	pubs := map[model.Target]*publisher{at("w0", 0): {}, at("w0", 1): {}}
	e.wire = func(target model.Target, seq uint64, payload []byte) {
		p := pubs[target]
		p.batches = append(p.batches, append([]byte(nil), payload...))
		if rng.IntN(5) > 0 {
			b.Events(target.Worker, target.Rank, seq, payload)
		}
	}
	asked := 0
	answer := func() {
		for {
			select {
			case g := <-b.Gaps():
				asked++
				p := pubs[g.Target]
				if asked%4 == 0 { // the answer breaks off
					b.ReplayDone(g.Target.Worker, g.Target.Rank, errors.New("connection reset"))
					continue
				}
				for seq := g.From; seq < uint64(len(p.batches)); seq++ {
					b.Replayed(g.Target.Worker, g.Target.Rank, seq, p.batches[seq])
				}
				b.ReplayDone(g.Target.Worker, g.Target.Rank, nil)
			default:
				return
			}
		}
	}
	for i := range uint32(400) {
		e.serve(at("w0", int(i%2)), prompt(1, 2+i%7, 100+i))
		b.clock.advance(50 * time.Millisecond)
		answer()
		b.Snapshot() // lets time pass
	}
	for range 40 { // the last ones may have been lost: time, and one more that is not
		b.clock.advance(time.Second)
		b.Snapshot()
		answer()
	}
	e.wire = func(target model.Target, seq uint64, payload []byte) {
		pubs[target].batches = append(pubs[target].batches, append([]byte(nil), payload...))
		b.Events(target.Worker, target.Rank, seq, payload)
	}
	for k := range 2 {
		e.serve(at("w0", k), prompt(9999))
	}
	for range 40 {
		answer()
		b.clock.advance(time.Second)
		b.Snapshot()
	}
	for k := range 2 {
		row, held := indexOf(t, b, at("w0", k)), 0
		for _, h := range e.ranks[at("w0", k)].holds {
			if h {
				held++
			}
		}
		if row.Device != held || row.Feed != model.FeedLive || row.Restarts != 0 || row.Gaps == 0 {
			t.Fatalf("holds %d: %+v", held, row)
		}
	}
	if asked == 0 {
		t.Fatal("nothing was asked for")
	}
}

// TestReplayThatFails shows why, and nobody waits for a reader of Gaps.
func TestReplayThatFails(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault, withBlocks, replaying)
	e := newEngine(b, 0)
	c := e.ranks[at("w0", 0)]
	for range 3 {
		e.serve(at("w0", 0), prompt(1, uint32(c.seq)+5))
		c.seq++ // one is lost each time
	}
	g := <-b.Gaps()
	if g.Target != at("w0", 0) || g.From != 1 {
		t.Fatalf("%+v", g)
	}
	b.ReplayDone("w0", 0, errors.New("no route to host"))
	if w := b.Snapshot().Workers[0]; w.Feeds[2].State != model.FeedGap || w.Feeds[2].Why != "replay: no route to host" {
		t.Fatalf("%+v", w.Feeds)
	}
	b.ReplayDone("w9", 0, nil)
	b.Replayed("w9", 0, 1, nil)
}

// packed writes JSON as msgpack with named fields.
func packed(t *testing.T, text string) []byte {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var put func(p []byte, v any) []byte
	put = func(p []byte, v any) []byte {
		switch v := v.(type) {
		case json.Number:
			n, err := strconv.ParseUint(v.String(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return msgp.AppendUint64(p, n)
		case string:
			return msgp.AppendString(p, v)
		case []any:
			p = msgp.AppendArrayHeader(p, uint32(len(v)))
			for _, x := range v {
				p = put(p, x)
			}
			return p
		case map[string]any:
			p = msgp.AppendMapHeader(p, uint32(len(v)))
			for k, x := range v {
				p = put(msgp.AppendString(p, k), x)
			}
			return p
		}
		return msgp.AppendNil(p)
	}
	return put(nil, v)
}

// TestEventsAsJSON: TensorRT-LLM's drained lists, in which all ranks come
// together, and Dynamo's events as JSON and as msgpack, by global rank.
func TestEventsAsJSON(t *testing.T) {
	tokens := prompt(1, 2)
	locals := localsOf(tokens)
	trt := func(id, rank int, hash uint64, parent string, from int) string {
		var words []string
		for _, tok := range tokens[from*blockTokens : (from+1)*blockTokens] {
			words = append(words, fmt.Sprintf(`{"token_id":%d}`, tok))
		}
		return fmt.Sprintf(`{"event_id":%d,"window_size":4096,"attention_dp_rank":%d,"data":{"type":"stored","parent_hash":%s,"blocks":[{"block_hash":%d,"tokens":[%s],"cache_level":0}]}}`,
			id, rank, parent, hash, strings.Join(words, ","))
	}
	dynamo := func(id, rank int) string {
		return fmt.Sprintf(`{"worker_id":18446744073709551615,"event":{"event_id":%d,"dp_rank":%d,"data":{"stored":{"parent_hash":null,"blocks":[{"block_hash":11,"tokens_hash":%d},{"block_hash":12,"tokens_hash":%d}]}}}}`,
			id, rank, locals[0], locals[1])
	}
	b := newBench(t, 0, 0, model.PolicyDefault, room(8))
	b.join(t, spec("w0", 2, func(s *model.WorkerSpec) { s.StartRank = 2 }))
	held := func(want ...int) {
		t.Helper()
		for k, n := range want {
			if row := indexOf(t, b, at("w0", k)); row.Device != n {
				t.Fatalf("rank %d holds %d blocks, want %d: %+v", k, row.Device, n, row)
			}
		}
	}
	b.EventsJSON("w0", []byte("["+trt(0, 3, 5, "null", 0)+","+trt(0, 2, 5, "null", 0)+","+trt(1, 3, 6, "5", 1)+"]"))
	held(1, 2)
	b.EventsJSON("w0", []byte("["+trt(9, 7, 5, "null", 0)+"]"))
	if row := indexOf(t, b, at("w0", 0)); !strings.Contains(row.LastError, "ranks that w0 does not have") {
		t.Fatalf("%+v", row)
	}
	b.RouterEvents("w0", []byte("["+dynamo(0, 2)+"]"), true) // another format: what was known goes
	held(2, 2)
	msg := packed(t, dynamo(0, 3))
	b.RouterEvents("w0", msg, false)
	held(2, 2)
	for _, bad := range [][]byte{nil, []byte("{"), []byte("\x81"), msg[:len(msg)/2]} {
		b.RouterEvents("w0", bad, false)
		b.EventsJSON("w0", bad)
	}
	b.EventsJSON("w9", nil)
	m := b.Matches(&model.Request{PromptTokens: len(tokens) + 3, Locals: locals, BlockTokens: blockTokens})
	if len(m) != 2 || m[0].Device != 32 || m[1].Device != 32 || m[0].Approximate {
		t.Fatalf("%+v", m)
	}
}

// TestMatches: what Route would see, without a trace.
func TestMatches(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV), func(c *Config) { c.Workers[1].KVEvents = false })
	e := newEngine(b, 0)
	tokens := prompt(1, 2, 3)
	e.serve(at("w0", 1), tokens)
	id, _ := b.routed(t, "", of(tokens[:32]), asks(at("w1", 0)))
	b.Done(id, model.OutcomeOK)
	q := &model.Request{PromptTokens: len(tokens), Locals: localsOf(tokens)}
	before := b.Snapshot()
	got := b.Matches(q)
	want := []model.TargetMatch{
		{Target: at("w0", 0)},
		{Target: at("w0", 1), Device: 48},
		{Target: at("w1", 0), Device: 32, Approximate: true},
		{Target: at("w1", 1), Approximate: true},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%+v", got)
	}
	if after := b.Snapshot(); after.Totals.Open != 0 || after.Totals.Decisions != before.Totals.Decisions {
		t.Fatalf("%+v", after.Totals)
	}
	q.Guessed = true // hashes of text match what was routed as text alone
	for _, m := range b.Matches(q) {
		if m.Device != 0 && m.Target.Worker == "w0" || !m.Approximate {
			t.Fatalf("%+v", m)
		}
	}
	if b.Matches(&model.Request{ID: -1, Locals: q.Locals}) != nil || b.Matches(&model.Request{PromptTokens: 5}) != nil {
		t.Fatal("an answer where none can be")
	}
}

// TestTextIsGuessed: requests whose hashes are of text find each other on ranks
// with events too, and never what engines tell.
func TestTextIsGuessed(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV, fieldValue(noAffinity, "none")))
	text := func(q *model.Request) { of(prompt(1, 2, 3, 4))(q); q.Guessed = true }
	first, _ := b.routed(t, "", text) // from here on text is remembered
	b.Done(first, model.OutcomeOK)
	second, home := b.routed(t, "", text)
	b.Done(second, model.OutcomeOK)
	for range 5 {
		id, got := b.routed(t, "", text)
		if got != home {
			t.Fatalf("went to %v, the text is at %v", got, home)
		}
		b.FirstToken(id, model.Usage{Ran: got, CachedTokens: 64})
		b.Done(id, model.OutcomeOK)
	}
	if d := b.lastDecision(t); d.Reachable != 64 {
		t.Fatalf("%+v", d)
	}
	id, _ := b.routed(t, "", of(prompt(1, 2, 3, 4)))
	if d := b.lastDecision(t); d.Reachable != 0 {
		t.Fatalf("tokens match text: %+v", d)
	}
	b.Done(id, model.OutcomeOK)
	if row := indexOf(t, b, home); row.Agreed.Known() || row.Feed == model.FeedApproximate {
		t.Fatalf("%+v", row)
	}
}
