package main

import (
	"strings"
	"testing"

	"adpdeck/router/model"

	"pgregory.net/rapid"
)

// TestCtlOffersWhatWasMeant: not all names in one long line.
func TestCtlOffersWhatWasMeant(t *testing.T) {
	d := newDeck(t, "kv_aware", &chats{convs: 1, turns: 1})
	for args, want := range map[string]string{
		"set kv_cache_routing_load_balance_wieght=2": "did you mean " + model.FieldLoadBalanceWeight + "? " + listFields,
		"set wieght:w0/1=2":                          "did you mean weight? ",
		"set router-mod=kv":                          "did you mean router_mode? ",
		"set batching_wait=2":                        "did you mean ",
		"set qqqqqq=1":                               "no such field; " + listFields,
		"get router_mod":                             "did you mean router_mode? ",
		"get worker":                                 "did you mean workers",
	} {
		_, told, code := d.ctl(strings.Fields(args)...)
		if code == 0 || !strings.Contains(told, want) || len(told) > 400 {
			t.Errorf("%s: %q, want %q", args, told, want)
		}
	}
	out, _, _ := d.ctl("set", "policie=x", "-o", "json")
	if !strings.Contains(out, `did you mean policy? `) {
		t.Errorf("as JSON: %s", out)
	}
}

func TestDistanceIsAMetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("abc_")), 0, 12, -1)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if distance(a, a) != 0 || distance(a, b) != distance(b, a) || distance(a, c) > distance(a, b)+distance(b, c) || a != b && distance(a, b) == 0 {
			t.Fatalf("%q %q %q", a, b, c)
		}
		if n := distance(a, b); n < len(a)-len(b) || n > max(len(a), len(b)) {
			t.Fatalf("%q %q: %d", a, b, n)
		}
	})
}

// TestCtlSaysWhyAWorkerIsDown: /health does not, since anybody may read it.
func TestCtlSaysWhyAWorkerIsDown(t *testing.T) {
	var out strings.Builder
	printWorkers(&out, &model.State{Workers: []model.Worker{{ID: "w", Liveness: model.LiveDown, LivenessWhy: "host engine-7.corp is not known"}, {ID: "v"}}})
	if got := out.String(); !strings.Contains(got, "engine-7.corp") || !strings.HasSuffix(got, "\t-\n") {
		t.Error(got)
	}
}

// TestCtlSaysHowToNameAnOldConversation: one that the list no longer has can be
// reached only in full.
func TestCtlSaysHowToNameAnOldConversation(t *testing.T) {
	refused := func() *model.Refusal { return &model.Refusal{Message: "pin c: no such conversation", Next: "listed"} }
	for name, c := range map[string]struct {
		flags ctlFlags
		want  string
	}{
		"listed":       {ctlFlags{}, "listed"},
		"unlisted":     {ctlFlags{unlisted: true}, "the feed lists the newest 10000: one that is older is known by its --model, and --tenant where it has one"},
		"with a model": {ctlFlags{unlisted: true, model: "m"}, "listed"},
	} {
		reply := model.Reply{Refusal: refused(), Items: []model.ItemResult{{Refusal: refused()}, {}}}
		c.flags.offer(&model.Command{Verb: model.VerbPin}, &reply)
		if reply.Refusal.Next != c.want || reply.Items[0].Refusal.Next != c.want {
			t.Errorf("%s: %q, %q", name, reply.Refusal.Next, reply.Items[0].Refusal.Next)
		}
	}
}
