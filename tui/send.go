package tui

import (
	"cmp"

	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// maxPending bounds the commands that wait for an answer.
const maxPending = 8

// replyMsg is the answer to a command; lost says that none will come.
type replyMsg struct {
	cmd   model.Command
	reply model.Reply
	lost  bool
	clear bool // drop the staged values when accepted
}

// send completes a command and sends it through the client.
func (m *Model) send(s view.Send) tea.Cmd {
	c := s.Command
	if len(m.pending) >= maxPending {
		m.say(view.Failed, cell.Say("%s commands wait for an answer: try again when they have come", cell.Int(maxPending)))
		return nil
	}
	if m.frame.State == nil || m.past.held != nil {
		m.say(view.Failed, cell.Lit("not sent: the screen does not show the present"))
		return nil
	}
	c.ID = cmp.Or(c.ID, m.opt.NewID())
	c.Actor = cmp.Or(c.Actor, m.opt.Actor)
	if c.Verb != model.VerbSpeed {
		c.Expect = cmp.Or(c.Expect, m.frame.State.Version)
		m.expected = m.frame.State.Version + 1
	}
	m.pending[c.ID] = c
	m.opt.Log.Info("command sent", "id", c.ID, "verb", c.Verb, "expect", c.Expect)
	answer := m.opt.Client.Do(c)
	return func() tea.Msg {
		r, ok := <-answer
		return replyMsg{cmd: c, reply: r, lost: !ok, clear: s.ClearStaged}
	}
}

// onReply tells what became of a command.
func (m *Model) onReply(r replyMsg) {
	delete(m.pending, r.cmd.ID)
	m.expected = 0
	m.opt.Log.Info("command answered", "id", r.cmd.ID, "accepted", r.reply.Accepted, "version", r.reply.Version, "lost", r.lost)
	switch {
	case r.lost:
		m.say(view.Failed, cell.Say("%s: the link was lost before the answer; look at the version before trying again", cell.Foreign(string(r.cmd.Verb))))
	case r.reply.Accepted:
		if r.cmd.Verb != model.VerbSpeed {
			m.expected = r.reply.Version
		}
		if r.clear {
			m.staged = nil
		}
		m.say(view.Done, m.accepted(r.cmd, r.reply))
	default:
		m.say(view.Failed, refused(r.cmd, r.reply.Refusal, m.screen.W-4, m.keyOf(command.Apply)))
		if why := r.reply.Refusal; why != nil && why.Code == model.RefusedConflict && why.Current != nil {
			m.toast.again = &r.cmd
		}
	}
	if !r.lost {
		for _, v := range m.opt.Views {
			if a, ok := v.(view.Answered); ok {
				a.Answered(r.cmd, r.reply)
			}
		}
	}
	m.read(m.opt.Now())
	m.refresh()
}

// accepted is the toast of a command that was done.
func (m *Model) accepted(c model.Command, r model.Reply) cell.Text {
	rest := cell.Say(" applied as v%s · %s undo", cell.Int(r.Version), m.keyOf(command.Undo))
	if !c.Verb.Undoable() {
		rest = cell.Say(" applied as v%s", cell.Int(r.Version))
	}
	what := cell.Fit(cmp.Or(r.What, string(c.Verb)), min(46, max(8, m.screen.W-4-rest.Width())))
	if c.Verb == model.VerbSpeed {
		if c.Speed == 0 {
			return cell.Say("simulation paused · %s goes on", m.keyOf(command.Pause))
		}
		return cell.Say("simulation at ×%s", speedText(c.Speed))
	}
	if c.Verb == model.VerbUndo && m.live.State != nil {
		if rev, ok := toUndo(m.live.State.Revisions, c.Undo); ok {
			return undone(m.live.State.Revisions, rev, r.Version, m.keyOf(command.Undo))
		}
	}
	done, gone := 0, 0
	for _, it := range r.Items {
		if it.Done {
			done++
		} else {
			gone++
		}
	}
	if gone > 0 {
		return cell.Say("%s: %s done, %s not (left marked) · v%s · %s undo", cell.Foreign(string(c.Verb)), cell.Int(done), cell.Int(gone), cell.Int(r.Version), m.keyOf(command.Undo))
	}
	return cell.Concat(what, rest)
}

// refused is the toast of a command that was not done: why, and what next. room
// is its width: what the other change was is cut before the way out is. apply is
// the key of that way.
func refused(c model.Command, why *model.Refusal, room int, apply cell.Text) cell.Text {
	if why == nil {
		return cell.Say("refused: %s, without a reason", cell.Foreign(string(c.Verb)))
	}
	if why.Code != model.RefusedConflict || why.Current == nil {
		return cell.Say("refused: %s", cell.Foreign(why.Error()))
	}
	cur := why.Current
	head := cell.Say("refused: v%s is old, %s made v%s", cell.Int(c.Expect), cell.Fit(cur.Actor, 16), cell.Int(cur.Version))
	next := cell.Say(". %s applies on top", apply)
	if left := room - head.Width() - next.Width() - 3; left >= 8 {
		return cell.Say("%s (%s)%s", head, cell.Fit(cur.What, left), next)
	}
	if head.Width()+next.Width() <= room {
		return cell.Concat(head, next)
	}
	tail := cell.Say(" made v%s%s", cell.Int(cur.Version), next)
	return cell.Concat(cell.Fit(cur.Actor, max(4, room-tail.Width())), tail)
}

// toUndo is the revision that an undo of version means; 0 is the newest that
// stands and is no undo itself, as the router takes it.
func toUndo(revs []model.Revision, version uint64) (model.Revision, bool) {
	for _, r := range revs {
		if (version != 0 && r.Version == version) || (version == 0 && r.UndoneBy == 0 && r.Undoes == 0 && r.Version > 1 && r.Verb.Undoable()) {
			return r, true
		}
	}
	return model.Revision{}, false
}

// undone is the toast after rev was taken back by version: a change, or an undo
// of one, which is the redo. u is the key that undoes.
func undone(revs []model.Revision, rev model.Revision, version uint64, u cell.Text) cell.Text {
	what, depth := view.Origin(revs, rev)
	if depth%2 == 0 {
		return cell.Say("undone: %s · v%s · %s redo", cell.Fit(what.What, 46), cell.Int(version), u)
	}
	return cell.Say("redone: %s · v%s · %s undo", cell.Fit(what.What, 46), cell.Int(version), u)
}

// undo takes back the newest change; when that is an undo itself, this is the
// redo.
func (m *Model) undo() tea.Cmd {
	c := model.Command{Verb: model.VerbUndo}
	if revs := m.frame.State.Revisions; len(revs) > 0 && revs[0].Undoes != 0 {
		c.Undo = revs[0].Version
	}
	return m.send(view.Send{Command: c})
}

// The range of the simulation's speed.
const (
	minSpeed = 0.25
	maxSpeed = 64.0
)

// changeSpeed halves or doubles the speed, or pauses; of a recording too.
func (m *Model) changeSpeed(id command.ID) tea.Cmd {
	p, replay := m.opt.Client.(player)
	now := m.live.Link.Replay.Speed
	if !replay {
		if m.live.State == nil {
			return nil
		}
		now = m.live.State.Source.Speed
	} else if m.live.Link.Replay.Paused {
		now = 0
	}
	if now > 0 {
		m.speed = now
	}
	next := m.speed
	switch id {
	case command.Slower:
		next = max(minSpeed, m.speed/2)
	case command.Faster:
		next = min(maxSpeed, m.speed*2)
	case command.Pause:
		if now > 0 {
			next = 0
		}
	}
	if replay {
		p.Pause(next == 0)
		if next > 0 {
			m.speed = next
			p.Speed(next)
		}
		return nil
	}
	if m.past.held != nil {
		m.past.held = nil
		m.refresh()
	}
	return m.send(view.Send{Command: model.Command{Verb: model.VerbSpeed, Speed: next}})
}
