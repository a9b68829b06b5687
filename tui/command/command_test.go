package command

import (
	"flag"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

func TestEveryCommandIsComplete(t *testing.T) {
	table := New()
	seen := map[ID]bool{}
	for i := range table.Commands {
		c := &table.Commands[i]
		switch {
		case c.ID == "":
			t.Errorf("%+v has no name", c)
		case len(c.Keys) == 0 && c.Hint != "":
			t.Errorf("%s has a hint and no key", c.ID)
		case seen[c.ID]:
			t.Errorf("%s stands twice in the table", c.ID)
		case c.Help == "" || ansi.StringWidth(c.Help) > 40:
			t.Errorf("%s: help %q is empty or longer than 40 cells", c.ID, c.Help)
		case ansi.StringWidth(c.Line) > 40:
			t.Errorf("%s: line %q is longer than 40 cells", c.ID, c.Line)
		case c.Class > Wide || c.Group > GroupMove:
			t.Errorf("%s has no class or group", c.ID)
		case c.Class != Look && c.Off == nil:
			t.Errorf("%s acts and has no reason function", c.ID)
		case c.Class >= Moves && c.ID != Undo && !strings.HasSuffix(c.Help, "…"):
			t.Errorf("%s asks in a dialog; its help must end in …", c.ID)
		}
		seen[c.ID] = true
		for _, id := range c.Leads {
			if table.Get(id) == nil {
				t.Errorf("%s leads %s, which does not exist", c.ID, id)
			}
		}
	}
}

// The help overlay has two columns: 21 cells of words left, 24 right.
func TestHelpLinesFitTheOverlay(t *testing.T) {
	table := New()
	for _, v := range Views() {
		for _, l := range table.Lines(&Situation{View: v}, "") {
			room := 24
			if l.Group == GroupLook {
				room = 21
			}
			if w := ansi.StringWidth(l.Help); w > room {
				t.Errorf("%s: %q is %d cells, want %d", l.ID, l.Help, w, room)
			}
		}
	}
}

func TestNoKeyIsTakenTwiceInAView(t *testing.T) {
	table := New()
	for _, v := range Views() {
		owner := map[string]ID{}
		for i := range table.Commands {
			c := &table.Commands[i]
			if !c.Applies(v) {
				continue
			}
			for _, k := range c.Keys {
				if o, taken := owner[k]; taken {
					t.Errorf("%s: key %q starts %s and %s", v, k, o, c.ID)
				}
				owner[k] = c.ID
			}
		}
	}
}

// What moves traffic starts with an upper-case letter, never with ctrl.
func TestLowerCaseLooksUpperCaseActs(t *testing.T) {
	table := New()
	for i := range table.Commands {
		c := &table.Commands[i]
		if c.Class < Moves && c.ID != Undo {
			continue
		}
		for _, k := range c.Keys {
			if len(k) != 1 || !unicode.IsUpper(rune(k[0])) {
				t.Errorf("%s moves traffic and starts with %q", c.ID, k)
			}
		}
	}
}

func TestReasons(t *testing.T) {
	live := Situation{View: Convs, Link: LinkLive, Selected: true}
	table := New()
	for name, c := range map[string]struct {
		id   ID
		with func(*Situation)
		want string
	}{
		"on":               {Pin, func(*Situation) {}, ""},
		"stale":            {Pin, func(s *Situation) { s.Link = LinkStale }, "feed is stale: these figures are old"},
		"frozen":           {Evict, func(s *Situation) { s.Link = LinkFrozen }, "the screen is frozen: z goes live again"},
		"replay":           {Apply, func(s *Situation) { s.Link = LinkReplay }, "this is a recording"},
		"viewer":           {Drain, func(s *Situation) { s.ReadOnly = true }, "viewer role: look only"},
		"nothing selected": {Migrate, func(s *Situation) { s.Selected = false }, "nothing selected"},
		"marks will do":    {Migrate, func(s *Situation) { s.Selected, s.Marked = false, 2 }, ""},
		"no pin":           {Unpin, func(*Situation) {}, "no operator's pin here"},
		"nothing staged":   {Apply, func(*Situation) {}, "nothing is staged"},
		"unused knob":      {StepMore, func(s *Situation) { s.KnobOff = "policy kv_aware does not use it" }, "policy kv_aware does not use it"},
		"live traffic":     {Faster, func(*Situation) {}, "live traffic has no speed"},
		"not frozen":       {StepBack, func(*Situation) {}, "only while frozen: z freezes"},
		"link is up":       {Retry, func(*Situation) {}, "the link is up"},
		"nothing to undo":  {Undo, func(*Situation) {}, "nothing to undo"},
		"already ready":    {Ready, func(*Situation) {}, "it is ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := live
			c.with(&s)
			if got := table.Get(c.id).Reason(&s); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestHelpFindsByKeyNameAndWords(t *testing.T) {
	table := New()
	s := Situation{View: Convs, Link: LinkLive}
	for search, want := range map[string]ID{"M": Migrate, "migrate": Migrate, "afresh": Evict, "^c": Interrupt} {
		found := false
		for _, l := range table.Lines(&s, search) {
			found = found || l.ID == want
		}
		if !found {
			t.Errorf("search %q does not find %s", search, want)
		}
	}
}

func TestCompactHintsSayHowToLearnMore(t *testing.T) {
	table := New()
	for _, v := range Views() {
		s := Situation{View: v, Link: LinkLive, Selected: true, Compact: true}
		keys := ""
		for _, h := range table.Hints(&s) {
			keys += h.Key + " " + h.Word + "  "
		}
		for _, want := range []string{"[ ] view", ": cmd", "? keys", "q"} {
			if !strings.Contains(keys, want) {
				t.Errorf("%s: no %q in %q", v, want, keys)
			}
		}
	}
}

var updateDocs = flag.Bool("update", false, "write docs/keys.md")

func TestKeysPageIsCurrent(t *testing.T) {
	const page = "../../docs/keys.md"
	want := New().Markdown()
	if *updateDocs {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from the command table; run: go test ./tui/command -update", page)
	}
}
