package tui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/teatest"

	"adpdeck/router/model"
	"adpdeck/tui/fixture"
)

// story drives the whole program through a terminal of 120×40.
type story struct {
	t      *testing.T
	tm     *teatest.TestModel
	router *fakeRouter
}

func begin(t *testing.T) *story {
	r := newFakeRouter()
	opt := testOptions(r, Views()...)
	opt.Context, opt.Now = "", r.clock
	opt.NewID = nil
	s := &story{t: t, router: r}
	s.tm = teatest.NewTestModel(t, New(opt), teatest.WithInitialTermSize(120, 40))
	t.Cleanup(func() {
		s.tm.Send(tea.KeyMsg{Type: tea.KeyCtrlC})
		s.tm.WaitFinished(t, teatest.WithFinalTimeout(10*time.Second))
	})
	return s
}

func (s *story) keys(names ...string) *story {
	for _, k := range names {
		s.tm.Send(keyMsg(k))
	}
	return s
}

func (s *story) typed(text string) *story {
	for _, r := range text {
		s.tm.Send(keyMsg(string(r)))
	}
	return s
}

// sees waits until text has been painted since the last time it looked.
func (s *story) sees(text string) *story {
	s.t.Helper()
	teatest.WaitFor(s.t, s.tm.Output(), func(out []byte) bool {
		return bytes.Contains([]byte(ansi.Strip(string(out))), []byte(text))
	}, teatest.WithDuration(10*time.Second), teatest.WithCheckInterval(20*time.Millisecond))
	return s
}

func (s *story) last() model.Command {
	all := s.router.commands()
	if len(all) == 0 {
		s.t.Fatal("no command was sent")
	}
	return all[len(all)-1]
}

// current is the router's conversation with that id.
func (s *story) conv(id string) *model.Conv {
	for _, c := range s.router.View().State.Convs {
		if c.Key.ID == id {
			return c
		}
	}
	s.t.Fatalf("no conversation %s", id)
	return nil
}

func TestChangingBetaAndTakingItBack(t *testing.T) {
	s := begin(t)
	s.sees("16 ranks").keys("5").sees("load balance β")
	s.keys("e").typed("4").sees("→ 4").keys("enter").sees("1 staged")
	s.keys("A").sees("Apply 1 change").keys("y").sees("v1413")
	if c := s.last(); c.Verb != model.VerbSet || c.Expect != 1412 || c.Actor != "bob" || len(c.Set) != 1 || c.Set[0].Value != "4" {
		t.Errorf("sent %+v", c)
	}
	if got := s.router.View().State.Settings.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight; got != 4 {
		t.Errorf("β is %v", got)
	}
	s.keys("U").sees("v1414")
	if got := s.router.View().State.Settings.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight; got != 1 {
		t.Errorf("after undo β is %v", got)
	}
}

func TestPinningAConversationAndTakingItBack(t *testing.T) {
	s := begin(t)
	s.sees("16 ranks").keys("2").sees("conv-8f2c91e0-41aa")
	s.keys("/").typed("c0de4410").keys("enter").sees("1 of 1,851")
	s.keys("P").sees("Pin conv-c0de4410-77b1").keys("j", "r").typed("flow").keys("enter", "l").sees("[ Pin ]").keys("enter").sees("v1413")
	if c := s.last(); c.Verb != model.VerbPin || c.Target == nil || *c.Target != fixture.T("w0", 4) || c.Reason != "flow" {
		t.Errorf("sent %+v", c)
	}
	if c := s.conv("conv-c0de4410-77b1"); c.Pin != model.PinOperator || c.Bound != fixture.T("w0", 4) {
		t.Errorf("the pin is %q on %s", c.Pin, c.Bound)
	}
	s.keys("U").sees("v1414")
	if c := s.conv("conv-c0de4410-77b1"); c.Pin != model.PinAuto {
		t.Errorf("after undo the pin is %q", c.Pin)
	}
}

func TestEvictingAConversationAndTakingItBack(t *testing.T) {
	s := begin(t)
	s.sees("16 ranks").keys("2").sees("conv-8f2c91e0-41aa")
	s.keys("E").sees("Evict conv-8f2c91e0-41aa").keys("tab", "enter").sees("v1413")
	if c := s.last(); c.Verb != model.VerbEvict || len(c.Convs) != 1 || c.Convs[0].ID != "conv-8f2c91e0-41aa" {
		t.Errorf("sent %+v", c)
	}
	if c := s.conv("conv-8f2c91e0-41aa"); c.Pin != model.PinNone {
		t.Errorf("evicted, and its pin is %q", c.Pin)
	}
	s.keys("U").sees("v1414")
	if c := s.conv("conv-8f2c91e0-41aa"); c.Pin != model.PinAuto {
		t.Errorf("after undo the pin is %q", c.Pin)
	}
}

// Enter on a fresh dialog is Cancel, and so is the key that opened it.
func TestNothingIsSentByAccident(t *testing.T) {
	for name, keys := range map[string][]string{
		"enter is cancel":        {"2", "E", "enter"},
		"the same key again":     {"2", "E", "E", "E", "enter"},
		"esc":                    {"2", "P", "l", "esc"},
		"many without the count": {"2", "*", "E", "y", "enter"},
		"caps lock on":           {"2", "J", "K", "D", "G", "P", "N", "enter"},
	} {
		t.Run(name, func(t *testing.T) {
			c := screen(t, fixture.Normal(), 80, 24)
			for _, k := range keys {
				c.press(k)
				c.wait()
				c.refresh()
			}
			if len(c.client.sent) > 0 {
				t.Errorf("sent %+v", c.client.sent)
			}
		})
	}
}

func TestManyAskForTheCount(t *testing.T) {
	c := screen(t, fixture.Normal(), 80, 24)
	c.press("2")
	c.typeText("/rank:w1/2")
	c.press("enter", "*", "E")
	c.wait()
	c.typeText("58")
	c.press("enter")
	if len(c.client.sent) != 1 || len(c.client.sent[0].Convs) != 58 {
		t.Fatalf("sent %d commands", len(c.client.sent))
	}
}

func TestRankOpensItsConversations(t *testing.T) {
	c := screen(t, fixture.Normal(), 80, 24)
	c.press("j", "j", "j", "enter")
	if !strings.Contains(c.line(2), "/ rank:w0/3") || !strings.Contains(c.line(2), "231 of 1,851") {
		t.Errorf("line 2 is %q", c.line(2))
	}
}

func TestAWeightIsStagedFromRanksAndAppliedFromAnywhere(t *testing.T) {
	c := screen(t, fixture.Normal(), 80, 24)
	c.press("j", "W")
	c.typeText("0.8")
	c.press("enter", "A")
	c.wait()
	c.press("y")
	if len(c.client.sent) != 1 {
		t.Fatalf("sent %d commands", len(c.client.sent))
	}
	set := c.client.sent[0].Set
	if len(set) != 1 || set[0].Field != model.FieldWeight || *set[0].Target != fixture.T("w0", 1) || set[0].Value != "0.8" {
		t.Errorf("set %+v", set)
	}
}
