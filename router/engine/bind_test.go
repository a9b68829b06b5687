package engine

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

// freePorts finds n free ports in a row.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		var open []net.Listener
		first := 0
		for i := range n {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
			if err != nil {
				break
			}
			if open = append(open, l); i == 0 {
				first = l.Addr().(*net.TCPAddr).Port
			}
			first++
		}
		for _, l := range open {
			l.Close()
		}
		if len(open) == n {
			return first - n
		}
	}
	t.Fatal("no free ports in a row")
	return 0
}

func ranked(rank int) []byte {
	var e event.Encoder
	return e.AppendBatch(nil, 1, rank, []event.Event{{Kind: event.Cleared, Group: event.NoGroup, Rank: event.NoRank}})
}

// healthy is the address of a server that is alive and says nothing more.
func healthy(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"healthy","endpoints":["dyn://a"],"instances":[{"component":"backend","instance_id":1},{"instance_id":2},{"instance_id":3},{"instance_id":4}]}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// hears publishes until the sink has a line.
func (s *sink) hears(t *testing.T, line string, publish func()) {
	t.Helper()
	late := time.After(10 * time.Second)
	for !get(s, func() bool { return strings.Contains(strings.Join(s.events, "\n"), line) }) {
		publish()
		select {
		case <-s.told:
		case <-time.After(20 * time.Millisecond):
		case <-late:
			t.Fatalf("%q was not heard: %v", line, get(s, func() []string { return s.events }))
		}
	}
}

// TestEnginesWhosePublishersConnect has a fake vLLM connect to where the router
// listens, with its replay, over a restart of the engine.
func TestEnginesWhosePublishersConnect(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 2)
	e, err := enginetest.New(enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Events: enginetest.EventsConfig{
		Endpoint: fmt.Sprintf("tcp://127.0.0.1:%d", port), Connect: true, Replay: "tcp://127.0.0.1:0", Topic: "kv@pod",
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, f := serve(t, e, []string{"127.0.0.1:0"}, model.EngineSpec{ID: "w", Kind: model.EngineVLLM, Ranks: 2}, func(s *model.EngineSpec) {
		s.URL = e.URL(model.NoRank)
		s.Events = model.EventSource{Bind: fmt.Sprintf("tcp://127.0.0.1:%d", port), Topic: "kv@", RankReplays: []string{e.ReplayEndpoint(0), e.ReplayEndpoint(1)}}
	})
	s.await(t, "joined", 10*time.Second, func() bool { return s.live["w/1"] })
	if w := get(s, func() model.WorkerSpec { return s.joined["w"] }); !w.KVEvents || !w.KVReplay {
		t.Errorf("%+v", w)
	}
	n := 0
	for r := range 2 {
		s.hears(t, fmt.Sprintf("w/%d conn ", r), func() { n++; send(t, f, model.Target{Worker: "w", Rank: r}, long(n)) })
	}
	s.gaps <- model.Gap{Target: model.Target{Worker: "w", Rank: 1}, From: 0}
	s.await(t, "replayed", 10*time.Second, func() bool {
		all := strings.Join(s.events, "\n")
		return strings.Contains(all, "w/1 replay 0: ") && strings.Contains(all, "w/1 done: <nil>")
	})
	if err := e.Restart(model.NoRank); err != nil {
		t.Fatal(err)
	}
	before := get(s, func() int { return len(s.events) })
	late := time.After(10 * time.Second)
	for !get(s, func() bool { return strings.Contains(strings.Join(s.events[before:], "\n"), " seq 0: ") }) {
		n++
		send(t, f, model.Target{Worker: "w", Rank: 1}, long(n))
		select {
		case <-s.told:
		case <-late:
			t.Fatal("the new process was not heard from its first batch on")
		}
	}
}

// TestWorkersShareASocket: two engines of one rank each connect to one port, as
// the pods of one deployment do, and their topics tell them apart.
func TestWorkersShareASocket(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 1)
	at := fmt.Sprintf("tcp://127.0.0.1:%d", port)
	spec := func(id, topic string, p int) model.EngineSpec {
		return model.EngineSpec{ID: id, Kind: model.EngineVLLM, URL: fmt.Sprintf("http://127.0.0.1:%d", p), Ranks: 1, Events: model.EventSource{Bind: at, Topic: topic}}
	}
	s, f := run(t, spec("a", "kv@a@", 1), spec("b", "kv@b@", 2))
	pubs := map[string]*zmq.Publisher{}
	for _, topic := range []string{"kv@a@m", "kv@b@m", "kv@c@m"} {
		p, err := zmq.Listen(zmq.Options{Endpoint: at, Connect: true, Topic: topic})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		pubs[topic] = p
	}
	s.hears(t, "a/0 conn ", func() { pubs["kv@c@m"].Publish(ranked(0)); pubs["kv@a@m"].Publish(ranked(0)) })
	s.hears(t, "b/0 conn ", func() { pubs["kv@b@m"].Publish([]byte{0xc0}) })
	for _, line := range get(s, func() []string { return s.events }) {
		if !strings.HasPrefix(line, "a/0 ") && !strings.HasPrefix(line, "b/0 ") {
			t.Errorf("heard %s", line)
		}
	}
	// One of the two goes; the other is heard on.
	if err := f.Set([]model.EngineSpec{spec("b", "kv@b@", 2)}); err != nil {
		t.Fatal(err)
	}
	before := get(s, func() int { return len(s.events) })
	s.await(t, "b is heard on", 10*time.Second, func() bool {
		pubs["kv@b@m"].Publish(ranked(0))
		pubs["kv@a@m"].Publish(ranked(0))
		return len(s.events) > before
	})
	for _, line := range get(s, func() []string { return s.events[before:] }) {
		if !strings.HasPrefix(line, "b/0 ") {
			t.Errorf("heard %s", line)
		}
	}
}

// TestRankOfABatchWins: a publisher that is heard by another rank's socket is of
// the rank that its batches name; a rank that is not there is a finding, and so
// are two publishers of one rank.
func TestRankOfABatchWins(t *testing.T) {
	t.Parallel()
	port := freePorts(t, 2)
	at := fmt.Sprintf("tcp://127.0.0.1:%d", port)
	s, _ := run(t, model.EngineSpec{ID: "w", Kind: model.EngineVLLM, URL: healthy(t), Ranks: 2, Events: model.EventSource{Bind: at}})
	old, err := zmq.Listen(zmq.Options{Endpoint: at, Connect: true})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	s.hears(t, "w/1 conn ", func() { old.Publish(ranked(1)) })
	s.hears(t, "w/0 conn ", func() { old.Publish(ranked(0)) })
	heard := func(words string, publish func()) {
		t.Helper()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		late := time.After(15 * time.Second)
		for !get(s, func() bool {
			for _, r := range []string{"0", "1"} {
				if strings.Contains(s.findings[FindingEvents+" w/"+r].Message, words) {
					return true
				}
			}
			return false
		}) {
			publish()
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("no finding %q: %v", words, get(s, func() map[string]model.Finding { return s.findings }))
			}
		}
	}
	heard("a batch names rank 7, which is none of this worker's", func() { old.Publish(ranked(7)) })
	young, err := zmq.Listen(zmq.Options{Endpoint: at, Connect: true})
	if err != nil {
		t.Fatal(err)
	}
	defer young.Close()
	heard("two publishers say that they are rank 0", func() { young.Publish(ranked(0)); old.Publish(ranked(0)) })
}

// TestNobodyConnects and a port that is taken are findings with the cause.
func TestNobodyConnects(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := freePorts(t, 1)
	s, _ := run(t,
		model.EngineSpec{ID: "a", Kind: model.EngineVLLM, URL: healthy(t), Ranks: 1, Events: model.EventSource{Bind: fmt.Sprintf("tcp://127.0.0.1:%d", port)}},
		model.EngineSpec{ID: "b", Kind: model.EngineVLLM, URL: healthy(t), Ranks: 1, Events: model.EventSource{Bind: "tcp://" + l.Addr().String()}},
	)
	for w, words := range map[string]string{"a": "no publisher has connected", "b": "this router cannot listen there: "} {
		s.await(t, w+": "+words, 15*time.Second, func() bool { return strings.Contains(s.findings[FindingEvents+" "+w+"/0"].Message, words) })
	}
	if err := get(s, func() string { return s.findings[FindingEvents+" b/0"].Message }); !strings.Contains(err, "address already in use") {
		t.Error(err)
	}
}

func TestBindsAreChecked(t *testing.T) {
	t.Parallel()
	vllm := func(id, url string, e model.EventSource) model.EngineSpec {
		return model.EngineSpec{ID: id, Kind: model.EngineVLLM, URL: url, Ranks: 2, Events: e}
	}
	for name, c := range map[string]struct {
		workers []model.EngineSpec
		words   string // empty: accepted
	}{
		"plain":           {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://*:5557", Replay: "tcp://a:5757"})}, ""},
		"topics":          {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://*:5557", Topic: "kv@a@"}), vllm("b", "http://b:1", model.EventSource{Bind: "tcp://0.0.0.0:5557", Topic: "kv@b@"})}, ""},
		"other ports":     {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://*:5557"}), vllm("b", "http://b:1", model.EventSource{Bind: "tcp://*:5559"})}, ""},
		"same topic":      {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://*:5557"}), vllm("b", "http://b:1", model.EventSource{Bind: "tcp://*:5558", Topic: "kv@b@"})}, "do not tell them apart"},
		"beginning":       {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://*:5557", Topic: "kv@p1"}), vllm("b", "http://b:1", model.EventSource{Bind: "tcp://*:5557", Topic: "kv@p10"})}, "not the beginning of another"},
		"both":            {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://*:5557", Endpoint: "tcp://a:1"})}, "an endpoint to dial and one to listen at"},
		"a name":          {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://a:5557"})}, "no tcp address to listen at"},
		"ipc":             {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "ipc:///tmp/x"})}, "no tcp address to listen at"},
		"port 0":          {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://*:0"})}, "from 1 to 65535"},
		"overflow":        {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Bind: "tcp://*:65535"})}, "counts up to port 65536"},
		"another's":       {[]model.EngineSpec{{ID: "a", Kind: model.EngineTRTLLM, URL: "http://a:1", Events: model.EventSource{Bind: "tcp://*:5557"}}}, "never connect, they bind"},
		"nats":            {[]model.EngineSpec{{ID: "a", Kind: model.EngineDynamo, URL: "http://a:1", Events: model.EventSource{Transport: "nats", Endpoint: "nats://a", Topic: "t", Bind: "tcp://*:5557"}}}, "set its endpoint only"},
		"and not to read": {[]model.EngineSpec{vllm("a", "http://a:1", model.EventSource{Transport: "none", Bind: "tcp://*:5557"})}, "not to be read"},
	} {
		if err := Check(c.workers); (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Check(c.workers); err != nil && strings.Contains(err.Error(), "listen at  ") {
			t.Errorf("%s: what is no place is shared: %v", name, err)
		}
	}
}
