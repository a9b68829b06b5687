package tui

import (
	"testing"
	"time"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

func TestWhatAnswersAKeyWhileAnErrorStands(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.say(view.Failed, cell.Lit("refused"))
	c.say(view.Note, cell.Lit("too early"))
	c.want(-2, "refused")
	c.live(2)
	c.say(view.Alert, cell.Lit("w0/3 is hot"))
	c.want(-2, "refused")
	c.say(view.Note, cell.Lit("P is off"))
	c.want(-2, "P is off")
	c.say(view.Failed, cell.Lit("refused"))
	c.live(2)
	c.say(view.Done, cell.Lit("drain w0"))
	c.want(-2, "drain w0")
}

func TestTheStatusRowIsCutBetweenRemarks(t *testing.T) {
	c := newConsole(t, 40, 12)
	c.past.held = newMoment(c.Model.live, c.now, 0)
	c.refresh()
	c.want(-2, "14:02:31, 0 s ago ")
	c.past.held = nil
	c.client.set(func(v *feed.View, _ *model.State) { v.Link.Phase = feed.PhaseLost })
	c.pass(time.Second)
	c.want(-2, "not live")
}
