package themes

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// good returns a shipped theme's text with one piece replaced.
func good(t *testing.T, old, with string) string {
	t.Helper()
	b, err := builtin.ReadFile("night.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	if old == "" {
		return s
	}
	if !strings.Contains(s, old) {
		t.Fatalf("night.yaml has no %q", old)
	}
	return strings.Replace(s, old, with, 1)
}

func TestErrorsNameFileLineAndColumn(t *testing.T) {
	for name, c := range map[string]struct{ old, with, want string }{
		"unknown key":      {"kind: dark", "kind: dark\npaper: 1", `my.yaml:3:1: unknown key "paper"; keys are name, kind, color, role, ansi16`},
		"bad kind":         {"kind: dark", "kind: dusk", `my.yaml:2:7: kind "dusk": want dark, light or mono`},
		"bad colour":       {`"#cdd6e4"`, `"#cdd6"`, `my.yaml:4:8: ink: "#cdd6" is no colour: want # and six hex digits, like #88c0d0`},
		"unknown role":     {"  bar.fill: ok", "  bar.full: ok", `my.yaml:25:3: no such role "bar.full"; roles are text, dim,`},
		"missing role":     {"  key: accent bold\n", "", `my.yaml:14:1: missing roles: key`},
		"unknown colour":   {"  trend: accent", "  trend: acent", `my.yaml:29:10: trend: "acent" is neither a name under color nor a colour`},
		"unknown word":     {"  key: accent bold", "  key: accent shiny", `key: "shiny": want COLOUR on COLOUR, then attributes`},
		"on without":       {"  key: accent bold", "  key: accent on", `key: a colour must follow on`},
		"twice":            {"  trend: accent", "  trend: accent\n  trend: ok", `my.yaml:30:3: `},
		"reserved name":    {"  ink:", "  bold:", `my.yaml:4:3: "bold" is a word of the role lines`},
		"no YAML":          {"kind: dark", "kind: [", `my.yaml:`},
		"a list as colour": {`"#cdd6e4"`, "[1, 2]", `my.yaml:4:8: ink: want one colour`},
		"no name":          {"name: night", "name:", `my.yaml: name is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("my.yaml", []byte(good(t, c.old, c.with)))
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	for name, text := range map[string]string{"empty": "", "scalar": "night", "too large": strings.Repeat("#", MaxFileBytes+1), "two documents": "a: 1\n---\nb: 2"} {
		if _, err := Parse("my.yaml", []byte(text)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestLoadByNameAndPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(good(t, "name: night", "name: mine")), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Load(path); err != nil || f.Name != "mine" {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := Load("dusk"); !errors.Is(err, ErrNoTheme) || !strings.Contains(err.Error(), "night, day, mono") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestCompileForEachDepth(t *testing.T) {
	f, err := Load("night")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		depth Depth
		role  Role
		want  string
	}{
		"true":            {TrueColour, Title, "\x1b[;1;38;2;136;192;208m"},
		"256":             {Colours256, Title, "\x1b[;1;38;5;110m"},
		"16":              {Colours16, Title, "\x1b[;1;36m"},
		"none keeps bold": {NoColour, Title, "\x1b[;1m"},
		"none reverse":    {NoColour, LinkStale, "\x1b[;1;7m"},
		"own colour":      {Colours16, Text, "\x1b[m"},
		"bright":          {Colours16, Crit, "\x1b[;1;91m"},
		"ground":          {Colours16, TabActive, "\x1b[;1;30;46m"},
	} {
		if got := f.Compile(c.depth).SGR(c.role); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	th := f.Compile(TrueColour)
	if got := th.OnCursor(BarHot); got != "\x1b[;1;38;2;235;160;80;48;2;34;48;63m" {
		t.Errorf("on the cursor's row %q", got)
	}
	if th.Stale(BarHot) != th.SGR(Dim) || th.Stale(LinkStale) != th.SGR(LinkStale) {
		t.Error("stale rows are dim, the badge is not")
	}
	if th.Colourless() || !f.Compile(NoColour).Colourless() {
		t.Error("colourless")
	}
}

func TestDetectDepth(t *testing.T) {
	for name, c := range map[string]struct {
		mode string
		env  []string
		want Depth
	}{
		"asked none":      {"none", []string{"COLORTERM=truecolor"}, NoColour},
		"asked true":      {"true", []string{"NO_COLOR=1"}, TrueColour},
		"asked 256":       {"256", nil, Colours256},
		"asked 16":        {"16", nil, Colours16},
		"NO_COLOR=1":      {"auto", []string{"TERM=xterm-256color", "COLORTERM=truecolor", "TTY_FORCE=1", "NO_COLOR=1"}, NoColour},
		"NO_COLOR=yes":    {"auto", []string{"TERM=xterm-256color", "COLORTERM=truecolor", "TTY_FORCE=1", "NO_COLOR=yes"}, NoColour},
		"NO_COLOR empty":  {"auto", []string{"TERM=xterm-256color", "COLORTERM=truecolor", "TTY_FORCE=1", "NO_COLOR="}, TrueColour},
		"256 by TERM":     {"auto", []string{"TERM=xterm-256color", "TTY_FORCE=1"}, Colours256},
		"dumb":            {"auto", []string{"TERM=dumb", "TTY_FORCE=1"}, NoColour},
		"not a terminal":  {"auto", []string{"TERM=xterm"}, NoColour},
		"linux's console": {"auto", []string{"TERM=linux", "TTY_FORCE=1"}, Colours16},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DetectDepth(c.mode, &bytes.Buffer{}, c.env)
			if err != nil || got != c.want {
				t.Errorf("got %d, %v; want %d", got, err, c.want)
			}
		})
	}
	if _, err := DetectDepth("many", nil, nil); err == nil {
		t.Error("an unknown mode was taken")
	}
	for env, want := range map[string]string{"COLORFGBG=0;15": "day", "COLORFGBG=15;0": "night", "": "night"} {
		if got := DefaultName(TrueColour, []string{env}); got != want {
			t.Errorf("%s: %s", env, got)
		}
	}
	if DefaultName(NoColour, nil) != "mono" {
		t.Error("without colours the theme is mono")
	}
}

func TestGlyphsAreOneCell(t *testing.T) {
	for _, g := range []Glyphs{Unicode(), ASCII()} {
		all := append(g.Spark[:], g.CursorMark, g.Mark, g.BarFull, g.BarHalf, g.BarEmpty, g.BarStale, g.TickFull, g.TickEmpty,
			g.HLine, g.VLine, g.TopLeft, g.TopRight, g.BottomLeft, g.BottomRight, g.Now, g.StagedDot, g.Live, g.Slow, g.Stale,
			g.Frozen, g.Replay, g.ReadOnly, g.Up, g.Down, g.Good, g.Bad, g.Alert, g.Caret, g.Unknown)
		for _, s := range all {
			if ansi.StringWidth(s) != 1 || (g.ASCII && len(s) != 1) {
				t.Errorf("%q is not one cell", s)
			}
			for _, r := range s {
				if _, ok := Plain(r); !ok && r > 0x7f && !slices.Contains(g.Spark[:], s) && !strings.ContainsAny(s, "╭╮╰╯") {
					t.Errorf("%q has no stand-in in ASCII", s)
				}
			}
		}
	}
}

func TestChooseGlyphs(t *testing.T) {
	for name, c := range map[string]struct {
		mode  string
		env   []string
		ascii bool
	}{
		"english":         {"auto", []string{"LANG=en_GB.UTF-8"}, false},
		"japanese":        {"auto", []string{"LANG=ja_JP.UTF-8"}, true},
		"LC_ALL is first": {"auto", []string{"LANG=en_GB.UTF-8", "LC_ALL=zh_CN.UTF-8"}, true},
		"asked":           {"unicode", []string{"LANG=ko_KR.UTF-8"}, false},
		"asked ascii":     {"ascii", nil, true},
		"latin":           {"auto", []string{"LANG=de_DE.ISO-8859-1"}, true},
		"nothing":         {"auto", nil, false},
	} {
		if g, err := ChooseGlyphs(c.mode, c.env); err != nil || g.ASCII != c.ascii {
			t.Errorf("%s: ascii %v, %v", name, g.ASCII, err)
		}
	}
	if _, err := ChooseGlyphs("braille", nil); err == nil {
		t.Error("an unknown set was taken")
	}
}

func TestLintFindsWhatIsHardToRead(t *testing.T) {
	for name, c := range map[string]struct{ old, with, want string }{
		"dim text":        {`grey: "#8b97ab"`, `grey: "#444444"`, "dim has contrast"},
		"faint track":     {`line: "#76839a"`, `line: "#333333"`, "bar.track has contrast"},
		"red and green":   {`ok: "#7aa8d6"`, `ok: "#a0a040"`, "for deutan vision"},
		"on the cursor":   {`shade: "#22303f"`, `shade: "#88a0c0"`, "on the cursor's row has contrast"},
		"same ok and bad": {`crit: "#f2708a"`, `crit: "#eba050"`, "warn and crit are 0 apart for full colour vision"},
	} {
		f, err := Parse("x", []byte(good(t, c.old, c.with)))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Lint(f), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in\n%s", name, c.want, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, n := range Names() {
		b, err := builtin.ReadFile(n + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("name: &a x\nkind: *a\nrole: {text: 1}"))
	f.Add([]byte("? [a]\n: b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		theme, err := Parse("f", b)
		if err == nil {
			theme.Compile(Colours256)
			Lint(theme)
			return
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%T is no *Error: %v", err, err)
		}
	})
}
