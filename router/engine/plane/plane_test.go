package plane

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

const (
	publisher = 18446744073709551613 // above what a float or an int64 holds
	worker1   = 7587889683284143912
	worker2   = 18446744073709551615
)

// obj encodes pairs of key and encoded value as a map.
func obj(pairs ...any) []byte {
	p := msgp.AppendMapHeader(nil, uint32(len(pairs)/2))
	for i := 0; i < len(pairs); i += 2 {
		p = append(msgp.AppendString(p, pairs[i].(string)), enc(pairs[i+1])...)
	}
	return p
}

// raw is a value that is encoded already.
type raw []byte

func enc(v any) []byte {
	switch v := v.(type) {
	case raw:
		return v
	case []byte:
		return msgp.AppendBytes(nil, v)
	case []raw:
		p := msgp.AppendArrayHeader(nil, uint32(len(v)))
		for _, r := range v {
			p = append(p, r...)
		}
		return p
	}
	p, err := msgp.AppendIntf(nil, v)
	if err != nil {
		panic(err)
	}
	return p
}

func envelope(payload []byte) []byte {
	return obj("publisher_id", uint64(publisher), "sequence", uint64(7), "published_at", uint64(1785921323250), "topic", TopicKVEvents, "payload", payload, "new", raw(obj("a", 1)))
}

func frames(topic string, body []byte) [][]byte {
	frame := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(body)))
	return [][]byte{
		[]byte(topic), binary.BigEndian.AppendUint64(nil, publisher), binary.BigEndian.AppendUint64(nil, 7), append(frame, body...),
	}
}

func refusedAs(t *testing.T, name string, err error, want Reason) {
	t.Helper()
	if r, ok := err.(*Refusal); !ok || r.Reason != want || r.Detail == "" {
		t.Errorf("%s: %v (%T), want it refused as %s", name, err, err, want)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	maybe := cmp.Comparer(func(a, b model.Maybe) bool { return a == b || !a.Known() && !b.Known() })
	if d := cmp.Diff(want, got, maybe); d != "" {
		t.Errorf("%s: -want +got\n%s", what, d)
	}
}

func TestEnvelope(t *testing.T) {
	want := Envelope{
		Publisher: publisher, Sequence: 7, PublishedAt: time.UnixMilli(1785921323250).UTC(),
		Topic: TopicKVEvents, Payload: []byte("pay"),
	}
	got, err := ParseNATS(envelope([]byte("pay")))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "NATS", got, want)
	for _, topic := range []string{TopicKVEvents, "", "namespace.ns.component.backend." + TopicKVEvents} {
		if got, err = ParseZMQ(frames(topic, envelope([]byte("pay")))); err != nil {
			t.Fatal(err)
		}
		same(t, "ZMQ", got, want)
	}
}

func TestBadEnvelopes(t *testing.T) {
	good := frames(TopicKVEvents, envelope([]byte("pay")))
	with := func(i int, f []byte) [][]byte {
		c := append([][]byte(nil), good...)
		c[i] = f
		return c
	}
	body := good[3]
	other := append([]byte{2}, body[1:]...)
	for name, c := range map[string]struct {
		frames [][]byte
		want   Reason
	}{
		"an engine's own publisher": {[][]byte{nil, make([]byte, 8), []byte("x")}, BadFrames},
		"none":                      {nil, BadFrames},
		"short publisher":           {with(1, make([]byte, 4)), BadFrames},
		"no header":                 {with(3, []byte{1, 0}), BadLength},
		"version":                   {with(3, other), BadVersion},
		"cut":                       {with(3, body[:len(body)-1]), BadLength},
		"longer":                    {with(3, append(body[:len(body):len(body)], 0)), BadLength},
		"another publisher":         {with(1, make([]byte, 8)), Mismatch},
		"another sequence":          {with(2, make([]byte, 8)), Mismatch},
		"another topic":             {with(0, []byte("kv_metrics")), Mismatch},
	} {
		_, err := ParseZMQ(c.frames)
		refusedAs(t, name, err, c.want)
	}
	deep := append([]byte(strings.Repeat("\x91", 1<<20)), 0)
	for name, c := range map[string]struct {
		data []byte
		want Reason
	}{
		"empty":         {nil, BadMsgpack},
		"JSON":          {[]byte(`{"publisher_id":1}`), BadMsgpack},
		"an array":      {enc([]any{1, 2}), BadMsgpack},
		"more after it": {append(envelope(nil), 0), BadMsgpack},
		"no payload":    {obj("publisher_id", 1, "sequence", 1, "topic", "x"), BadField},
		"id negative":   {obj("publisher_id", -1), BadField},
		"id a float":    {obj("publisher_id", 1.5), BadField},
		"topic long":    {obj("topic", strings.Repeat("x", MaxTopicBytes+1)), BadField},
		"payload text":  {obj("payload", "text"), BadField},
		"nested":        {obj("x", raw(deep)), BadMsgpack},
		"many fields":   {append([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, 0xa1), BadMsgpack},
		"too long":      {make([]byte, MaxMessageBytes+1), BadLength},
	} {
		_, err := ParseNATS(c.data)
		refusedAs(t, name, err, c.want)
	}
}

func TestSubject(t *testing.T) {
	if got, want := Subject("prod eu", "back.end", "", TopicKVEvents), "namespace.prod%20eu.component.back%2Eend.kv-events"; got != want {
		t.Errorf("got %s", got)
	}
	if got, want := Subject("n", "c", "generate", TopicActiveLoad), "namespace.n.component.c.endpoint.generate.kv_metrics"; got != want {
		t.Errorf("got %s", got)
	}
}

func routerEvent(worker uint64, rank any, id int) raw {
	e := []any{"event_id", id, "data", raw(obj("removed", raw(obj("block_hashes", []any{uint64(worker2)}))))}
	if rank != nil {
		e = append(e, "dp_rank", rank)
	}
	return obj("worker_id", worker, "storage_tier", "device", "event", raw(obj(e...)))
}

func TestKVEvents(t *testing.T) {
	a, b, c := routerEvent(worker1, 1, 1), routerEvent(worker2, nil, 1), routerEvent(worker1, 0, 2)
	all, err := KVEvents(enc([]raw{a, b, c}))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "two workers", all, []Events{
		{Worker: worker1, Count: 2, Ranks: []int{0, 1}, Payload: enc([]raw{a, c})},
		{Worker: worker2, Count: 1, Ranks: []int{0}, Payload: enc([]raw{b})},
	})
	list := enc([]raw{a, c})
	if all, err = KVEvents(list); err != nil || len(all) != 1 || &all[0].Payload[0] != &list[0] {
		t.Errorf("one worker's list is not handed on as it is: %v, %v", all, err)
	}
	if all, err = KVEvents(a); err != nil || len(all) != 1 || string(all[0].Payload) != string(enc([]raw{a})) {
		t.Errorf("a single event: %v, %v", all, err)
	}
	if all, err = KVEvents(enc([]raw{})); err != nil || len(all) != 0 {
		t.Errorf("no events: %v, %v", all, err)
	}
	for name, c := range map[string]struct {
		payload []byte
		want    Reason
	}{
		"no worker":      {enc([]raw{obj("event", raw(obj()))}), BadField},
		"text":           {enc("x"), BadMsgpack},
		"an engine's":    {enc([]any{1.5, []any{}}), BadMsgpack},
		"cut":            {list[:len(list)-1], BadMsgpack},
		"longer":         {append(list[:len(list):len(list)], 0), BadMsgpack},
		"a rank too big": {enc([]raw{routerEvent(1, 70000, 1)}), BadField},
		"too many":       {[]byte{0xdd, 0, 2, 0, 0}, BadLength},
	} {
		_, err := KVEvents(c.payload)
		refusedAs(t, name, err, c.want)
	}
}

func TestActiveLoad(t *testing.T) {
	for name, c := range map[string]struct {
		payload []byte
		want    Load
	}{
		"a worker's": {
			obj("worker_id", uint64(worker2), "dp_rank", 3, "active_decode_blocks", nil, "active_prefill_tokens", nil, "kv_used_blocks", 40, "waiting_requests", 2),
			Load{Worker: worker2, Rank: 3, Measured: true, Report: model.RankReport{Rank: 3, KVUsedBlocks: 40, Waiting: 2}},
		},
		"a router's": {
			obj("worker_id", uint64(worker1), "active_decode_blocks", 12, "active_prefill_tokens", 4096, "scheduler_load_scope", "local"),
			Load{Worker: worker1, Scope: "local", Report: model.RankReport{KVUsedBlocks: 12, PendingTokens: 4096}},
		},
		"both": {
			obj("worker_id", 1, "active_decode_blocks", 12, "kv_used_blocks", 13, "scheduler_load_scope", nil),
			Load{Worker: 1, Measured: true, Report: model.RankReport{KVUsedBlocks: 13}},
		},
	} {
		got, err := ActiveLoad(c.payload)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// What the table leaves at 0 is unknown.
		for _, m := range []*model.Maybe{&c.want.Report.Running, &c.want.Report.Waiting, &c.want.Report.Tokens, &c.want.Report.PendingTokens, &c.want.Report.KVTotalBlocks, &c.want.Report.CacheHit} {
			if *m == 0 {
				*m = model.Unknown()
			}
		}
		same(t, name, got, c.want)
	}
	for name, c := range map[string]struct {
		payload []byte
		want    Reason
	}{
		"nobody's": {obj("dp_rank", 1), BadField},
		"negative": {obj("worker_id", 1, "kv_used_blocks", -1), BadField},
		"text":     {obj("worker_id", 1, "kv_used_blocks", "x"), BadField},
		"a list":   {enc([]any{1}), BadMsgpack},
	} {
		_, err := ActiveLoad(c.payload)
		refusedAs(t, name, err, c.want)
	}
}

func pass(worker any, scheduled, queued string) []byte {
	return obj("version", 1, "worker_id", worker, "dp_rank", 2, "counter_id", uint64(9), "wall_time", 0.0125,
		scheduled, raw(obj("num_prefill_requests", 1, "sum_prefill_tokens", 512, "var_prefill_length", 0.5, "sum_prefill_kv_tokens", 64, "num_decode_requests", 7, "sum_decode_kv_tokens", 9000, "var_decode_kv_tokens", 1.5)),
		queued, raw(obj("num_prefill_requests", 2, "sum_prefill_tokens", 1000, "num_decode_requests", 1, "sum_decode_kv_tokens", 300)))
}

func TestForwardPass(t *testing.T) {
	for _, names := range [][2]string{{"scheduled_requests", "queued_requests"}, {"scheduled", "queued"}} {
		p, err := ForwardPass(pass("18446744073709551615", names[0], names[1]))
		if err != nil {
			t.Fatal(err)
		}
		if p.Worker != worker2 || !p.Named || p.Rank != 2 || p.Counter != 9 || p.Wall != 12500*time.Microsecond || p.Idle() {
			t.Errorf("%+v", p)
		}
		u := model.Unknown()
		same(t, "report", p.Report(true), model.RankReport{
			Rank: 2, Running: 8, Waiting: 3, Tokens: 512 + 64 + 9000 + 1000 + 300, PendingTokens: 1512,
			KVUsedBlocks: u, KVTotalBlocks: u, CacheHit: u,
		})
		same(t, "report of one queue for all", p.Report(false), model.RankReport{
			Rank: 2, Running: 8, Waiting: u, Tokens: 512 + 64 + 9000, PendingTokens: 512,
			KVUsedBlocks: u, KVTotalBlocks: u, CacheHit: u,
		})
	}
	p, err := ForwardPass(pass("worker-0", "scheduled_requests", "queued_requests"))
	if err != nil || p.Named {
		t.Errorf("a worker with a name: %+v, %v", p, err)
	}
	p, err = ForwardPass(obj("worker_id", uint64(worker1), "wall_time", 0, "scheduled_requests", raw(obj())))
	if err != nil || !p.Idle() || p.Report(true).Running != 0 || p.Worker != worker1 {
		t.Errorf("a sign of life: %+v, %v", p, err)
	}
	for name, c := range map[string]struct {
		payload []byte
		want    Reason
	}{
		"version 2":     {obj("version", 2, "scheduled_requests", 7), BadVersion},
		"not scheduled": {obj("version", 1), BadField},
		"negative":      {obj("scheduled_requests", raw(obj("num_prefill_requests", -1))), BadField},
		"a day":         {obj("wall_time", 1e9, "scheduled_requests", raw(obj())), BadField},
		"a list":        {enc([]any{1, "w", 0}), BadMsgpack},
		"JSON":          {[]byte(`{"version":1}`), BadMsgpack},
	} {
		_, err := ForwardPass(c.payload)
		refusedAs(t, name, err, c.want)
	}
}

// What is handed on is what the router's decoder of Dynamo's events can read
// once it reads msgpack; an engine's own batch must not be mistaken for it.
func TestAnEnginesBatchIsNone(t *testing.T) {
	var e event.Encoder
	_, err := KVEvents(e.AppendBatch(nil, 1, 0, []event.Event{{Kind: event.Cleared}}))
	refusedAs(t, "batch", err, BadMsgpack)
}

func FuzzParse(f *testing.F) {
	for _, s := range [][]byte{
		envelope(enc([]raw{routerEvent(worker1, 1, 1), routerEvent(worker2, nil, 1)})), enc([]raw{routerEvent(1, 0, 1)}),
		obj("worker_id", 1, "kv_used_blocks", 13, "scheduler_load_scope", nil), pass("1", "scheduled_requests", "queued_requests"),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := ParseNATS(data); err == nil {
			if _, err := ParseZMQ([][]byte{nil, binary.BigEndian.AppendUint64(nil, e.Publisher), binary.BigEndian.AppendUint64(nil, e.Sequence), append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(data))), data...)}); err != nil {
				t.Fatalf("good as NATS, not as ZMQ: %v", err)
			}
		}
		all, err := KVEvents(data)
		for _, e := range all {
			again, err := KVEvents(e.Payload)
			if err != nil || len(again) != 1 || again[0].Count != e.Count || again[0].Worker != e.Worker {
				t.Fatalf("%+v became %+v, %v", e, again, err)
			}
		}
		l, err2 := ActiveLoad(data)
		p, err3 := ForwardPass(data)
		for _, err := range []error{err, err2, err3} {
			if err != nil && err.Error() == "" {
				t.Fatal("refused without words")
			}
		}
		if l.Report.Waiting < 0 || p.Report(true).Running < 0 {
			t.Fatalf("%+v, %+v", l, p)
		}
	})
}

func BenchmarkKVEvents(b *testing.B) {
	var list []raw
	for i := range 128 {
		list = append(list, routerEvent(worker1, i%8, i))
	}
	payload := enc(list)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := KVEvents(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForwardPass(b *testing.B) {
	payload := pass("18446744073709551615", "scheduled_requests", "queued_requests")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ForwardPass(payload); err != nil {
			b.Fatal(err)
		}
	}
}
