package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// alertKey names an alert: a finding by what, where and since when, a warning
// or an error by the event's number and time, as a router that starts anew
// counts from 1 again.
type alertKey struct {
	code   string // of a finding
	target model.Target
	event  uint64
	at     int64 // Unix time in nanoseconds
}

// alert is something that an operator should have looked at.
type alert struct {
	key  alertKey
	to   view.Goto
	text cell.Text
}

// maxAlertCells bounds what the toast says of an alert, maxLooked how many are
// remembered before those that no longer stand are forgotten.
const (
	maxAlertCells = 120
	maxLooked     = 2 * (model.MaxEvents + model.MaxFindings)
)

// eachAlert calls do for the findings, oldest first, then for the warnings and
// errors, newest first, until do returns false.
func eachAlert(s *model.State, do func(k alertKey, x *model.Finding, e *model.Event) bool) {
	for i := range s.Findings {
		x := &s.Findings[i]
		if !do(alertKey{code: x.Code, target: x.Target, at: x.Since.UnixNano()}, x, nil) {
			return
		}
	}
	for i := range s.Events {
		e := &s.Events[i]
		if e.Level == "info" || e.Level == "" {
			continue
		}
		if !do(alertKey{event: e.ID, at: e.At.UnixNano()}, nil, e) {
			return
		}
	}
}

// newAlerts counts the alerts that were not looked at.
func (m *Model) newAlerts() int {
	n := 0
	eachAlert(m.frame.State, func(k alertKey, _ *model.Finding, _ *model.Event) bool {
		if !m.looked[k] {
			n++
		}
		return true
	})
	return n
}

// nextAlert shows the next alert that was not looked at: a finding where the
// cursor can be put on its rank or worker, an event among the events.
func (m *Model) nextAlert() tea.Cmd {
	s := m.frame.State
	if s == nil {
		return nil
	}
	var next *alert
	stands := make(map[alertKey]bool, len(m.looked)+1)
	more := 0
	eachAlert(s, func(k alertKey, x *model.Finding, e *model.Event) bool {
		switch {
		case m.looked[k]:
			stands[k] = true
		case next != nil:
			more++
		case x != nil:
			next = m.findingAlert(k, x)
		default:
			next = eventAlert(k, e)
		}
		return true
	})
	if m.looked == nil || len(m.looked) > maxLooked {
		m.looked = stands
	}
	if next == nil {
		return nil
	}
	m.looked[next.key] = true
	text := next.text
	if more > 0 {
		text = cell.Say("%s · %s %s more", text, m.keyOf(command.Alert), cell.Int(more))
	}
	return m.carry(view.All{next.to, view.Toast{Level: view.Alert, Text: text}})
}

// findingAlert leads to the index where it lists the rank, else to the workers.
func (m *Model) findingAlert(k alertKey, x *model.Finding) *alert {
	to := view.Goto{View: command.Workers, At: view.Subject{Target: x.Target}}
	for i := range m.frame.State.Index {
		if m.frame.State.Index[i].Target == x.Target {
			to.View = command.Index
		}
	}
	return &alert{key: k, to: to, text: cell.Fit(x.Message, maxAlertCells)}
}

func eventAlert(k alertKey, e *model.Event) *alert {
	text := cell.Say("%s %s: %s", cell.Clock(e.At), cell.Fit(e.Who, 16), cell.Fit(e.What, maxAlertCells))
	return &alert{key: k, to: view.Goto{View: command.Events, At: view.Subject{Event: e.ID}}, text: text}
}
