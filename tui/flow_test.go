package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

func TestKeysReachTheView(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.press("j", "W", "2", "P", "[", "]")
	if got := c.views[0].did; len(got) != 2 || got[0] != command.Down || got[1] != command.Weight {
		t.Errorf("ranks did %v", got)
	}
	if got := c.views[1].did; len(got) != 1 || got[0] != command.Pin || c.shown != 1 {
		t.Errorf("convs did %v, view %d", got, c.shown)
	}
	c.views[1].typing = true
	c.press("q", "3")
	if got := c.views[1].did[1:]; len(got) != 2 || got[0] != "typed q" || got[1] != "typed 3" {
		t.Errorf("while typing: %v", got)
	}
}

func TestLettersInOneMessageAreKeysAndPasteIsText(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("jjk")})
	if len(c.views[0].did) != 3 {
		t.Errorf("three letters did %v", c.views[0].did)
	}
	c.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("WDq"), Paste: true})
	if len(c.views[0].did) != 3 || c.ending {
		t.Errorf("a paste did %v", c.views[0].did)
	}
	c.want(-2, "pasted text")
}

func TestOffCommandsSayWhy(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.client.set(func(v *feed.View, _ *model.State) { v.Link.Phase = feed.PhaseLost })
	c.pass(0)
	c.press("W")
	c.want(-2, "W is off: feed is stale")
	if len(c.views[0].did) != 0 {
		t.Errorf("stale, and yet %v", c.views[0].did)
	}
	c.press("enter", "ctrl+r")
	if c.client.retries != 2 {
		t.Errorf("enter and ctrl+r tried %d times", c.client.retries)
	}
	c.pass(7 * time.Second)
	c.want(-1, "⏎ retry")
	c.want(-1, "z look back")
}

func TestSendShowsTheVersionToComeAndWhatBecameOfIt(t *testing.T) {
	set := view.Send{Command: model.Command{Verb: model.VerbSet, Set: []model.FieldValue{{Field: "x", Value: "4"}}}, ClearStaged: true}
	for name, tc := range map[string]struct {
		reply  model.Reply
		ok     bool
		toast  string
		staged int
	}{
		"accepted": {model.Reply{Accepted: true, Version: 1413, What: "β 1.00 → 4.00"}, true, "✓ β 1.00 → 4.00 applied as v1413 · U undo", 0},
		"conflict": {
			model.Reply{Refusal: &model.Refusal{Code: model.RefusedConflict, Message: "old", Current: &model.Revision{Version: 1413, Actor: "ann", What: "drain w1/2"}}},
			true,
			"✕ refused: v1412 is old, ann made v1413 (drain w1/2). A applies on top", 1,
		},
		"bounds": {model.Reply{Refusal: &model.Refusal{Code: model.RefusedBounds, Message: "weight 9 is above 2", Next: "give 0 to 2"}}, true, "✕ refused: weight 9 is above 2; give 0 to 2", 1},
		"lost":   {model.Reply{}, false, "✕ set: the link was lost before the answer", 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t, 120, 30)
			c.client.answer = func(model.Command) (model.Reply, bool) { return tc.reply, tc.ok }
			c.views[0].do = func(command.ID) (view.Intent, bool) {
				return view.All{view.Stage{Values: set.Command.Set}, set}, true
			}
			_, cmd := c.Update(keyMsg("W"))
			c.want(0, "→ v1413")
			c.finish(cmd)
			c.want(-2, tc.toast)
			if sent := c.client.sent[0]; sent.Expect != 1412 || sent.Actor != "bob" || sent.ID != "id-1" {
				t.Errorf("sent %+v", sent)
			}
			if len(c.staged) != tc.staged {
				t.Errorf("%d staged, want %d", len(c.staged), tc.staged)
			}
			if !tc.reply.Accepted {
				c.want(0, "│ v1412")
				return
			}
			c.want(0, "→ v1413")
			c.client.set(func(_ *feed.View, s *model.State) { s.Version = 1413 })
			c.pass(0)
			c.want(0, "│ v1413")
		})
	}
}

func TestUndoOfAnUndoIsTheRedo(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.press("U")
	c.client.set(func(_ *feed.View, s *model.State) {
		s.Version = 1413
		s.Revisions = []model.Revision{{Version: 1413, Verb: model.VerbUndo, Undoes: 1412}}
	})
	c.pass(0)
	c.press("U")
	if c.client.sent[0].Undo != 0 || c.client.sent[1].Undo != 1413 {
		t.Errorf("sent %+v", c.client.sent)
	}
}

func TestToastsLastSixSecondsAndErrorsOutrank(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.carry(view.Toast{Level: view.Failed, Text: c.badgeText(c.now)})
	c.carry(view.Toast{Level: view.Done, Text: c.context(80)})
	c.want(-2, "✕ ● live 12 ms")
	c.pass(5 * time.Second)
	c.want(-2, "✕")
	c.pass(time.Second)
	c.want(-2, "these figures are from") // no frame came meanwhile
}

func TestFreezeAndStep(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.live(20)
	c.press("z")
	c.live(4)
	c.want(0, "‖ FROZEN −4 s")
	c.want(0, "14:02:51")
	c.want(-2, "14:02:51, 4 s ago · live goes on behind: skew 1.38×")
	c.press(",")
	c.want(0, "14:02:50")
	c.press("<")
	c.want(0, "14:02:40")
	c.press(".", ">")
	c.want(0, "14:02:51")
	c.press("<", "<", "<")
	c.want(0, "14:02:31")
	c.want(-2, "oldest moment kept")
	if got := c.frame.Trends.Total(0, 50); len(got) > 2 {
		t.Errorf("a frozen trend shows %d samples of later", len(got))
	}
	c.press("W")
	c.want(-2, "W is off: the screen is frozen")
	c.press("z")
	c.want(0, "● live")
	c.want(0, "14:02:55")
}

func TestThePastIsBounded(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.live(pastKept + 50)
	if len(c.past.ring) != pastKept {
		t.Errorf("%d moments", len(c.past.ring))
	}
	c.press("z")
	for range pastKept + 5 {
		c.press(",")
	}
	c.want(-2, "oldest moment kept")
}

func TestEscClosesExactlyOneLevel(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.views[0].levels = 2
	c.press("?", ":")
	if len(c.dialogs) != 1 {
		t.Fatalf("%d dialogs: in help every letter is search", len(c.dialogs))
	}
	c.press("esc")
	if len(c.dialogs) != 0 || c.views[0].levels != 2 {
		t.Error("esc closed more than the dialog")
	}
	c.press("esc")
	if c.views[0].levels != 1 {
		t.Error("esc did not close a level of the view")
	}
	c.press("q", "q")
	if c.views[0].levels != 0 || !c.ending {
		t.Error("q goes back first, then quits")
	}
}

func TestQuitAsksWhenTrafficRunsHere(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.opt.Embedded = true
	c.press("q", "y")
	if c.ending {
		t.Fatal("the key right after opening confirmed")
	}
	c.now = c.now.Add(time.Second)
	c.press("enter")
	if c.ending || len(c.dialogs) != 0 {
		t.Fatal("Stay has the focus")
	}
	c.press("q")
	c.now = c.now.Add(time.Second)
	c.press("right", "enter")
	if !c.ending {
		t.Error("Stop did not stop")
	}
}

func TestHelpSearchesAndRuns(t *testing.T) {
	c := newConsole(t, 80, 30)
	c.press("?")
	screen := c.View()
	for _, want := range []string{"LOOK", "ACT  (upper case)", "MOVE AROUND", "is off: "} {
		if !strings.Contains(screen, want) {
			t.Errorf("help has no %q", want)
		}
	}
	c.typeText("weight for")
	c.press("enter")
	if got := c.views[0].did; len(got) != 1 || got[0] != command.Weight {
		t.Errorf("did %v", got)
	}
}

func TestPalette(t *testing.T) {
	for typed, want := range map[string]string{
		"weight w0/3 0.8":     "staged w0/3 weight 0.8 · A applies",
		"placement least_":    "",
		"nonsense":            "no command nonsense",
		"weight w9/9 1":       "no rank w9/9",
		"weight w0/3 7":       "want a number from 0 to 2",
		"evict twice":         `2 conversations have the id "twice"`,
		"evict none":          `no conversation "none"`,
		"set colour red":      "no field colour",
		"theme night":         "",
		"theme nowhere":       "no such theme",
		"speed 3":             "live traffic has no speed",
		"pin conv-1":          "want pin CONVERSATION RANK",
		"policy conversation": "staged policy conversation",
	} {
		t.Run(typed, func(t *testing.T) {
			c := newConsole(t, 100, 30)
			c.press(":")
			c.typeText(typed)
			c.press("enter")
			if !strings.Contains(c.View(), want) {
				t.Errorf("no %q on\n%s", want, c.View())
			}
		})
	}
	c := newConsole(t, 100, 30)
	c.press(":")
	c.typeText("pin conv-1 w0/")
	c.press("tab")
	c.typeText("3")
	c.press("enter")
	c.now = c.now.Add(time.Second)
	c.press("enter")
	if len(c.client.sent) != 0 {
		t.Fatal("Cancel has the focus")
	}
	c.press(":", "up", "enter")
	c.now = c.now.Add(time.Second)
	c.press("y")
	if len(c.client.sent) != 1 || c.client.sent[0].Verb != model.VerbPin || c.client.sent[0].Target.String() != "w0/3" {
		t.Errorf("sent %+v", c.client.sent)
	}
}

func TestSpeedKeys(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.press(")")
	c.want(-2, ") is off: live traffic has no speed")
	c.client.set(func(_ *feed.View, s *model.State) { s.Source = model.Source{Kind: "simulated", Speed: 2} })
	c.pass(0)
	c.press(")", "(", "p")
	for i, want := range []float64{4, 1, 0} {
		if c.client.sent[i].Speed != want || c.client.sent[i].Expect != 0 {
			t.Errorf("sent %+v", c.client.sent[i])
		}
	}
	c.want(-2, "simulation paused · p goes on")
}

func TestTuningEscDiscardsStaged(t *testing.T) {
	c := newConsole(t, 80, 24)
	c.carry(view.Stage{Values: []model.FieldValue{{Field: "a", Value: "1"}, {Field: "a", Value: "2"}, {Field: "b", Value: "3"}}})
	if len(c.staged) != 2 {
		t.Fatalf("staged %v", c.staged)
	}
	c.press("3", "esc")
	if len(c.staged) != 0 {
		t.Error("esc did not discard")
	}
}

func TestAnEditedThemeShowsAtOnceAndABrokenOneIsNamed(t *testing.T) {
	c := newConsole(t, 80, 24)
	path := filepath.Join(t.TempDir(), "mine.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := func() {
		for range 4 {
			c.now = c.now.Add(tickPeriod)
			c.onTick()
			if cmd := c.lookAtTheme(); cmd != nil {
				c.finish(cmd)
			}
		}
	}
	b, err := os.ReadFile("../themes/day.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(string(b))
	c.opt.ThemePath = path
	second()
	before := c.ink.Theme.SGR(0)
	write(strings.Replace(string(b), "#1f2733", "#2f2733", 1) + "# edited\n")
	second()
	c.want(-2, "theme day read again")
	if c.ink.Theme.SGR(0) == before {
		t.Error("the edit does not show")
	}
	now := c.ink.Theme
	write("name: day\nkind: dusk\n")
	second()
	c.want(-2, `mine.yaml:2:7: kind "dusk"`)
	if c.ink.Theme != now {
		t.Error("a broken file changed the theme")
	}
}
