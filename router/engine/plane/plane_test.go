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
	if got, want := Subject("n", "c", "generate", TopicKVEvents), "namespace.n.component.c.endpoint.generate.kv-events"; got != want {
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
		if err != nil && err.Error() == "" {
			t.Fatal("refused without words")
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
