package tui

import (
	"strings"
	"testing"
	"time"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

func TestAConflictIsAskedAgainOnTop(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.client.answer = func(model.Command) (model.Reply, bool) {
		return model.Reply{Refusal: &model.Refusal{
			Code: model.RefusedConflict, Message: "old",
			Current: &model.Revision{Version: 1413, Actor: "ann", What: "load balance β 1.00 → 1.05 and much more besides"},
		}}, true
	}
	key := model.ConvKey{ID: "conv-1"}
	c.finish(c.carry(view.Send{Command: model.Command{Verb: model.VerbEvict, Convs: []model.ConvKey{key}, Reason: "too big"}}))
	c.want(-2, "ann made v1413 (")
	c.want(-2, "A applies on top")
	c.client.set(func(_ *feed.View, s *model.State) { s.Version = 1413 })
	c.pass(0)
	c.client.answer = func(model.Command) (model.Reply, bool) { return model.Reply{Accepted: true, Version: 1414}, true }
	c.press("A")
	if len(c.dialogs) != 1 || !strings.Contains(c.View(), "Evict conv-1") || !strings.Contains(c.View(), "too big") {
		t.Fatalf("A opened no question:\n%s", c.View())
	}
	c.now = c.now.Add(time.Second)
	c.press("y")
	if n := len(c.client.sent); n != 2 || c.client.sent[1].Expect != 1413 || c.client.sent[1].Reason != "too big" {
		t.Errorf("sent %+v", c.client.sent)
	}
	c.say(view.Done, cell.Lit("x"))
	if c.situation().Refused {
		t.Error("the offer outlives its toast")
	}
}

func TestAConflictOffersTheWayOutAtAnyWidth(t *testing.T) {
	why := &model.Refusal{Code: model.RefusedConflict, Current: &model.Revision{Version: 1413, Actor: "a-very-long-name-indeed", What: strings.Repeat("much ", 20)}}
	for _, room := range []int{36, 56, 76, 116} {
		got := refused(model.Command{Expect: 1412}, why, room, cell.Lit("A"))
		if got.Width() > room || !strings.HasSuffix(got.String(), "A applies on top") {
			t.Errorf("%d cells: %q", room, got)
		}
	}
}

func TestUndoIsNamedByWhatItTakesBack(t *testing.T) {
	revs := []model.Revision{{Version: 5, Undoes: 4, What: "undo v4 (drain w1/2)"}, {Version: 4, UndoneBy: 5, What: "drain w1/2"}, {Version: 3, What: "β"}}
	for version, want := range map[uint64]string{
		0: "undone: β · v6 · U redo",
		4: "undone: drain w1/2 · v6 · U redo",
		5: "redone: drain w1/2 · v6 · U undo",
	} {
		rev, ok := toUndo(revs, version)
		if got := undone(revs, rev, 6, cell.Lit("U")).String(); !ok || got != want {
			t.Errorf("undo %d: %q, want %q", version, got, want)
		}
	}
}

func TestWhatLiesBehindADialogIsDim(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.setTheme(loadTheme("night"))
	c.press("?")
	lines := strings.Split(c.View(), "\n")
	dim := c.ink.Theme.SGR(cell.Dim)
	for _, i := range []int{1, 2, 12, 23} {
		if !strings.HasPrefix(lines[i], dim) || strings.Contains(lines[i], c.ink.Theme.SGR(cell.BarFill)) {
			t.Errorf("line %d is not dim: %q", i, lines[i])
		}
	}
	if strings.HasPrefix(lines[0], dim) {
		t.Error("the header with the link's badge is dim")
	}
}
