package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adpdeck/feed"
	"adpdeck/feed/feedtest"
	"adpdeck/router/model"
	"adpdeck/router/settings"
)

// ctl runs adpdeck ctl against the deck's feed.
func (d *deck) ctl(args ...string) (out, errOut string, code int) {
	d.t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), append([]string{"ctl", "--feed", d.addr}, args...), strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func (d *deck) ctlOK(args ...string) string {
	d.t.Helper()
	out, errOut, code := d.ctl(args...)
	if code != 0 {
		d.t.Fatalf("ctl %v: %s", args, errOut)
	}
	return out
}

func TestCtlSetsAndUndoes(t *testing.T) {
	d := newDeck(t, "kv_aware", &chats{convs: 4, turns: 4})
	beta := model.FieldLoadBalanceWeight
	if got := d.ctlOK("set", beta+"=2.5", "weight:w0/1=0.5", "--reason", "hot", "--actor", "ann"); !strings.HasPrefix(got, "v2 ") {
		t.Errorf("set said %q", got)
	}
	if got := d.ctlOK("get", beta); got != "2.5\n" {
		t.Errorf("get %s said %q", beta, got)
	}
	if got := d.ctlOK("get", "weight:w0/1", "-o", "json"); got != "{\"weight:w0/1\":\"0.5\"}\n" {
		t.Errorf("get weight said %q", got)
	}
	if got := d.ctlOK("get", "history"); !strings.Contains(got, "ann") || !strings.Contains(got, "hot") {
		t.Errorf("history:\n%s", got)
	}
	doc, err := settings.Parse("export", []byte(d.ctlOK("export")))
	if err != nil {
		t.Fatal(err)
	}
	if s := doc.Settings(); s.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight != 2.5 || s.WeightOf(model.Target{Worker: "w0", Rank: 1}) != 0.5 {
		t.Error("the export lacks what was set")
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	before := "# ours\nattention_dp_config:\n  enable_kv_cache_aware_routing: true  # as the engine has it\n  kv_cache_routing_load_balance_weight: 1.0 # tuned in May\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	after := strings.Replace(before, "1.0 #", "2.5 #", 1)
	if got := d.ctlOK("export", file); !strings.HasPrefix(got, after) || !strings.Contains(got, "w0/1: 0.5") {
		t.Errorf("export into a file printed:\n%s", got)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != before {
		t.Errorf("export wrote into the file: %s, %v", got, err)
	}
	d.ctlOK("undo", "v2")
	if got := d.ctlOK("get", beta); got != "1\n" {
		t.Errorf("after undo %q", got)
	}
}

func TestCtlConversations(t *testing.T) {
	d := newDeck(t, "kv_aware", &chats{convs: 4, turns: 6})
	d.advance(1500 * time.Millisecond)
	d.see("the conversations", func(v *feed.View) bool { return len(v.State.Convs) == 4 })
	d.ctlOK("pin", "c1", "c2", "w1/3", "--reason", "quiet rank")
	var convs []model.Conv
	if err := json.Unmarshal([]byte(d.ctlOK("get", "convs", "-o", "json")), &convs); err != nil {
		t.Fatal(err)
	}
	pinned := 0
	for _, c := range convs {
		if c.Pin == model.PinOperator && c.Bound == (model.Target{Worker: "w1", Rank: 3}) {
			pinned++
		}
	}
	if pinned != 2 {
		t.Errorf("%d conversations are pinned, want 2", pinned)
	}
	d.ctlOK("unpin", "c1")
	d.ctlOK("migrate", "c2", "auto")
	d.ctlOK("evict", "c2", "--tenant", "t")
	d.ctlOK("drain", "w0/2")
	d.ctlOK("ready", "w0/2")
}

// TestCtlSaysWhenAWorkerIsDrained, and that an empty list is [].
func TestCtlSaysWhenAWorkerIsDrained(t *testing.T) {
	d := newDeck(t, "kv_aware", &chats{convs: 2, turns: 2})
	if got := d.ctlOK("get", "findings", "-o", "json"); got != "[]\n" {
		t.Errorf("no findings are %q", got)
	}
	if got := d.ctlOK("get", "workers"); !strings.Contains(got, "  ready  ") {
		t.Errorf("workers:\n%s", got)
	}
	d.ctlOK("drain", "w1/0")
	if got := d.ctlOK("get", "workers"); !strings.Contains(got, "  drain 1/4  ") {
		t.Errorf("with one rank drained:\n%s", got)
	}
	d.ctlOK("drain", "w1")
	if got := d.ctlOK("get", "workers"); !strings.Contains(got, "  drained  ") {
		t.Errorf("with nothing open:\n%s", got)
	}
	if got := d.ctlOK("get", "ranks"); strings.Count(got, "  drained  ") != 4 {
		t.Errorf("ranks:\n%s", got)
	}
}

// TestWhatIsLeftOnAWorker counts what is held to a worker and to none of its ranks.
func TestWhatIsLeftOnAWorker(t *testing.T) {
	at := func(rank, open int, a model.Availability) model.Rank {
		return model.Rank{Target: model.Target{Worker: "t0", Rank: rank}, Availability: a, InFlight: open}
	}
	trt := model.Worker{ID: "t0", Steering: model.SteerConversation, Bound: 2}
	for want, s := range map[string]model.State{
		"ready":                 {Ranks: []model.Rank{at(0, 0, model.Ready)}},
		"drain 1/2":             {Ranks: []model.Rank{at(0, 0, model.Draining), at(1, 0, model.Ready)}},
		"drain: 3 open, 0 pins": {Ranks: []model.Rank{at(0, 3, model.Draining)}},
		"drain: 0 open, 2 pins": {Ranks: []model.Rank{at(0, 0, model.Draining)}, Workers: []model.Worker{trt}},
		"down":                  {Ranks: []model.Rank{at(0, 0, model.Ready)}, Workers: []model.Worker{{ID: "t0", Liveness: model.LiveDown}}},
		"drained":               {Ranks: []model.Rank{at(0, 0, model.Draining)}},
	} {
		if got := takes(&s, "t0"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCtlRefusals(t *testing.T) {
	d := newDeck(t, "kv_aware", &chats{convs: 2, turns: 2})
	d.advance(time.Second)
	for _, c := range []struct{ args, want string }{
		{"pin", "want at least one conversation"},
		{"pin c0 w9/0", "no such rank"},
		{"pin c0 nowhere", "want WORKER/RANK"},
		{"pin nobody w0/1 --tenant t", "no such conversation"},
		{"drain", "want one rank"},
		{"undo x", "no version"},
		{"reload", "was not started from a settings file"},
		{"set", "want NAME=VALUE"},
		{"set policy=fast", "policy"},
		{"set router_mode=kv --expect 7", "v7 is not current"},
		{"get nonsense", "or a settings field"},
		{"get ranks -o xml", "want text or json"},
		{"frobnicate", "no such verb"},
	} {
		out, errOut, code := d.ctl(strings.Fields(c.args)...)
		if code != 1 || !strings.Contains(errOut, c.want) || out != "" {
			t.Errorf("ctl %s: exit %d, %q, %q\nwant %q", c.args, code, out, errOut, c.want)
		}
	}
	if out, _, code := d.ctl("pin", "nobody", "w0/1", "-o", "json"); code != 1 || !strings.Contains(out, `"accepted":false`) {
		t.Errorf("a refusal as JSON: exit %d, %s", code, out)
	}
	var o, e bytes.Buffer
	if code := run(context.Background(), []string{"ctl", "--feed", "127.0.0.1:1", "get", "ranks"}, nil, &o, &e); code != 1 || !strings.Contains(e.String(), "--feed") {
		t.Errorf("no feed there: exit %d, %s", code, e.String())
	}
}

// TestCtlNotesAnotherVersion: what an older server does not send is unknown where
// that can be, and said to be nothing to rely on where it cannot.
func TestCtlNotesAnotherVersion(t *testing.T) {
	if otherVersion(version()) != "" {
		t.Error("the same version is another one")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	old := []byte(`{"kind":"snapshot","epoch":"e","seq":1,"part":1,"state":{"version":1,"totals":{},"workers":[{"id":"w"}],"ranks":[{"target":{"worker":"w","rank":0}}]}}`)
	s := feedtest.Serve(ln, feedtest.Send(feedtest.Hello("e"), old), feedtest.Deaf())
	defer s.Close()
	var out, told bytes.Buffer
	if code := run(t.Context(), []string{"ctl", "--feed", ln.Addr().String(), "get", "ranks", "-o", "json"}, strings.NewReader(""), &out, &told); code != 0 {
		t.Fatal(told.String())
	}
	if !strings.Contains(told.String(), `the server is adpdeck "scripted"`) || !strings.Contains(out.String(), `"hit":null`) {
		t.Errorf("%s\n%s", told.String(), out.String())
	}
}
