package tui

import (
	"strings"
	"testing"
	"time"

	"adpdeck/feed"

	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/fixture"
)

// ! visits each finding, each warning and each error once, and then is off.
func TestNextAlertVisitsEachOnce(t *testing.T) {
	c := screen(t, fixture.Fleet(), 80, 24)
	for _, want := range []struct {
		view command.View
		line string // under the cursor
		say  string
	}{
		{command.Index, "▸ w1/6", "publishes blocks of 32 tokens"},
		{command.Index, "▸ w1/4", "lost 2 event batches"},
		{command.Workers, "▸ d0", "d0 ignored the rank on responses"},
		{command.Workers, "▸ x0", "x0 does not answer"},
		{command.Events, "▸!14:02:29  d0", "pin not honoured on responses"},
		{command.Events, "▸✕14:02:19  x0", "does not answer"},
		{command.Events, "▸!14:01:43  w1/6", "no block events"},
		{command.Events, "▸!13:49:31  ann", "refused: weight 3"},
	} {
		c.press("!")
		if got := c.current().ID(); got != want.view {
			t.Errorf("%s: view %s, want %s", want.say, got, want.view)
		}
		c.want(-2, want.say)
		if !strings.Contains(fixture.Text(c.Lines()), want.line) {
			t.Errorf("no %q in\n%s", want.line, fixture.Text(c.Lines()))
		}
	}
	c.press("!")
	c.want(-2, "! is off: no alert that was not looked at")
	c.client.set(func(_ *feed.View, s *model.State) {
		s.Findings = append(s.Findings, model.Finding{Code: "new", Target: fixture.T("w0", 2), Since: s.At, Message: "w0/2 does odd things"})
	})
	c.pass(0)
	c.press("!")
	c.want(-2, "w0/2 does odd things")
}

// A filter in the view that the alert leads to does not hide it.
func TestNextAlertDropsAFilterThatHidesIt(t *testing.T) {
	c := screen(t, fixture.Fleet(), 80, 24)
	c.press("4", "/")
	c.typeText("rank:w0/0")
	c.press("enter", "1", "!")
	if !strings.Contains(fixture.Text(c.Lines()), "▸ w1/6") {
		t.Errorf("not on w1/6:\n%s", fixture.Text(c.Lines()))
	}
}

func TestTheTabCountsWhatIsUnread(t *testing.T) {
	c := screen(t, fixture.Fleet(), 80, 24)
	c.want(1, "[1 Ranks]  2 Convs  3 Decisions  4 Index  5 Tuning  6 Events  7 Workers")
	more := func(n int) {
		c.client.set(func(_ *feed.View, s *model.State) {
			for range n {
				e := model.Event{ID: s.Events[0].ID + 1, At: s.At.Add(time.Second), Level: "info", Who: "bob", What: "pin"}
				s.Events = append([]model.Event{e}, s.Events...)
			}
		})
		c.pass(0)
	}
	more(2)
	c.want(1, "5 Tuning  6 Events ²  7 Workers")
	more(9)
	c.want(1, "5 Tuning  6 Events ⁹⁺  7 Workers")
	c.press("6")
	c.View()
	c.press("7")
	c.want(1, "5 Tuning  6 Events  [7 Workers]")
}

// All tabs stand on every screen that has a row for them.
func TestTabsFitEveryWidth(t *testing.T) {
	for w := 60; w <= 130; w++ {
		c := screen(t, fixture.Fleet(), w, 24)
		for n, name := range []string{"Ranks", "Convs", "Decisions", "Index", "Tuning", "Events", "Workers"} {
			c.goTo(n)
			line := c.line(1)
			if !strings.Contains(line, name+"]") || !strings.Contains(line, "7") || strings.Contains(line, "…") {
				t.Fatalf("%d cells: %q", w, line)
			}
		}
	}
}

func TestPaletteShowsAViewAndDrainsAWorker(t *testing.T) {
	c := screen(t, fixture.Fleet(), 80, 24)
	c.press(":")
	c.typeText("view events")
	c.press("enter")
	if c.current().ID() != command.Events {
		t.Errorf("in %s", c.current().ID())
	}
	c.press(":")
	c.typeText("drain w1")
	c.press("enter")
	c.wait()
	c.press("y")
	if len(c.client.sent) != 1 || *c.client.sent[0].Target != fixture.T("w1", model.NoRank) {
		t.Errorf("sent %+v", c.client.sent)
	}
	c.press(":")
	c.typeText("view nothing")
	c.press("enter")
	if !strings.Contains(fixture.Text(c.Lines()), "no view nothing: views are ranks") {
		t.Errorf("no reason in\n%s", fixture.Text(c.Lines()))
	}
}

func TestAnEventLeadsToItsRankAndIsTakenBack(t *testing.T) {
	c := screen(t, fixture.Fleet(), 80, 24)
	c.press("6", "j", "j", "enter")
	if c.current().ID() != command.Ranks || !strings.Contains(fixture.Text(c.Lines()), "▸ w1/1") {
		t.Errorf("not on w1/1:\n%s", fixture.Text(c.Lines()))
	}
	c.press("6", "U")
	c.wait()
	c.press("y")
	if len(c.client.sent) != 1 || c.client.sent[0].Verb != model.VerbUndo || c.client.sent[0].Undo != 1413 {
		t.Errorf("sent %+v", c.client.sent)
	}
}
