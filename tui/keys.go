package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// onKeys takes a key message. A terminal may hand over several typed letters
// as one; each is a key of its own, unless a text is being typed. Pasted text
// is only ever text.
func (m *Model) onKeys(msg tea.KeyMsg) tea.Cmd {
	if msg.Type != tea.KeyRunes || (len(msg.Runes) <= 1 && !msg.Paste) {
		return m.onKey(keyOf(msg))
	}
	if msg.Paste {
		if m.typing() {
			return m.onKey(view.Key{Name: "paste", Runes: msg.Runes})
		}
		m.say(view.Note, cell.Lit("pasted text is taken only where text is typed"))
		return nil
	}
	var cmds []tea.Cmd
	for _, r := range msg.Runes {
		cmds = append(cmds, m.onKey(view.Key{Name: string(r), Runes: []rune{r}}))
	}
	return tea.Batch(cmds...)
}

func keyOf(msg tea.KeyMsg) view.Key {
	k := view.Key{Name: msg.String()}
	if (msg.Type == tea.KeyRunes || msg.Type == tea.KeySpace) && !msg.Alt {
		k.Runes = msg.Runes
	}
	return k
}

// typing reports whether keys go into a text.
func (m *Model) typing() bool {
	if len(m.dialogs) > 0 {
		return true
	}
	v := m.current()
	return v != nil && v.Typing()
}

// onKey gives one key to the dialog on top, to a view that reads text, or to
// the command table.
func (m *Model) onKey(k view.Key) tea.Cmd {
	m.dirty, m.lastKey = true, k.Name
	if len(m.dialogs) > 0 {
		return m.dialogKey(k)
	}
	v := m.current()
	if v != nil && v.Typing() && m.frame.State != nil {
		in := v.Key(&m.frame, k)
		return m.carry(in)
	}
	// Enter on a broken link means: try now.
	if k.Name == "enter" && (m.link == command.LinkStale || m.link == command.LinkNone) {
		return m.run(command.Retry)
	}
	var id command.View
	if v != nil {
		id = v.ID()
	}
	c := m.table.ByKey(id, k.Name)
	if c == nil {
		return nil
	}
	return m.perform(c, k.Name)
}

// perform runs a command unless it is off, and then says why.
func (m *Model) perform(c *command.Command, key string) tea.Cmd {
	if why := c.Reason(m.situation()); why != "" {
		m.say(view.Note, cell.Say("%s is off: %s", keyText(m.ink, command.KeyName(key)), cell.Foreign(why)))
		return nil
	}
	return m.run(c.ID)
}

// keyOf is the first key of a command as it is drawn.
func (m *Model) keyOf(id command.ID) cell.Text { return keyText(m.ink, m.table.KeyOf(id)) }

// run carries out a command that is on.
func (m *Model) run(id command.ID) tea.Cmd {
	m.dirty = true
	for i := range m.opt.Views {
		if id == command.ViewID(i+1) {
			m.goTo(i)
			return nil
		}
	}
	switch id {
	case command.Back:
		m.back()
	case command.NextView:
		m.goTo(m.shown + 1)
	case command.PrevView:
		m.goTo(m.shown - 1)
	case command.Freeze:
		m.freeze()
	case command.StepBack, command.StepOn, command.LeapBack, command.LeapOn:
		m.step(id)
	case command.GoTime:
		m.show(&goTime{m: m})
	case command.Mouse:
		return m.turnMouse()
	case command.Theme:
		m.nextTheme()
	case command.Help:
		m.show(newHelp(m))
	case command.Palette:
		m.show(newPalette(m))
	case command.Retry:
		m.opt.Client.RetryNow()
		m.say(view.Note, cell.Lit("connecting now"))
	case command.Redraw:
		return tea.ClearScreen
	case command.Suspend:
		return tea.Suspend
	case command.Quit:
		return m.quit(false)
	case command.Interrupt:
		return m.quit(true)
	case command.Undo:
		if u, ok := m.current().(view.Undoer); ok {
			if in, ok := u.Undo(&m.frame); ok {
				return m.carry(in)
			}
		}
		return m.undo()
	case command.Alert:
		return m.nextAlert()
	case command.Slower, command.Faster, command.Pause:
		return m.changeSpeed(id)
	case command.Copy:
		return m.copySelected()
	case command.Export:
		m.show(&exportAs{})
	case command.Apply:
		if m.toast.shown && m.toast.again != nil && m.toast.again.Verb != model.VerbSet {
			return m.askAgain(*m.toast.again)
		}
		return m.runInView(id)
	default:
		return m.runInView(id)
	}
	return nil
}

// runInView gives a command to the view on the screen, then to the others:
// what is staged can be applied from anywhere.
func (m *Model) runInView(id command.ID) tea.Cmd {
	if m.frame.State == nil {
		return nil
	}
	order := []view.View{}
	if v := m.current(); v != nil {
		order = append(order, v)
	}
	if c := m.table.Get(id); c != nil && len(c.Views) == 0 {
		order = append(order, m.opt.Views...)
	}
	for _, v := range order {
		in, ok := v.Do(&m.frame, id)
		if ok {
			return m.carry(in)
		}
	}
	if s, ok := m.current().(view.Sorter); ok && id == command.Sort {
		m.show(newSortBy(s))
	}
	return nil
}

// goTo shows the n-th view, counted from 0, round about.
func (m *Model) goTo(n int) {
	if len(m.opt.Views) == 0 {
		return
	}
	m.shown = (n + len(m.opt.Views)) % len(m.opt.Views)
	m.refresh()
}

// back closes one level and reports whether there was one.
func (m *Model) back() bool {
	v := m.current()
	switch {
	case m.frame.State != nil && v != nil && v.Back(&m.frame):
	case v != nil && v.ID() == command.Tuning && len(m.staged) > 0:
		n := len(m.staged)
		m.unstage(view.Unstage{})
		m.say(view.Note, cell.Say("%s staged discarded", cell.Int(n)))
	default:
		return false
	}
	m.refresh()
	return true
}

// freeze holds what is on the screen, or goes live again.
func (m *Model) freeze() {
	switch {
	case m.past.held != nil:
		m.past.held = nil
	case m.live.State == nil:
		m.say(view.Note, cell.Lit("nothing has arrived yet"))
	default:
		m.past.held = newMoment(m.live, m.opt.Now(), m.trends.Samples())
	}
	m.refresh()
}

func (m *Model) step(id command.ID) {
	by := map[command.ID]time.Duration{
		command.StepBack: -time.Second, command.StepOn: time.Second,
		command.LeapBack: -10 * time.Second, command.LeapOn: 10 * time.Second,
	}[id]
	if !m.past.step(by) {
		end := cell.Lit("this is the oldest moment kept")
		if by > 0 {
			end = cell.Say("this is the newest moment: %s goes live again", m.keyOf(command.Freeze))
		}
		m.say(view.Note, end)
	}
	m.refresh()
}

// quit leaves, after a level that is open was closed, and after a question when
// traffic runs through this process. now skips the levels.
func (m *Model) quit(now bool) tea.Cmd {
	if !now && m.back() {
		return nil
	}
	if !m.opt.Embedded {
		return m.leave()
	}
	m.show(&quitDialog{m: m})
	return nil
}

func (m *Model) leave() tea.Cmd {
	m.ending = true
	return tea.Quit
}
