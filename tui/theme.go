package tui

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/themes"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// setTheme puts another theme in force.
func (m *Model) setTheme(f *themes.File) {
	m.ink.Theme = f.Compile(m.opt.Depth)
	m.refresh()
}

// nextTheme goes on to the next of the themes known by name.
func (m *Model) nextTheme() {
	if len(m.opt.Themes) == 0 {
		return
	}
	m.theme = (m.theme + 1) % len(m.opt.Themes)
	f := m.opt.Themes[m.theme]
	m.setTheme(f)
	m.say(view.Done, cell.Say("theme %s", cell.Foreign(f.Name)))
}

// fileStamp is what tells one state of a file from another.
type fileStamp struct {
	size int64
	at   time.Time
}

// themeMsg is a theme file that has changed: read anew, or what is wrong.
type themeMsg struct {
	file  *themes.File
	err   error
	stamp fileStamp
}

// lookAtTheme reads the operator's theme file again when it has changed. It
// looks once a second, away from the screen's goroutine.
func (m *Model) lookAtTheme() tea.Cmd {
	path, seen := m.opt.ThemePath, m.themeSeen
	if path == "" || m.ticks%4 != 0 {
		return nil
	}
	return func() tea.Msg {
		info, err := os.Stat(path)
		if err != nil {
			return nil // an editor may be replacing it: look again in a second
		}
		stamp := fileStamp{info.Size(), info.ModTime()}
		if stamp == seen {
			return nil
		}
		f, err := themes.Load(path)
		return themeMsg{f, err, stamp}
	}
}

// onTheme takes the file over; a broken one leaves the theme as it was and says
// which line is wrong.
func (m *Model) onTheme(t themeMsg) {
	first := m.themeSeen == fileStamp{}
	m.themeSeen = t.stamp
	switch {
	case t.err != nil:
		var wrong *themes.Error
		if errors.As(t.err, &wrong) { // the row is short: its name will do for the path
			wrong.File = filepath.Base(wrong.File)
		}
		m.say(view.Failed, cell.Foreign(t.err.Error()))
	case !first: // the first look finds what was loaded at the start
		m.setTheme(t.file)
		m.say(view.Done, cell.Say("theme %s read again", cell.Foreign(t.file.Name)))
	}
}
