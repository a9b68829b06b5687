package tui

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/themes"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// fakeClient is a client whose view and answers the test sets.
type fakeClient struct {
	mu      sync.Mutex
	view    *feed.View
	sent    []model.Command
	answer  func(model.Command) (model.Reply, bool)
	retries int
}

func (c *fakeClient) View() *feed.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view
}

func (c *fakeClient) Do(cmd model.Command) <-chan model.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, cmd)
	ch := make(chan model.Reply, 1)
	if r, ok := c.answer(cmd); ok {
		ch <- r
	}
	close(ch)
	return ch
}

func (c *fakeClient) RetryNow()    { c.retries++ }
func (c *fakeClient) Close() error { return nil }

// set publishes a changed view.
func (c *fakeClient) set(change func(*feed.View, *model.State)) {
	v, s := *c.view, model.State{}
	if c.view.State != nil {
		s = *c.view.State
	}
	v.State = &s
	v.Rev++
	change(&v, &s)
	c.mu.Lock()
	c.view = &v
	c.mu.Unlock()
}

// fakeView is a view that draws its cursor and remembers what it was told.
type fakeView struct {
	id     command.View
	title  cell.Text
	did    []command.ID
	typing bool
	levels int
	do     func(command.ID) (view.Intent, bool)
}

func (v *fakeView) ID() command.View { return v.id }
func (v *fakeView) Title() cell.Text { return v.title }
func (v *fakeView) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	for i := range f.State.Ranks {
		b.Begin(cell.Normal)
		b.Put(cell.Plain, cell.Lit("   "))
		b.Left(cell.Plain, 7, cell.Foreign(f.State.Ranks[i].Target.String()))
		b.Bar(17, cell.Bar{Value: float64(f.State.Ranks[i].Active), Max: 16, Tick: 11, Role: cell.BarFill})
		b.Spark(cell.Trend, 30, f.Trends.Tokens(f.State.Ranks[i].Target, 30), 0, 60000)
	}
	return b.Lines(h)
}

func (v *fakeView) Status(f *view.Frame) (left, right []cell.Run) {
	return []cell.Run{{Text: cell.Say("%s ranks · sort rank ▲", cell.Int(len(f.State.Ranks)))}}, []cell.Run{{Role: cell.Dim, Text: cell.Lit("no alerts")}}
}
func (v *fakeView) Situate(_ *view.Frame, s *command.Situation) { s.Selected = true }
func (v *fakeView) Do(_ *view.Frame, c command.ID) (view.Intent, bool) {
	v.did = append(v.did, c)
	if v.do != nil {
		return v.do(c)
	}
	return nil, true
}
func (v *fakeView) Typing() bool { return v.typing }
func (v *fakeView) Key(_ *view.Frame, k view.Key) view.Intent {
	v.did = append(v.did, command.ID("typed "+k.Name))
	return nil
}

func (v *fakeView) Back(*view.Frame) bool {
	if v.levels > 0 {
		v.levels--
		return true
	}
	return false
}

// console is a model under test with its own clock.
type console struct {
	*Model
	t      *testing.T
	client *fakeClient
	views  []*fakeView
	now    time.Time
}

func start() time.Time { return time.Date(2026, 1, 2, 14, 2, 31, 0, time.UTC) }

func testState() *model.State {
	s := &model.State{At: start(), Version: 1412, Source: model.Source{Kind: "live"}}
	s.Settings.AttentionDpConfig = model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware)
	s.Settings.RouterMode = model.ModeRoundRobin
	s.Totals = model.Totals{RequestsPerSec: 412, TTFTMsP50: 183, Hit: 0.874, Skew: 1.38, Queued: 8}
	for w := range 2 {
		for r := range 8 {
			s.Ranks = append(s.Ranks, model.Rank{
				Target: model.Target{Worker: fmt.Sprintf("w%d", w), Rank: r}, Availability: model.Ready, Weight: 1,
				Active: 9 + (w+3*r)%5, MaxActive: 16, Tokens: 38000 + 900*r, ReportedAt: start(),
			})
		}
	}
	s.Revisions = []model.Revision{{Version: 1412, Actor: "ann", Verb: model.VerbDrain, What: "drain w1/2"}}
	s.Convs = []*model.Conv{{Key: model.ConvKey{ID: "conv-1"}}, {Key: model.ConvKey{ID: "twice", Tenant: "a"}}, {Key: model.ConvKey{ID: "twice", Tenant: "b"}}}
	return s
}

func testClient() *fakeClient {
	return &fakeClient{
		view: &feed.View{State: testState(), Rev: 1, Link: feed.Link{
			Phase: feed.PhaseLive, LastFrame: start(), Period: time.Second, RTT: 12 * time.Millisecond, Role: "operator",
		}},
		answer: func(c model.Command) (model.Reply, bool) {
			return model.Reply{ID: c.ID, Accepted: true, Version: c.Expect + 1, What: "β 1.00 → 4.00"}, true
		},
	}
}

func loadTheme(name string) *themes.File {
	f, err := themes.Load(name)
	if err != nil {
		panic(err)
	}
	return f
}

func testOptions(c Client, views ...view.View) Options {
	return Options{
		Client: c, Views: views, Theme: loadTheme("mono"), Themes: []*themes.File{loadTheme("night"), loadTheme("mono")},
		Depth: themes.TrueColour, Glyphs: themes.Unicode(), Context: "PROD eu1", Actor: "bob", NewID: func() string { return "id-1" },
		Address: "ws://127.0.0.1:7700",
	}
}

func newConsole(t *testing.T, w, h int) *console {
	c := &console{t: t, client: testClient(), now: start()}
	c.views = []*fakeView{{id: command.Ranks, title: cell.Lit("Ranks")}, {id: command.Convs, title: cell.Lit("Convs")}, {id: command.Tuning, title: cell.Lit("Tuning")}}
	opt := testOptions(c.client, c.views[0], c.views[1], c.views[2])
	opt.Now = func() time.Time { return c.now }
	c.Model = New(opt)
	c.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return c
}

// press types keys, named as in the command table, and carries out what they
// start.
func (c *console) press(keys ...string) {
	c.t.Helper()
	for _, k := range keys {
		_, cmd := c.Update(keyMsg(k))
		c.finish(cmd)
	}
}

func (c *console) finish(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, one := range msg {
			c.finish(one)
		}
	case nil:
	default:
		c.Update(msg)
	}
}

func keyMsg(k string) tea.KeyMsg {
	for t, name := range map[tea.KeyType]string{
		tea.KeyEnter: "enter", tea.KeyEsc: "esc", tea.KeyCtrlC: "ctrl+c", tea.KeyTab: "tab", tea.KeyBackspace: "backspace",
		tea.KeyUp: "up", tea.KeyDown: "down", tea.KeyLeft: "left", tea.KeyRight: "right", tea.KeyCtrlR: "ctrl+r", tea.KeyCtrlT: "ctrl+t", tea.KeyCtrlU: "ctrl+u",
		tea.KeyF1: "f1", tea.KeyF2: "f2", tea.KeyF5: "f5",
	} {
		if name == k {
			return tea.KeyMsg{Type: t}
		}
	}
	if k == " " {
		return tea.KeyMsg{Type: tea.KeySpace, Runes: []rune{' '}}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
}

func (c *console) typeText(s string) {
	for _, r := range s {
		c.press(string(r))
	}
}

// pass moves the clock on and ticks.
func (c *console) pass(d time.Duration) {
	c.now = c.now.Add(d)
	c.Update(tickMsg(c.now))
}

// live moves the clock on with a fresh frame each second.
func (c *console) live(seconds int) {
	for range seconds {
		c.client.set(func(v *feed.View, s *model.State) {
			v.Link.LastFrame = c.now.Add(time.Second)
			s.At = s.At.Add(time.Second)
		})
		c.pass(time.Second)
	}
}

// line returns the bare cells of a line of the screen, counted from 0, or from
// the end when negative.
func (c *console) line(n int) string {
	lines := strings.Split(c.View(), "\n")
	if n < 0 {
		n += len(lines)
	}
	if n >= len(lines) {
		return ""
	}
	return ansi.Strip(lines[n])
}

func (c *console) want(n int, text string) {
	c.t.Helper()
	if got := c.line(n); !strings.Contains(got, text) {
		c.t.Errorf("line %d is %q, want %q in it", n, got, text)
	}
}
