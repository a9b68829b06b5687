package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// turnMouse asks the terminal to report the mouse, or not to: while it does, the
// terminal's own selection of text needs shift.
func (m *Model) turnMouse() tea.Cmd {
	m.mouse = !m.mouse
	if !m.mouse {
		m.say(view.Done, cell.Lit("mouse off: the terminal selects text again"))
		return tea.DisableMouse
	}
	m.say(view.Done, cell.Say("mouse on: wheel moves, tabs can be clicked · hold shift to select text · %s off", m.keyOf(command.Mouse)))
	return tea.EnableMouseCellMotion
}

// onMouse moves the cursor by the wheel, and shows the view whose tab is
// clicked. Nothing else can be clicked: no action starts by a slip of the hand.
func (m *Model) onMouse(e tea.MouseEvent) tea.Cmd {
	if !m.mouse || e.Action != tea.MouseActionPress {
		return nil
	}
	switch {
	case e.Button == tea.MouseButtonWheelUp, e.Button == tea.MouseButtonWheelDown:
		key := "up"
		if e.Button == tea.MouseButtonWheelDown {
			key = "down"
		}
		if len(m.dialogs) > 0 {
			return m.onKey(view.Key{Name: key})
		}
		return m.run(map[string]command.ID{"up": command.Up, "down": command.Down}[key])
	case e.Button == tea.MouseButtonLeft && len(m.dialogs) == 0 && !m.screen.Tabs.Empty() && e.Y == m.screen.Tabs.Y:
		if i, ok := m.tabAt(e.X); ok {
			m.goTo(i)
		}
	}
	return nil
}
