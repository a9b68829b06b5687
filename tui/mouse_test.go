package tui

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"adpdeck/tui/command"
)

func TestMouse(t *testing.T) {
	c := newConsole(t, 80, 24)
	send := func(e tea.MouseEvent) { _, cmd := c.Update(tea.MouseMsg(e)); c.finish(cmd) }
	click := func(what string) {
		tabs := ansi.Strip(c.Lines()[1])
		x := ansi.StringWidth(tabs[:strings.Index(tabs, what)])
		send(tea.MouseEvent{X: x, Y: 1, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	}
	click("Tuning")
	if c.shown != 0 {
		t.Error("a click before the mouse was turned on")
	}
	_, cmd := c.Update(keyMsg("m"))
	if cmd == nil || !c.mouse {
		t.Fatal("m does not turn the mouse on")
	}
	for _, want := range []string{"Tuning", "Ranks", "Convs"} {
		click(want)
		if got := c.views[c.shown].title.String(); got != want {
			t.Errorf("click on %s shows %s", want, got)
		}
	}
	c.views[1].did = nil
	send(tea.MouseEvent{Button: tea.MouseButtonWheelDown, Action: tea.MouseActionPress})
	send(tea.MouseEvent{Button: tea.MouseButtonWheelUp, Action: tea.MouseActionPress})
	send(tea.MouseEvent{X: 5, Y: 8, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
	if got := c.views[1].did; len(got) != 2 || got[0] != command.Down || got[1] != command.Up {
		t.Errorf("wheel did %v", got)
	}
	if c.press("m"); c.mouse {
		t.Error("m does not turn the mouse off")
	}
}

func TestGoToTime(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.live(100)
	at := func() string { return c.frame.State.At.Format(time.TimeOnly) }
	last := at()
	if c.press("t"); len(c.dialogs) != 0 {
		t.Fatal("t on a live screen")
	}
	c.press("z", "t")
	c.typeText("30s")
	c.press("enter")
	was, _ := time.Parse(time.TimeOnly, last)
	if got, want := at(), was.Add(-30*time.Second).Format(time.TimeOnly); got != want || len(c.dialogs) != 0 {
		t.Errorf("30 s ago: %s, want %s", got, want)
	}
	c.press("t")
	c.typeText(was.Add(-50 * time.Second).Format(time.TimeOnly))
	c.press("enter")
	if got, want := at(), was.Add(-50*time.Second).Format(time.TimeOnly); got != want {
		t.Errorf("by the clock: %s, want %s", got, want)
	}
	for text, want := range map[string]string{"3h": "is not kept", "99:99": "want a time", "": "want a time"} {
		c.press("t")
		c.typeText(text)
		c.press("enter")
		if all := ansi.Strip(strings.Join(c.Lines(), "\n")); !strings.Contains(all, want) {
			t.Errorf("%q does not say %q:\n%s", text, want, all)
		}
		c.press("esc")
	}
	if got, want := at(), was.Add(-50*time.Second).Format(time.TimeOnly); got != want {
		t.Errorf("a wrong time moved to %s", got)
	}
}
