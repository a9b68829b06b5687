package tui

import (
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/fixture"
	"adpdeck/tui/keymap"
)

// remapped is a console with its real views and the keys of a console file.
func remapped(t *testing.T, w, h int, file string) *console {
	t.Helper()
	k, err := keymap.Parse("console.yaml", []byte(file))
	if err != nil || k.Clash != "" {
		t.Fatal(err, k)
	}
	return screenWith(t, fixture.Normal(), w, h, func(o *Options) { o.Keys = k.Table })
}

func (c *console) shows(words ...string) {
	c.t.Helper()
	c.refresh()
	text := fixture.Text(c.Lines())
	for _, w := range words {
		if !strings.Contains(text, w) {
			c.t.Errorf("the screen lacks %q:\n%s", w, text)
		}
	}
}

func (c *console) lacks(word string) {
	c.t.Helper()
	c.refresh()
	if text := fixture.Text(c.Lines()); strings.Contains(text, word) {
		c.t.Errorf("the screen has %q:\n%s", word, text)
	}
}

func TestARemappedKeyActsAndTheOldOneDoesNot(t *testing.T) {
	c := remapped(t, 120, 40, "bind:\n  drain: T\n  undo: Z\n  ready: Q\n  freeze: f5\n  weight: V\n  down: [a, down]\n  apply: Y\n")
	c.press("D")
	if len(c.dialogs) != 0 {
		t.Fatal("the old key opened a dialog")
	}
	c.shows("T drain", "V weight", "F5 freeze")
	c.press("a", "T")
	c.shows("Drain w0/1", "Z or Q: ready again")
	c.wait()
	c.press("y")
	if len(c.client.sent) != 1 || c.client.sent[0].Verb != model.VerbDrain {
		t.Fatalf("sent %+v", c.client.sent)
	}
	c.want(-2, "· Z undo")
	c.press("f5", "W", "V")
	c.want(-2, "V is off: the screen is frozen: F5 goes live again")
}

func TestHelpAndPaletteShowRemappedKeys(t *testing.T) {
	c := remapped(t, 120, 40, "bind:\n  help: f1\n  drain: T\n  filter: f4\n  command: f2\n")
	c.shows("F1 keys", "F4 filter", "F2 command")
	c.press("f1")
	c.shows("T R", "F4 n N", "F2       any command by name")
	c.press("f1")
	if len(c.dialogs) != 0 {
		t.Error("the key that opened help did not close it")
	}
	c.press("f1")
	c.typeText("drain")
	c.shows("drain: no new conversations")
	c.press("esc", "f2")
	c.typeText("theme")
	c.press("enter")
	c.want(-2, "theme night")
}

func TestChoosersMoveByRemappedKeys(t *testing.T) {
	c := remapped(t, 120, 40, "bind:\n  down: [a, down]\n  up: [b, up]\n")
	c.press("2")
	c.on("tenant-a", "conv-77fd0031-1f0f")
	c.press("P")
	c.wait()
	c.shows("a/b rank")
	was := fixture.Text(c.Lines())
	c.press("j")
	c.refresh()
	if fixture.Text(c.Lines()) != was {
		t.Error("j moved")
	}
	c.press("a")
	c.refresh()
	if fixture.Text(c.Lines()) == was {
		t.Error("a did not move")
	}
}

func TestKeysTakenAwayLeaveHintsAndHelp(t *testing.T) {
	c := remapped(t, 120, 40, "bind:\n  filter: []\n  drain: []\n  pin: []\n  step-less: []\n")
	c.lacks("/ filter")
	c.shows(":drain drain")
	c.press("?")
	c.shows("n            next match of the fi…")
	c.typeText("filter")
	c.shows(":filter")
	c.press("esc", "5")
	c.lacks("- +")
}

func TestEnterOnABrokenLinkTriesWhateverItStarts(t *testing.T) {
	c := remapped(t, 120, 40, "bind:\n  open: f9\n")
	c.client.view.Link.Phase = "lost"
	c.pass(0)
	c.press("enter")
	if c.client.retries != 1 {
		t.Errorf("%d tries", c.client.retries)
	}
}

func TestPlainKeysMoveByArrowsAndFunctionKeys(t *testing.T) {
	c := remapped(t, 120, 40, "keys: plain\n")
	c.shows("F1 keys", "F4 filter", "F6 sort", "F10 quit")
	c.press("j")
	if row := cursorRow(c); !strings.Contains(row, "w0/0") {
		t.Errorf("j moved to %s", row)
	}
	c.press("down")
	if row := cursorRow(c); !strings.Contains(row, "w0/1") {
		t.Errorf("down moved to %s", row)
	}
	for _, v := range command.Views() {
		if err := fixture.Check(c.Lines(), 120, 40); err != nil {
			t.Errorf("%s: %v", v, err)
		}
		c.press("]")
	}
}

func TestAClashIsToldOnce(t *testing.T) {
	k, err := keymap.Parse("console.yaml", []byte("bind:\n  copy: z\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := screenWith(t, fixture.Normal(), 80, 24, func(o *Options) { o.Keys, o.Note = k.Table, k.Clash })
	c.want(-2, "✕ console.yaml:2: key z starts freeze and copy in ranks: vim keys kept")
	c.live(int(toastTime / time.Second))
	c.want(-2, "16 ranks")
}

func cursorRow(c *console) string {
	c.refresh()
	for _, l := range strings.Split(fixture.Text(c.Lines()), "\n") {
		if strings.Contains(l, "▸") {
			return l
		}
	}
	return ""
}
