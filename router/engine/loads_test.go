package engine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/plane"
	"adpdeck/router/model"
)

func active(worker uint64, rank, blocks int) []byte {
	p := msgp.AppendMapHeader(nil, 3)
	p = msgp.AppendUint64(msgp.AppendString(p, "worker_id"), worker)
	p = msgp.AppendInt(msgp.AppendString(p, "dp_rank"), rank)
	return msgp.AppendInt(msgp.AppendString(p, "kv_used_blocks"), blocks)
}

func kvMetrics(worker uint64, rank, blocks int, stamp time.Time) *plane.Envelope {
	return &plane.Envelope{Publisher: worker, Topic: plane.TopicActiveLoad, PublishedAt: stamp, Payload: active(worker, rank, blocks)}
}

// TestLateNewsIsOld: a message that was long under way is of the time at which it
// was sent, whatever the publisher's clock shows.
func TestLateNewsIsOld(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 8, 6, 9, 0, 0, 0, time.UTC)
	for _, wrong := range []time.Duration{0, time.Hour, -time.Hour} {
		var p published
		stamp := now.Add(wrong)
		p.message(kvMetrics(7, 0, 10, stamp), now)
		// Sent half a second later, and two seconds under way.
		p.message(kvMetrics(7, 0, 20, stamp.Add(500*time.Millisecond)), now.Add(2500*time.Millisecond))
		rows, at, _, why := p.snapshot(7, now.Add(2500*time.Millisecond))
		if len(rows) != 1 || rows[0].KVUsedBlocks != 20 || !at.Equal(now.Add(500*time.Millisecond)) || why != "" {
			t.Errorf("clock wrong by %v: %+v at %v, %q", wrong, rows, at, why)
		}
		// What was sent before that never takes its place.
		p.message(kvMetrics(7, 0, 99, stamp.Add(400*time.Millisecond)), now.Add(2600*time.Millisecond))
		if rows, _, _, _ := p.snapshot(7, now.Add(2600*time.Millisecond)); rows[0].KVUsedBlocks != 20 {
			t.Errorf("clock wrong by %v: %+v", wrong, rows)
		}
	}
}

// TestPublishersClockIsSetBack: the publisher is heard again after a while.
func TestPublishersClockIsSetBack(t *testing.T) {
	t.Parallel()
	var p published
	now := time.Date(2026, 8, 6, 9, 0, 0, 0, time.UTC)
	p.message(kvMetrics(7, 0, 1, now), now)
	heard := time.Duration(0)
	for s := time.Second; s < 3*skewWindow && heard == 0; s += time.Second {
		p.message(kvMetrics(7, 0, 2, now.Add(s-time.Hour)), now.Add(s))
		if rows, _, _, _ := p.snapshot(7, now.Add(s)); len(rows) == 1 && rows[0].KVUsedBlocks == 2 {
			heard = s
		}
	}
	if heard == 0 || heard > 2*skewWindow+2*time.Second {
		t.Errorf("heard again after %v", heard)
	}
}

// TestWhatIsNotPublishedIsUnknown, be it a rank, a figure or all of them.
func TestWhatIsNotPublishedIsUnknown(t *testing.T) {
	t.Parallel()
	var p published
	now := time.Date(2026, 8, 6, 9, 0, 0, 0, time.UTC)
	if _, _, _, why := p.snapshot(7, now); why != "no loads have been published" {
		t.Error(why)
	}
	p.message(kvMetrics(7, 0, 10, now), now)
	p.message(kvMetrics(7, 1, 11, now), now)
	p.message(kvMetrics(8, 0, 12, now), now)
	rows, _, source, _ := p.snapshot(7, now)
	if len(rows) != 2 || rows[1].Rank != 1 || rows[1].KVUsedBlocks != 11 || rows[1].Running.Known() || rows[1].PendingTokens.Known() || source != "published: kv blocks" {
		t.Errorf("%+v from %q", rows, source)
	}
	if _, _, _, why := p.snapshot(0, now); why != "2 workers publish their loads there; name each as a worker with its instance id" {
		t.Error(why)
	}
	if _, _, _, why := p.snapshot(9, now); why != "no loads of instance 9 are published there" {
		t.Error(why)
	}
	later := now.Add(2 * time.Second)
	p.message(kvMetrics(7, 1, 13, later), later)
	if rows, at, _, _ := p.snapshot(7, now.Add(3*time.Second)); len(rows) != 1 || rows[0].Rank != 1 || !at.Equal(later) {
		t.Errorf("a silent rank: %+v at %v", rows, at)
	}
	if rows, _, _, why := p.snapshot(7, now.Add(10*time.Second)); len(rows) != 0 || why != "no loads have been published for 8s" {
		t.Errorf("%+v, %q", rows, why)
	}
}

// TestPublishedLoadsAreBounded in workers, ranks and publishers.
func TestPublishedLoadsAreBounded(t *testing.T) {
	t.Parallel()
	var p published
	now := time.Date(2026, 8, 6, 9, 0, 0, 0, time.UTC)
	for i := range 5000 {
		p.message(kvMetrics(uint64(i+1), 0, 1, now), now)
		p.message(kvMetrics(1, i, 1, now), now)
	}
	if len(p.workers) != maxLoadWorkers || len(p.workers["1"]) != MaxRanks || len(p.clocks) > maxLoadClocks {
		t.Errorf("%d workers, %d ranks, %d clocks", len(p.workers), len(p.workers["1"]), len(p.clocks))
	}
	if words := p.trouble(now); !strings.HasPrefix(words, "more than ") {
		t.Error(words)
	}
}

const instance = 1<<63 + 7

// TestLoadsOfDynamosPlane hears them of one worker of two over ZMQ, sees its
// silence, and says what is wrong with bad ones.
func TestLoadsOfDynamosPlane(t *testing.T) {
	t.Parallel()
	e, err := enginetest.New(enginetest.Config{
		Kind: model.EngineDynamo, Ranks: 2, Workers: 2, InstanceBase: instance, Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0", Loads: "tcp://127.0.0.1:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, f := serve(t, e, []string{"127.0.0.1:0"}, model.EngineSpec{ID: "w", Kind: model.EngineDynamo, InstanceID: instance + 1, Ranks: 2}, func(s *model.EngineSpec) {
		s.URL = e.URL(model.NoRank)
		s.Events = model.EventSource{Endpoint: e.EventEndpoint(1), Loads: []string{e.LoadEndpoint(1)}}
	})
	loadsOfThePlane(t, e, s, f)
}

// TestLoadsOfDynamosPlaneOverNATS is the same by a NATS server.
func TestLoadsOfDynamosPlaneOverNATS(t *testing.T) {
	t.Parallel()
	srv := natsServer(t, server.RANDOM_PORT)
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	pub, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	subject := func(topic string) string { return plane.Subject("ns", "backend", "generate", topic) }
	e, err := enginetest.New(enginetest.Config{
		Kind: model.EngineDynamo, Ranks: 2, Workers: 2, InstanceBase: instance,
		Events: enginetest.EventsConfig{OnLoad: func(b enginetest.Batch) { _ = pub.Publish(subject(b.Topic), b.Payload) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, f := serve(t, e, []string{"127.0.0.1:0"}, model.EngineSpec{ID: "w", Kind: model.EngineDynamo, InstanceID: instance + 1, Ranks: 2}, func(s *model.EngineSpec) {
		s.URL = e.URL(model.NoRank)
		s.Events = model.EventSource{Transport: "nats", Endpoint: srv.ClientURL(), Loads: []string{subject(plane.TopicActiveLoad), subject(plane.TopicForwardPass)}}
	})
	loadsOfThePlane(t, e, s, f)
}

func loadsOfThePlane(t *testing.T, e *enginetest.Engine, s *sink, f *Fleet) {
	t.Helper()
	known := func() bool {
		l := s.loads["w"]
		return len(l) == 2 && l[0].Running.Known() && l[1].Running.Known() && strings.HasPrefix(s.sources["w"], "published: steps") && s.blind["w"] == ""
	}
	s.await(t, "heartbeats", 15*time.Second, known)
	late := time.After(15 * time.Second)
	for i := 0; !get(s, func() bool { l := s.loads["w"]; return len(l) == 2 && l[1].KVUsedBlocks.Known() }); i++ {
		send(t, f, model.Target{Worker: "w", Rank: 1}, long(i))
		select {
		case <-s.told:
		case <-late:
			t.Fatalf("its blocks are not heard of: %+v", get(s, func() []model.RankReport { return s.loads["w"] }))
		}
	}
	set := func(change func(h *enginetest.Habits)) {
		t.Helper()
		if err := e.Set(change); err != nil {
			t.Fatal(err)
		}
	}
	set(func(h *enginetest.Habits) { h.LoadsRank0Only = true })
	s.await(t, "a silent rank is unknown", 15*time.Second, func() bool { l := s.loads["w"]; return len(l) == 1 && l[0].Rank == 0 })
	set(func(h *enginetest.Habits) { h.LoadsRank0Only, h.LoadsSilent = false, true })
	s.await(t, "silence", 15*time.Second, func() bool { return strings.HasPrefix(s.blind["w"], "no loads have been published for ") })
	for bad, words := range map[string]string{
		"version": "forward pass metrics of version 2; 1 is known", "text": "a number from 0 up was expected, not str",
		"cut": "cut short", "negative": "a number from 0 up was expected",
	} {
		set(func(h *enginetest.Habits) { h.LoadsSilent, h.LoadsBad = false, bad })
		s.await(t, bad, 15*time.Second, func() bool { return strings.Contains(s.findings[FindingLoads+" w/-"].Message, words) })
	}
	set(func(h *enginetest.Habits) { h.LoadsBad = "named" })
	s.await(t, "of nobody that is known", 15*time.Second, func() bool {
		return s.blind["w"] == "no loads of instance "+strconv.FormatUint(instance+1, 10)+" are published there"
	})
	set(func(h *enginetest.Habits) { h.LoadsBad = "" })
	s.await(t, "all is well again", 15*time.Second, func() bool { _, bad := s.findings[FindingLoads+" w/-"]; return !bad && known() })
}

// TestForwardPassesOfVLLM stand beside what its metrics say: ports count up from
// the one that is named.
func TestForwardPassesOfVLLM(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 2)
	e, err := enginetest.New(enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Events: enginetest.EventsConfig{Loads: fmt.Sprintf("tcp://127.0.0.1:%d", port)}})
	if err != nil {
		t.Fatal(err)
	}
	s, f := serve(t, e, []string{"127.0.0.1:0"}, model.EngineSpec{ID: "w", Kind: model.EngineVLLM}, func(s *model.EngineSpec) {
		s.URL = e.URL(model.NoRank)
		s.Events.Loads = []string{e.LoadEndpoint(0)}
	})
	s.await(t, "both ranks' steps", 15*time.Second, func() bool {
		l := s.loads["w"]
		return len(l) == 2 && s.sources["w"] == "published: steps" && l[0].Tokens.Known() && l[1].Tokens.Known() && l[1].KVUsedBlocks.Known()
	})
	send(t, f, model.Target{Worker: "w", Rank: 1}, long(1))
	if err := e.Set(func(h *enginetest.Habits) { h.LoadsSilent = true }); err != nil {
		t.Fatal(err)
	}
	s.await(t, "the page alone", 15*time.Second, func() bool { return len(s.loads["w"]) == 2 && s.sources["w"] == "" && !s.loads["w"][0].Tokens.Known() })
}

func TestPlacesOfLoadsAreChecked(t *testing.T) {
	t.Parallel()
	dynamo := func(e model.EventSource) model.EngineSpec {
		return model.EngineSpec{ID: "d", Kind: model.EngineDynamo, URL: "http://f:1", Ranks: 2, Events: e}
	}
	vllm := func(e model.EventSource) model.EngineSpec {
		return model.EngineSpec{ID: "v", Kind: model.EngineVLLM, URL: "http://f:1", Ranks: 2, Events: e}
	}
	for name, c := range map[string]struct {
		w     model.EngineSpec
		words string // empty: accepted
	}{
		"zmq":          {dynamo(model.EventSource{Loads: []string{"tcp://a:1", "tcp://a:2"}}), ""},
		"nats":         {dynamo(model.EventSource{Transport: "nats", Endpoint: "nats://n:4222", Loads: []string{"a.kv_metrics"}}), ""},
		"beside":       {dynamo(model.EventSource{Endpoint: "nats://n:4222", Topic: "a.kv-events", Loads: []string{"a.kv_metrics"}}), ""},
		"vllm":         {vllm(model.EventSource{Loads: []string{"tcp://a:1"}}), ""},
		"vllm by rank": {vllm(model.EventSource{Endpoint: "tcp://a:7", Loads: []string{"tcp://a:1", "tcp://b:1"}}), ""},
		"vllm binds":   {vllm(model.EventSource{Bind: "tcp://*:7", Loads: []string{"tcp://a:1"}}), ""},
		"count":        {vllm(model.EventSource{Loads: []string{"tcp://a:1", "tcp://b:1", "tcp://c:1"}}), "2 ranks and 3 places of loads"},
		"overflow":     {vllm(model.EventSource{Loads: []string{"tcp://a:65535"}}), "counts up to port 65536"},
		"listens":      {vllm(model.EventSource{Loads: []string{"tcp://*:20380"}}), "name the engine's host"},
		"subject":      {dynamo(model.EventSource{Transport: "nats", Endpoint: "nats://n:4222", Loads: []string{"a b"}}), `the subject of loads "a b" is none`},
		"twice":        {dynamo(model.EventSource{Loads: []string{"tcp://a:1", "tcp://a:1"}}), "twice"},
		"sglang":       {model.EngineSpec{ID: "s", Kind: model.EngineSGLang, URL: "http://f:1", Events: model.EventSource{Loads: []string{"tcp://a:1"}}}, "leave loads out"},
		"none":         {dynamo(model.EventSource{Transport: "none", Loads: []string{"tcp://a:1"}}), "not to be read"},
	} {
		if err := Check([]model.EngineSpec{c.w}); (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
