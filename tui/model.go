package tui

import (
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/trend"
	"adpdeck/tui/view"
)

// ReadPeriod is how often the console reads its client's view: a client that
// makes views more often makes them for nobody.
const ReadPeriod = 250 * time.Millisecond

// The rhythm of the console.
const (
	tickPeriod   = ReadPeriod
	eagerPeriod  = 20 * time.Millisecond // until the first state, or
	eagerTicks   = 50                    // so many looks
	samplePeriod = time.Second           // trends and the past
	toastTime    = 6 * time.Second
)

// Model is the console as Bubble Tea sees it.
type Model struct {
	opt    Options
	table  *command.Table
	theme  int // of opt.Themes
	ink    cell.Ink
	screen layout.Screen

	live    *feed.View // as read last
	link    command.Link
	frame   view.Frame
	trends  *trend.Book
	past    past
	sampled time.Time
	sampleO time.Time // router time of the newest sample

	shown   int // index of the view on the screen
	dialogs []opened
	staged  []model.FieldValue
	toast   toast
	pending map[string]model.Command
	// expected is the version that an accepted or running command makes, 0 for
	// none.
	expected uint64
	blurred  bool
	mouse    bool // the terminal reports the mouse
	ticks    int
	speed    float64 // to go back to after a pause

	looked map[alertKey]bool // alerts that ! has shown, those that still stand

	lastKey string
	recent  []string // commands typed by name, newest last

	themeSeen fileStamp // of opt.ThemePath

	out              io.Writer // for copies; nil without a terminal
	tmux, screenTerm bool

	dirty  bool
	drawn  string
	badge  string
	ending bool
}

// New returns a console that has not been sized yet.
func New(opt Options) *Model {
	opt.defaults()
	m := &Model{opt: opt, table: opt.Keys, trends: trend.NewBook(), pending: map[string]model.Command{}, speed: 1, dirty: true}
	m.ink = cell.Ink{Theme: opt.Theme.Compile(opt.Depth), Glyphs: opt.Glyphs}
	for i, f := range opt.Themes {
		if f.Name == opt.Theme.Name {
			m.theme = i
		}
	}
	m.frame.Keys = m.table
	m.read(opt.Now())
	if opt.Note != "" {
		m.say(view.Failed, cell.Foreign(opt.Note))
	}
	return m
}

type tickMsg time.Time

// tick waits for the next look at the data: short at the start, until there is
// something to show, so that the first frame does not wait for a whole period.
func (m *Model) tick() tea.Cmd {
	d := tickPeriod
	if m.live.State == nil && m.ticks < eagerTicks {
		d = eagerPeriod
	}
	return tea.Tick(d, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// Init starts the ticks.
func (m *Model) Init() tea.Cmd { return m.tick() }

// Update takes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tickMsg:
		m.onTick()
		return m, tea.Batch(m.tick(), m.lookAtTheme())
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyMsg:
		return m, m.onKeys(msg)
	case tea.MouseMsg:
		return m, m.onMouse(tea.MouseEvent(msg))
	case replyMsg:
		m.onReply(msg)
	case themeMsg:
		m.onTheme(msg)
	case exportedMsg:
		m.onExported(msg)
	case tea.FocusMsg:
		m.blurred = false
	case tea.BlurMsg:
		m.blurred = true
	case tea.ResumeMsg:
		m.dirty = true
		if m.mouse { // the shell has turned it off
			return m, tea.EnableMouseCellMotion
		}
	}
	return m, nil
}

func (m *Model) resize(w, h int) {
	m.screen = layout.Divide(min(w, maxSide), min(h, maxSide))
	m.frame.ScreenW, m.frame.ScreenH, m.frame.Form = m.screen.W, m.screen.H, m.screen.Form
	m.dirty = true
}

// maxSide bounds a screen, whatever the terminal claims.
const maxSide = 2000

// onTick reads the newest view; a window without the focus is read once a
// second.
func (m *Model) onTick() {
	m.ticks++
	now := m.opt.Now()
	if !m.blurred || m.ticks%4 == 0 {
		m.read(now)
	}
	if m.toast.expire(now) {
		m.dirty = true
	}
}

// read takes over what the client has and makes the frame that views draw from.
func (m *Model) read(now time.Time) {
	v := m.opt.Client.View()
	if m.live == nil || v.Rev != m.live.Rev {
		m.dirty = true
	}
	m.live = v
	m.setLink(now)
	if v.State != nil && m.expected != 0 && v.State.Version >= m.expected && len(m.pending) == 0 {
		m.expected = 0
	}
	m.sample(now)
	m.makeFrame(now)
	if b := m.badgeText(now).String(); b != m.badge {
		m.badge, m.dirty = b, true
	}
}

// sample takes one trend sample and one moment of the past a second, while
// figures move.
func (m *Model) sample(now time.Time) {
	s := m.live.State
	fresh := m.live.Link.Phase != feed.PhaseLost && !m.live.Link.Stale(now)
	if s == nil || !fresh || s.At.Equal(m.sampleO) || now.Sub(m.sampled) < samplePeriod-tickPeriod/2 {
		return
	}
	m.sampled, m.sampleO = now, s.At
	m.trends.Sample(s)
	m.past.add(newMoment(m.live, now, m.trends.Samples()))
}

// setLink says in what condition the figures on the screen are.
func (m *Model) setLink(now time.Time) {
	l := &m.live.Link
	link := command.LinkLive
	switch {
	case m.past.held != nil:
		link = command.LinkFrozen
	case m.live.State == nil:
		link = command.LinkNone
	case l.Stale(now):
		link = command.LinkStale
	case l.Phase == feed.PhaseReplay:
		link = command.LinkReplay
	case l.Slow(now):
		link = command.LinkSlow
	}
	if link != m.link {
		m.link, m.dirty = link, true
	}
}

// makeFrame fills the frame: the live state, or the frozen moment.
func (m *Model) makeFrame(now time.Time) {
	f := &m.frame
	f.Trends, f.Ink, f.Link, f.Staged = m.trends, m.ink, m.link, m.staged
	f.Ink.Old = m.link == command.LinkStale
	f.Busy = len(m.dialogs) > 0
	f.Lost = nil
	m.trends.SetBack(0)
	if held := m.past.held; held != nil {
		f.State, f.Decisions, f.Settled = held.state, held.decisions, held.settled
		f.Rev = 1<<63 | uint64(held.at.UnixNano())
		f.Now = held.state.At
		m.trends.SetBack(m.trends.Samples() - held.sample)
		return
	}
	v := m.live
	f.State, f.Decisions, f.Settled, f.Rev = v.State, v.Decisions, v.Settled, v.Rev
	if v.State == nil {
		return
	}
	f.Now = v.State.At
	if m.link == command.LinkStale {
		age := v.Link.Age(now)
		f.Now = f.Now.Add(age)
		f.Lost = &view.Lost{Since: v.State.At, Age: age, Err: v.Link.Err, Attempt: v.Link.Attempt}
		if !v.Link.NextTry.IsZero() {
			f.Lost.Next = max(0, v.Link.NextTry.Sub(now))
		}
	}
}

// refresh makes the frame anew after something of the operator's changed.
func (m *Model) refresh() {
	now := m.opt.Now()
	m.setLink(now)
	m.makeFrame(now)
	m.dirty = true
}

// current returns the view on the screen, nil when the console has none.
func (m *Model) current() view.View {
	if m.shown >= len(m.opt.Views) {
		return nil
	}
	return m.opt.Views[m.shown]
}

// situation is what decides which commands are on.
func (m *Model) situation() *command.Situation {
	s := &command.Situation{Keys: m.table, Link: m.link, ReadOnly: m.live.Link.Role == "viewer", Staged: len(m.staged)}
	s.Refused, s.Compact = m.toast.shown && m.toast.again != nil, m.screen.Form != layout.Full
	if v := m.current(); v != nil {
		s.View = v.ID()
	}
	if st := m.frame.State; st != nil {
		s.Policy = st.Settings.AttentionDpConfig.Policy()
		s.Simulated = st.Source.Kind != "live" && st.Source.Kind != ""
		s.CanUndo = undoable(st.Revisions)
		s.Alerts = m.newAlerts()
		if v := m.current(); v != nil {
			v.Situate(&m.frame, s)
		}
	}
	return s
}

// undoable reports whether a change is left that can be taken back: the entry
// that the router made when it started is none.
func undoable(revs []model.Revision) bool {
	for i := range revs {
		if revs[i].Version > 1 && revs[i].UndoneBy == 0 && revs[i].Verb.Undoable() {
			return true
		}
	}
	return false
}

// View returns the frame, drawn anew only when something changed.
func (m *Model) View() string {
	if m.ending {
		return ""
	}
	if m.dirty {
		m.drawn = strings.Join(m.Lines(), "\n")
		m.dirty = false
	}
	return m.drawn
}
