package router

import (
	"fmt"
	"strings"
	"testing"

	"adpdeck/router/model"
)

// TestEventsOfActs: what an operator did, from what to what, why and by which
// command; machine events apart.
func TestEventsOfActs(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyConversation)
	b.turn(t, "a", nil, asks(at("w0", 1)))
	b.turn(t, "b", nil, asks(at("w0", 1)))
	newest := func() model.Event { return b.Snapshot().Events[0] }
	for name, c := range map[string]struct {
		cmd           model.Command
		before, after string
	}{
		"a drain":   {onRank(model.VerbDrain, at("w0", 2)), "ready", "drain"},
		"b pin":     {onConvs(model.VerbPin, ptr(at("w0", 3)), "a"), "no operator pin", "operator pin w0/3"},
		"c migrate": {onConvs(model.VerbMigrate, ptr(at("w0", 3)), "b"), "bound to w0/1 (auto)", "bound to w0/3 (migrated)"},
		"d weight":  {setWeight(at("w0", 0), "0.5"), "1", "0.5"},
		"e field":   {set(model.FieldTimeoutIters, "9"), "50", "9"},
	} {
		c.cmd.Reason = "because"
		b.must(t, c.cmd)
		e := newest()
		if e.Before != c.before || e.After != c.after || e.Reason != "because" || e.Kind != model.EventOperator || e.Who != "bob" ||
			e.Command != fmt.Sprint("cmd-", b.cmds) || e.Version == 0 {
			t.Errorf("%s: %+v", name, e)
		}
		if (c.cmd.Target == nil) != (e.Target == nil) || e.Target != nil && *e.Target != *c.cmd.Target {
			t.Errorf("%s: target %v", name, e.Target)
		}
		b.must(t, undo(0))
		if u := newest(); u.Before != c.after || u.After != c.before {
			t.Errorf("undo of %s: %+v", name, u)
		}
	}
	both := model.Command{Verb: model.VerbSet, Set: append(set(model.FieldTimeoutIters, "9").Set, setWeight(at("w0", 0), "0.5").Set...)}
	b.must(t, both)
	if e := newest(); !strings.Contains(e.Before, "w0/0 weight 1") || !strings.Contains(e.After, "timeout_iters 9") {
		t.Errorf("%+v", e)
	}
	b.live(t, at("w0", 3), false)
	if e := newest(); e.Kind != model.EventEngine || e.Before != "" || e.After != "down" || e.Reason != "connection refused" || e.Who != "w0/3" || e.Version != 0 {
		t.Errorf("%+v", e)
	}
	b.Done(99, model.OutcomeOK)
	if e := newest(); e.Kind != model.EventRouter || e.Who != "router" {
		t.Errorf("%+v", e)
	}
	convs := make([]string, 9)
	for i := range convs {
		convs[i] = fmt.Sprint("c", i)
		b.turn(t, convs[i], nil)
	}
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 0)), convs...))
	if e := newest(); !strings.HasSuffix(e.After, "c5 operator pin w0/0 and 3 more") {
		t.Errorf("%+v", e)
	}
}
