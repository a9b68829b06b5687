package view

import (
	"testing"

	"adpdeck/router/model"
)

func TestChangeNamesTheChangeAndNotTheUndos(t *testing.T) {
	revs := []model.Revision{
		{Version: 8, Undoes: 2, What: "undo v2 (lost)"},
		{Version: 7, Undoes: 6, What: "undo v6 (undo v5 (undo v4 (drain w1/2)))"},
		{Version: 6, Undoes: 5, What: "undo v5 (undo v4 (drain w1/2))"},
		{Version: 5, Undoes: 4, What: "undo v4 (drain w1/2)"},
		{Version: 4, What: "drain w1/2"},
	}
	for i, want := range []string{"undo v2 (lost)", "undo: drain w1/2", "redo: drain w1/2", "undo: drain w1/2", "drain w1/2"} {
		if got := Change(revs, revs[i], 60).String(); got != want {
			t.Errorf("v%d: %q, want %q", revs[i].Version, got, want)
		}
	}
	// A history that names itself must not hang the screen.
	loop := []model.Revision{{Version: 1, Undoes: 2}, {Version: 2, Undoes: 1}}
	Change(loop, loop[0], 20)
}
