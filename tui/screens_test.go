package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/themes"
	"adpdeck/tui/convs"
	"adpdeck/tui/fixture"
)

// screen is the console with its real views over a fixture.
func screen(t *testing.T, s *model.State, w, h int) *console {
	return screenWith(t, s, w, h, func(*Options) {})
}

// screenWith is screen with other options.
func screenWith(t *testing.T, s *model.State, w, h int, change func(*Options)) *console {
	c := &console{t: t, client: testClient(), now: fixture.Now()}
	c.client.view = &feed.View{
		State: s, Decisions: fixture.DecisionsOf(s), Settled: fixture.SettledOf(fixture.DecisionsOf(s)), Rev: 1,
		Link: feed.Link{Phase: feed.PhaseLive, LastFrame: c.now, Period: time.Second, RTT: 12 * time.Millisecond, Role: "operator"},
	}
	opt := testOptions(c.client, Views()...)
	opt.Context = ""
	opt.Now = func() time.Time { return c.now }
	change(&opt)
	c.Model = New(opt)
	c.Model.trends = fixture.Trends(s)
	c.Update(tea.WindowSizeMsg{Width: w, Height: h})
	c.refresh()
	return c
}

// wait lets a dialog's first moment pass.
func (c *console) wait() { c.now = c.now.Add(time.Second); c.client.view.Link.LastFrame = c.now }

// dialogs are the keys that open each dialog, and what they open it on.
func dialogs() map[string]func(c *console) {
	conv := func(c *console) { c.press("2"); c.on("tenant-a", "conv-77fd0031-1f0f") }
	many := func(c *console) {
		c.press("2")
		c.views2().SetFilter("rank:w0/3")
		c.press("*")
	}
	return map[string]func(c *console){
		"pin":     func(c *console) { conv(c); c.press("P") },
		"pin_op":  func(c *console) { c.press("2"); c.on("tenant-c", "run-2291/agent-3"); c.press("P") },
		"migrate": func(c *console) { conv(c); c.press(" "); c.on("tenant-a", "conv-c0de4410-77b1"); c.press(" ", "M") },
		"evict":   func(c *console) { conv(c); c.press("E") },
		"evict_many": func(c *console) {
			many(c)
			c.press("E")
			c.wait()
			c.typeText("23")
		},
		"drain":  func(c *console) { c.press("1", "j", "j", "j", "D") },
		"weight": func(c *console) { c.press("1", "j", "j", "j", "W"); c.typeText("0.80") },
		"weight_refused": func(c *console) {
			c.press("1", "W")
			c.typeText("3")
		},
		"apply":        func(c *console) { c.press("5", "}", "j", "-", "A") },
		"reason":       func(c *console) { c.press("5", "}", "A"); c.wait(); c.press("r"); c.typeText("flatter fleet") },
		"policy":       func(c *console) { c.press("5", "o", "j") },
		"undo":         func(c *console) { c.press("5", "G", "U") },
		"drain_worker": func(c *console) { c.press("7", "j", "D") },
		"undo_event":   func(c *console) { c.press("6", "U") },
	}
}

func (c *console) views2() *convs.View { return c.opt.Views[1].(*convs.View) }

// on puts the cursor of Convs on a conversation.
func (c *console) on(tenant, id string) {
	c.refresh()
	c.View()
	if !c.views2().Select(model.ConvKey{Tenant: tenant, Model: "m-70b-chat", ID: id}) {
		c.t.Fatalf("no conversation %s", id)
	}
	c.refresh()
}

func TestDialogScreens(t *testing.T) {
	for name, open := range dialogs() {
		for _, s := range [][2]int{{40, 12}, {80, 24}, {120, 40}} {
			t.Run(fmt.Sprintf("%s_%dx%d", name, s[0], s[1]), func(t *testing.T) {
				c := screen(t, fixture.Normal(), s[0], s[1])
				open(c)
				c.refresh()
				lines := c.Lines()
				if err := fixture.Check(lines, s[0], s[1]); err != nil {
					t.Error(err)
				}
				golden.RequireEqual(t, fixture.Text(lines))
			})
		}
	}
}

func TestWholeScreens(t *testing.T) {
	for name, state := range map[string]*model.State{
		"normal": fixture.Normal(), "hot": fixture.Hot(), "wide64": fixture.Wide(64), "wide256": fixture.Wide(256),
		"empty": fixture.Empty(), "hostile": fixture.Hostile(), "oneold": fixture.OneOld(), "conversation": fixture.Conversation(),
		"kv": fixture.KV(), "lockstep": fixture.Indexed(model.ModeLockstep), "fleet": fixture.Fleet(), "hostile_fleet": fixture.HostileFleet(),
	} {
		for n, v := range []string{"ranks", "convs", "decisions", "index", "tuning", "events", "workers"} {
			for _, s := range [][2]int{{40, 12}, {80, 24}, {120, 40}} {
				t.Run(fmt.Sprintf("%s_%s_%dx%d", v, name, s[0], s[1]), func(t *testing.T) {
					c := screen(t, state, s[0], s[1])
					c.goTo(n)
					lines := c.Lines()
					if err := fixture.Check(lines, s[0], s[1]); err != nil {
						t.Error(err)
					}
					golden.RequireEqual(t, fixture.Text(lines))
				})
			}
		}
	}
}

// The views in each theme, with their colours.
func TestViewsInEachTheme(t *testing.T) {
	staged := func(c *console) { c.press("5", "}", "j", "-") }
	marked := func(c *console) { c.press("2", " ", " ", "j", "j") }
	hot := func(c *console) { c.press("1", "j", "j") }
	for _, theme := range themes.Names() {
		for name, then := range map[string]func(c *console){
			"ranks": hot, "convs": marked, "tuning": staged,
			"decisions": func(c *console) { c.press("3", "j") }, "index": func(c *console) { c.press("4", "j", "e") },
			"events": func(c *console) { c.press("6", "j") }, "workers": func(c *console) { c.press("7", "j") },
		} {
			t.Run(theme+"_"+name, func(t *testing.T) {
				state := fixture.Hot()
				if name == "decisions" || name == "index" {
					state = fixture.KV()
				}
				if name == "events" || name == "workers" {
					state = fixture.Fleet()
				}
				c := screen(t, state, 80, 24)
				c.setTheme(loadTheme(theme))
				then(c)
				c.refresh()
				golden.RequireEqual(t, strings.Join(c.Lines(), "\n"))
			})
		}
	}
}
