package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/themes"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// sorted makes the fake view one that can be sorted.
type sortedView struct {
	*fakeView
	by string
}

func (v *sortedView) SortFields() (names []string, now string, falling bool) {
	return []string{"rank", "active", "tokens", "hit", "pins"}, v.by, false
}
func (v *sortedView) SortBy(name string) bool { v.by = name; return true }

// Whole screens of the frame and its own dialogs, as bare cells.
func TestFrames(t *testing.T) {
	for name, prepare := range map[string]func(*console){
		"help":    func(c *console) { c.press("?") },
		"search":  func(c *console) { c.press("?"); c.typeText("step") },
		"palette": func(c *console) { c.press(":"); c.typeText("p") },
		"argument": func(c *console) {
			c.press(":")
			c.typeText("weight w1/")
		},
		"confirm": func(c *console) { c.press(":"); c.typeText("drain w0/3"); c.press("enter") },
		"quit":    func(c *console) { c.opt.Embedded = true; c.press("q") },
		"sort": func(c *console) {
			v := &sortedView{fakeView: c.views[0], by: "tokens"}
			c.opt.Views[0] = v
			v.do = func(command.ID) (view.Intent, bool) { return nil, false }
			c.press("s")
		},
		"waiting": func(c *console) {
			c.client.view = &feed.View{Link: feed.Link{Phase: feed.PhaseConnecting, Err: "dial tcp 127.0.0.1:7700: connect: connection refused", Attempt: 3, NextTry: c.now.Add(2 * time.Second)}}
			c.pass(0)
		},
		"stale":  func(c *console) { c.live(11); c.pass(7200 * time.Millisecond) },
		"frozen": func(c *console) { c.live(30); c.press("z"); c.live(4); c.press("<") },
		"done":   func(c *console) { c.press("U") },
		"refused": func(c *console) {
			c.client.answer = func(model.Command) (model.Reply, bool) {
				return model.Reply{Refusal: &model.Refusal{Code: model.RefusedUndo, Message: "nothing is left to undo", Next: "look at the history in Tuning"}}, true
			}
			c.press("U")
		},
		"ascii": func(c *console) { c.ink.Glyphs = themes.ASCII(); c.refresh() },
	} {
		for _, size := range [][2]int{{40, 12}, {80, 24}, {120, 40}} {
			t.Run(fmt.Sprintf("%s_%dx%d", name, size[0], size[1]), func(t *testing.T) {
				c := newConsole(t, 80, 24)
				prepare(c)
				c.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				lines := c.Lines()
				checkLines(t, lines, size[0], size[1], name)
				golden.RequireEqual(t, ansi.Strip(strings.Join(lines, "\n")+"\n"))
			})
		}
	}
}

// The themes' own sequences on one screen.
func TestThemesOnTheFrame(t *testing.T) {
	for _, name := range themes.Names() {
		for depth, label := range map[themes.Depth]string{themes.TrueColour: "true", themes.Colours256: "256", themes.Colours16: "16", themes.NoColour: "none"} {
			t.Run(name+"_"+label, func(t *testing.T) {
				c := newConsole(t, 80, 24)
				c.opt.Depth = depth
				c.setTheme(loadTheme(name))
				c.live(3)
				c.press("?")
				lines := c.Lines()
				checkLines(t, lines, 80, 24, name)
				if depth == themes.TrueColour {
					golden.RequireEqual(t, strings.Join(lines, "\n")+"\n")
				}
				if all := strings.Join(lines, "\n"); depth == themes.NoColour {
					if strings.Contains(all, "38;") || !strings.Contains(all, "\x1b[;1") {
						t.Error("without colours bold must stay and colours must go")
					}
				}
			})
		}
	}
}
