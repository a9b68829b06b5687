package engine

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/engine/plane"
	"adpdeck/router/model"
)

// guarded is a NATS server with two users, of whom reader may hear ns.> alone.
func guarded(t *testing.T, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true, Users: []*server.User{
		{Username: "all", Password: "a"},
		{Username: "reader", Password: "r", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"ns.>"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(5 * time.Second) {
		t.Fatal("the nats server does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// TestWhatNATSRefusesIsSaid: a wrong password, a subject that is not allowed, and
// one that carries something else each are a finding with the cause, and no
// secret in it.
func TestWhatNATSRefusesIsSaid(t *testing.T) {
	t.Parallel()
	srv := guarded(t, server.RANDOM_PORT)
	at := func(user string) string {
		return fmt.Sprintf("nats://%s@127.0.0.1:%d", user, srv.Addr().(*net.TCPAddr).Port)
	}
	spec := func(id string, instance uint64, endpoint, topic string) model.EngineSpec {
		return model.EngineSpec{ID: id, Kind: model.EngineDynamo, URL: healthy(t), InstanceID: instance, Ranks: 1, Events: model.EventSource{Endpoint: endpoint, Topic: topic}}
	}
	s, _ := run(t,
		spec("password", 1, at("all:hunter2"), "ns.kv-events"),
		spec("subject", 2, at("reader:r"), "other.kv-events"),
		spec("strange", 3, at("reader:r"), "ns.logs"),
		spec("good", 4, at("reader:r"), "ns.kv-events"),
	)
	pub, err := nats.Connect(at("all:a"))
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	found := func(w string) string { return s.findings[FindingEvents+" "+w+"/-"].Message }
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for w, words := range map[string]string{
		"password": "refuses the name and password",
		"subject":  "does not let this user hear the subject",
		"strange":  "what comes there is not the event plane's: a map was expected",
	} {
		for !get(s, func() bool { return strings.Contains(found(w), words) }) {
			_ = pub.Publish("ns.logs", []byte("2026-08-06 all is well"))
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%s: no finding %q: %v", w, words, get(s, func() map[string]model.Finding { return s.findings }))
			}
		}
		if all := get(s, func() string { return found(w) }); strings.Contains(all, "hunter2") || strings.Contains(all, "reader:") {
			t.Errorf("a secret is shown: %s", all)
		}
	}
	if words := get(s, func() string { return found("good") }); words != "" {
		t.Errorf("found %q", words)
	}
}

// TestPasswordBecomesRight: a listener whose password was refused goes on trying.
func TestPasswordBecomesRight(t *testing.T) {
	t.Parallel()
	srv := guarded(t, server.RANDOM_PORT)
	port := srv.Addr().(*net.TCPAddr).Port
	s, _ := run(t, model.EngineSpec{ID: "w", Kind: model.EngineDynamo, URL: healthy(t), Ranks: 1, Events: model.EventSource{
		Endpoint: fmt.Sprintf("nats://late:l@127.0.0.1:%d", port), Topic: "ns.kv-events",
	}})
	s.await(t, "a refusal", 20*time.Second, func() bool {
		return strings.Contains(s.findings[FindingEvents+" w/-"].Message, "refuses the name and password")
	})
	srv.Shutdown()
	srv.WaitForShutdown()
	again := natsServer(t, port) // lets everybody in
	defer func() { again.Shutdown(); again.WaitForShutdown() }()
	s.await(t, "heard", 20*time.Second, func() bool { _, bad := s.findings[FindingEvents+" w/-"]; return !bad })
}

// TestSlowListenerOfNATS: what cannot be taken in time is bounded and said; what
// comes after is taken again.
func TestSlowListenerOfNATS(t *testing.T) {
	t.Parallel()
	srv := natsServer(t, server.RANDOM_PORT)
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	f, err := New([]model.EngineSpec{{ID: "w", Kind: model.EngineDynamo, URL: "http://127.0.0.1:1", Ranks: 1}}, newSink(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.worker("w")
	if err != nil {
		t.Fatal(err)
	}
	gate, began := make(chan struct{}), make(chan struct{}, 1)
	var taken atomic.Int64
	l := &natsListener{w: w, server: srv.ClientURL(), subject: "ns.kv-events", take: func(*plane.Envelope) {
		nudge(began)
		<-gate
		taken.Add(1)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.run(ctx) }()
	defer func() { cancel(); <-done }()
	pub, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	message := envelopeOf("kv-events", []byte{0x90})
	waitFor(t, "a first message", func() bool {
		_ = pub.Publish("ns.kv-events", message)
		select {
		case <-began:
			return true
		default:
			return false
		}
	})
	waitFor(t, "some are lost", func() bool {
		for range natsMessages / 2 {
			_ = pub.Publish("ns.kv-events", message)
		}
		_ = pub.Flush()
		return strings.Contains(l.trouble(), "faster than they are taken")
	})
	close(gate)
	before := taken.Load()
	waitFor(t, "it goes on", func() bool {
		_ = pub.Publish("ns.kv-events", message)
		return taken.Load() > before+natsMessages/2
	})
	if n := taken.Load(); n > 3*natsMessages {
		t.Errorf("%d were waiting, over the bound of %d", n, natsMessages)
	}
}

func envelopeOf(topic string, payload []byte) []byte {
	e := msgp.AppendMapHeader(nil, 4)
	e = msgp.AppendUint64(msgp.AppendString(e, "publisher_id"), 1)
	e = msgp.AppendUint64(msgp.AppendString(e, "sequence"), 1)
	e = msgp.AppendString(msgp.AppendString(e, "topic"), topic)
	return msgp.AppendBytes(msgp.AppendString(e, "payload"), payload)
}

// waitFor tries again and again, in real time.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
