package tui

import (
	"regexp"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/themes"
)

// The mock-ups' rows, cell by cell, with the product's full name.
func TestFrameAsDrawn(t *testing.T) {
	for name, c := range map[string]struct {
		w, h, line int
		change     func(*feed.View, *model.State)
		want       string
	}{
		"header 80":  {80, 24, 0, nil, ` adpdeck  PROD eu1 │ kv-aware β 1.00 │ v1412   ● live 12 ms  operator  14:02:31 `},
		"header 120": {120, 40, 0, nil, ` adpdeck  PROD eu1 │ 16 ranks │ kv-aware  β 1.00  match 0.10  share ×2.00 │ v1412    ● live 12 ms   operator   14:02:31 `},
		"header 40":  {40, 12, 0, nil, ` adpdeck PROD eu1               ● 12 ms `},
		"tabs 80":    {80, 24, 1, nil, ` [1 Ranks]  2 Convs  3 Tuning                                                 ? `},
		"tabs 120":   {120, 40, 1, nil, ` [1 Ranks]   2 Convs   3 Tuning` + strings.Repeat(" ", 82) + `? keys `},
		"hints 80":   {80, 24, 23, nil, ` / filter  s sort  ⏎ inspect  W weight  D drain  : command  z freeze  q quit  `},
		"status 80":  {80, 24, 22, nil, ` 16 ranks · sort rank ▲` + strings.Repeat(" ", 47) + `no alerts `},
		"viewer": {
			80, 24, 0, func(v *feed.View, _ *model.State) { v.Link.Role = "viewer" },
			` adpdeck  PROD eu1 │ kv-aware β 1.00 │ v1412  ● live 12 ms  read-only  14:02:31 `,
		},
		"stale": {
			80, 24, 0, func(v *feed.View, _ *model.State) { v.Link.LastFrame = start().Add(-7200 * time.Millisecond) },
			` adpdeck  PROD eu1 │ kv-aware β 1.00 │ v1412  ✕ STALE 7.2 s  operator  14:02:38 `,
		},
		"slow": {
			80, 24, 0, func(v *feed.View, _ *model.State) { v.Link.LastFrame = start().Add(-2100 * time.Millisecond) },
			` adpdeck  PROD eu1 │ kv-aware β 1.00 │ v1412   ◐ slow 2.1 s  operator  14:02:31 `,
		},
		"replay": {
			80, 24, 0, func(v *feed.View, _ *model.State) { v.Link.Phase = feed.PhaseReplay; v.Link.Replay.Speed = 4 },
			` adpdeck  PROD eu1 │ kv-aware β 1.00 │ v1412    ▷ REPLAY ×4  operator  14:02:31 `,
		},
		"simulation": {
			80, 24, 0, func(v *feed.View, s *model.State) { s.Source = model.Source{Kind: "simulated", Speed: 2} },
			``,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newConsole(t, c.w, c.h)
			if c.change != nil {
				m.client.set(c.change)
				m.pass(0)
			}
			if c.want == "" {
				m.want(c.line, "PROD eu1 ×2 │ kv-aware β 1.00 │ v1412")
				return
			}
			got := m.line(c.line)
			if ansi.StringWidth(got) != c.w {
				t.Errorf("%d cells, want %d", ansi.StringWidth(got), c.w)
			}
			if squeeze(got) != squeeze(c.want) {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// squeeze makes runs of blanks one, for lines whose filling depends on widths.
func squeeze(s string) string { return regexp.MustCompile(`  +`).ReplaceAllString(s, "  ") }

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// checkLines fails unless the screen is exactly h lines of w cells with no
// control bytes but colours.
func checkLines(t *testing.T, lines []string, w, h int, what string) {
	t.Helper()
	if len(lines) != h {
		t.Fatalf("%s at %d×%d: %d lines", what, w, h, len(lines))
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n != w {
			t.Fatalf("%s at %d×%d: line %d is %d cells: %q", what, w, h, i, n, l)
		}
		for _, r := range sgr.ReplaceAllString(l, "") {
			if r < 0x20 || (r >= 0x7f && r < 0xa0) {
				t.Fatalf("%s at %d×%d: line %d holds %U", what, w, h, i, r)
			}
		}
	}
}

func TestEverySizeIsExact(t *testing.T) {
	hostile := func(v *feed.View, s *model.State) {
		s.Ranks[3].Target.Worker = "w\x1b[2J\u202e会話会話会話"
		v.Link.Role = "oper\x9bator"
		v.Link.Err = "dial tcp: \x1b]0;x\x07 refused"
		s.Revisions[0].What = "\n\n"
	}
	for name, prepare := range map[string]func(*console){
		"normal":  func(*console) {},
		"hostile": func(c *console) { c.client.set(hostile) },
		"stale":   func(c *console) { c.client.set(func(v *feed.View, _ *model.State) { v.Link.Phase = feed.PhaseLost }) },
		"empty": func(c *console) {
			c.client.view = &feed.View{Link: feed.Link{Phase: feed.PhaseConnecting, Err: "refused", Attempt: 3}}
		},
		"frozen":  func(c *console) { c.press("z") },
		"help":    func(c *console) { c.press("?") },
		"found":   func(c *console) { c.press("?"); c.typeText("mo") },
		"palette": func(c *console) { c.press(":"); c.typeText("weight w") },
		"confirm": func(c *console) { c.press(":"); c.typeText("pin conv-1 w0/3"); c.press("enter") },
		"quit":    func(c *console) { c.opt.Embedded = true; c.press("q") },
		"ascii":   func(c *console) { c.ink.Glyphs = themes.ASCII(); c.press("?") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t, 80, 24)
			prepare(c)
			c.pass(0)
			step := 5 // of the height, from another one for each width
			if name == "normal" {
				step = 1
			}
			if testing.Short() {
				step = 23
			}
			for w := 20; w <= 220; w++ {
				for h := 6 + w%step; h <= 70; h += step {
					c.Update(tea.WindowSizeMsg{Width: w, Height: h})
					checkLines(t, c.Lines(), w, h, name)
				}
			}
			for _, size := range [][2]int{{1, 1}, {2, 2}, {5, 3}, {19, 5}, {300, 100}} {
				c.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				checkLines(t, c.Lines(), size[0], size[1], name)
			}
		})
	}
}

func BenchmarkFrame200x60(b *testing.B) {
	c := newConsole(nil, 200, 60)
	b.ReportAllocs()
	for b.Loop() {
		c.dirty = true
		_ = c.View()
	}
}
