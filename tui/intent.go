package tui

import (
	"io"
	"strings"

	"github.com/aymanbagabas/go-osc52/v2"
	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// carry does what a view or a dialog wants.
func (m *Model) carry(in view.Intent) tea.Cmd {
	defer m.refresh()
	switch in := in.(type) {
	case view.Send:
		return m.send(in)
	case view.Show:
		m.show(in.Dialog)
	case view.Stage:
		m.stage(in.Values)
	case view.Unstage:
		m.unstage(in)
	case view.Toast:
		m.say(in.Level, in.Text)
	case view.Goto:
		m.goToView(in)
	case view.Perform:
		if c := m.table.Get(in.Command); c != nil {
			return m.perform(c, ":"+string(c.ID))
		}
	case view.Copy:
		return m.copy(in)
	case view.All:
		var cmds []tea.Cmd
		for _, one := range in {
			cmds = append(cmds, m.carry(one))
		}
		return tea.Batch(cmds...)
	case leaveIntent:
		return m.leave()
	case themeIntent:
		m.setTheme(in.file)
	case exportIntent:
		return m.export(in.format)
	}
	return nil
}

func (m *Model) goToView(g view.Goto) {
	for i, v := range m.opt.Views {
		if v.ID() == g.View {
			m.goTo(i)
			if f, ok := v.(view.Filterer); ok && g.Filter != "" {
				f.SetFilter(g.Filter)
			}
			if s, ok := v.(view.Seeker); ok && !g.At.Empty() && m.frame.State != nil {
				s.Seek(&m.frame, g.At)
			}
		}
	}
}

// maxStaged bounds the staged values: every field and a weight for each rank.
const maxStaged = 2048

// stage sets values that are not applied yet. The slice is made anew, as frames
// share it.
func (m *Model) stage(values []model.FieldValue) {
	staged := append([]model.FieldValue(nil), m.staged...)
	for _, v := range values {
		staged = without(staged, v.Field, v.Target)
		if len(staged) < maxStaged {
			staged = append(staged, v)
		}
	}
	m.staged = staged
}

func (m *Model) unstage(u view.Unstage) {
	if u.Field == "" {
		m.staged = nil
		return
	}
	m.staged = without(append([]model.FieldValue(nil), m.staged...), u.Field, u.Target)
}

func without(list []model.FieldValue, field string, t *model.Target) []model.FieldValue {
	out := list[:0]
	for _, v := range list {
		same := v.Field == field && (v.Target == nil) == (t == nil) && (t == nil || *v.Target == *t)
		if !same {
			out = append(out, v)
		}
	}
	return out
}

// copySelected copies what the view's cursor is on or what is marked.
func (m *Model) copySelected() tea.Cmd {
	c, ok := m.current().(view.Copier)
	if !ok {
		return nil
	}
	text := c.CopyText(&m.frame)
	if text == "" {
		m.say(view.Note, cell.Lit("nothing to copy"))
		return nil
	}
	n := strings.Count(text, "\n") + 1
	what := cell.Say("%s names", cell.Int(n))
	if n == 1 {
		what = cell.Fit(text, 40)
	}
	return m.copy(view.Copy{Text: text, What: what})
}

// maxCopyBytes is what terminals are known to take in one OSC 52.
const maxCopyBytes = 70_000

// copy hands text to the terminal's clipboard by OSC 52.
func (m *Model) copy(c view.Copy) tea.Cmd {
	if len(c.Text) > maxCopyBytes {
		m.say(view.Failed, cell.Say("not copied: %s bytes are more than terminals take (%s)", cell.Full(len(c.Text)), cell.Full(maxCopyBytes)))
		return nil
	}
	if m.out == nil {
		m.say(view.Failed, cell.Lit("not copied: no terminal"))
		return nil
	}
	seq := osc52.New(c.Text)
	switch {
	case m.tmux:
		seq = seq.Tmux()
	case m.screenTerm:
		seq = seq.Screen()
	}
	m.say(view.Done, cell.Say("copied %s", c.What))
	out, log := m.out, m.opt.Log
	return func() tea.Msg {
		if _, err := io.WriteString(out, seq.String()); err != nil {
			log.Warn("copy to the clipboard", "err", err)
		}
		return nil
	}
}
