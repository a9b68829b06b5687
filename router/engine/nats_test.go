package engine

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/plane"
	"adpdeck/router/model"
)

func natsServer(t *testing.T, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(5 * time.Second) {
		t.Fatal("the nats server does not start")
	}
	return s
}

// TestDynamosPlaneOverNATS hears a worker's events, not another's, and hears them
// again after the server has begun anew.
func TestDynamosPlaneOverNATS(t *testing.T) {
	t.Parallel()
	srv := natsServer(t, server.RANDOM_PORT)
	addr := srv.ClientURL()
	port := srv.Addr().(*net.TCPAddr).Port
	subject := plane.Subject("ns", "backend", "", plane.TopicKVEvents)
	out := make(chan enginetest.Batch, 64)
	e, err := enginetest.New(enginetest.Config{
		Kind: model.EngineDynamo, Ranks: 2, Workers: 2, InstanceBase: 1<<63 + 7,
		Events: enginetest.EventsConfig{OnBatch: func(b enginetest.Batch) { out <- b }},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, f := serve(t, e, []string{"127.0.0.1:0"}, model.EngineSpec{
		ID: "w", Kind: model.EngineDynamo, InstanceID: 1<<63 + 8, Ranks: 2, Events: model.EventSource{Endpoint: addr, Topic: subject},
	}, func(s *model.EngineSpec) { s.URL = e.URL(model.NoRank) })
	s.await(t, "joined", 10*time.Second, func() bool { return s.live["w/0"] })
	heard := func(from *server.Server) {
		t.Helper()
		pub, err := nats.Connect(from.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		defer pub.Close()
		before := get(s, func() int { return len(s.events) })
		send(t, f, model.Target{Worker: "w", Rank: 1}, long(before))
		b := <-out
		if b.Publisher != 1 {
			t.Fatalf("published by worker %d", b.Publisher)
		}
		again := time.NewTicker(50 * time.Millisecond) // the subscription may not be there yet
		defer again.Stop()
		late := time.After(10 * time.Second)
		for !get(s, func() bool { return len(s.events) > before && strings.HasPrefix(s.events[before], "w plane ") }) {
			if err := pub.Publish(subject, b.Payload); err != nil {
				t.Fatal(err)
			}
			select {
			case <-again.C:
			case <-late:
				t.Fatal("no event was heard")
			}
		}
	}
	heard(srv)
	srv.Shutdown()
	srv.WaitForShutdown()
	s.await(t, "a finding", 15*time.Second, func() bool {
		return strings.HasPrefix(s.findings[FindingEvents+" w/-"].Message, "no kv events from "+addr)
	})
	again := natsServer(t, port)
	defer func() { again.Shutdown(); again.WaitForShutdown() }()
	s.await(t, "no finding", 15*time.Second, func() bool { _, there := s.findings[FindingEvents+" w/-"]; return !there })
	heard(again)
}
