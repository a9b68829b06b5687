package view

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// Left is what keeps ranks that drain from being empty.
type Left struct {
	// Open requests: the router's own count or, where it is greater, what the
	// engine reports, for it may have others.
	Open int
	// Pins are the conversations that still come back, those by hand too.
	Pins int
}

// LeftOn is what is left on a rank.
func LeftOn(r *model.Rank) Left {
	l := Left{Open: r.InFlight, Pins: r.Pins + r.OperatorPins}
	if !r.ReportedAt.IsZero() {
		l.Open = max(l.Open, r.Active+r.Queued)
	}
	return l
}

// Add is both together.
func (l Left) Add(o Left) Left { return Left{l.Open + o.Open, l.Pins + o.Pins} }

// OnWorker is l where all of a worker is meant: the router's own counts have those
// requests and conversations too whose rank is not known.
func (l Left) OnWorker(s *model.State, id string) Left {
	if w := WorkerOf(s, id); w != nil {
		l.Open = max(l.Open, w.Open)
		l.Pins += w.Bound
	}
	return l
}

// Drained reports that nothing is left: it is safe to stop.
func (l Left) Drained() bool { return l == Left{} }

// Short is what a narrow column shows of a rank that drains: drain 64, drained.
func (l Left) Short() cell.Text {
	if l.Drained() {
		return cell.Lit("drained")
	}
	n := l.Open + l.Pins
	if n < 1000 {
		return cell.Say("drain %s", cell.Int(n))
	}
	return cell.Say("drain %s", cell.Kilo(float64(n)))
}

// Sentence says of a rank what is left: drains: 6 open and 58 pins to go.
func (l Left) Sentence() cell.Text {
	if l.Drained() {
		return cell.Lit("is drained: nothing open, no pins; safe to stop")
	}
	return cell.Say("drains: %s open and %s pins to go until it is drained", cell.Full(l.Open), cell.Full(l.Pins))
}
