package view

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// Origin follows undos of undos back to the change that they are about. depth
// counts the undos between: 0 for a change itself, 1 for its undo, 2 for the
// redo. A link that the history no longer holds ends the way.
func Origin(revs []model.Revision, rev model.Revision) (origin model.Revision, depth int) {
	for rev.Undoes != 0 && depth < len(revs) {
		next, found := model.Revision{}, false
		for _, r := range revs {
			if r.Version == rev.Undoes {
				next, found = r, true
				break
			}
		}
		if !found {
			break
		}
		rev, depth = next, depth+1
	}
	return rev, depth
}

// Change says what a revision did, at most w cells: drain w1/2, undo: drain
// w1/2, redo: drain w1/2.
func Change(revs []model.Revision, rev model.Revision, w int) cell.Text {
	what, depth := Origin(revs, rev)
	switch {
	case depth == 0:
		return cell.Fit(rev.What, w)
	case depth%2 == 1:
		return cell.Say("undo: %s", cell.Fit(what.What, max(0, w-6)))
	}
	return cell.Say("redo: %s", cell.Fit(what.What, max(0, w-6)))
}
