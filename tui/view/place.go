package view

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// Place is a target as rows and sentences name it: w0/3, or w0 where only the
// worker is known, since its engine picks the rank, or the whole cluster.
func Place(t model.Target) string {
	switch {
	case t.Worker == "":
		return "cluster"
	case t.Rank == model.NoRank:
		return t.Worker
	}
	return t.String()
}

// PlaceText is Place in at most w cells, unknown for no target at all.
func PlaceText(t model.Target, w int) cell.Text {
	if t.Worker == "" {
		return cell.Unknown()
	}
	return cell.Fit(Place(t), w)
}

// PlaceWidth is the width of a column that names targets whole: that of the
// longest rank of the state, within least and most cells.
func PlaceWidth(s *model.State, least, most int) int {
	w := least
	for i := range s.Ranks {
		if w = max(w, cell.Foreign(s.Ranks[i].Target.String()).Width()); w >= most {
			return most
		}
	}
	return w
}

// WorkerOf finds a worker, nil where the state has none of that name.
func WorkerOf(s *model.State, id string) *model.Worker {
	for i := range s.Workers {
		if s.Workers[i].ID == id {
			return &s.Workers[i]
		}
	}
	return nil
}

// EnginePicks reports that the worker's engine picks the rank: it cannot be asked
// for one.
func EnginePicks(s *model.State, worker string) bool {
	w := WorkerOf(s, worker)
	return w != nil && w.Steering.EnginePicks()
}
