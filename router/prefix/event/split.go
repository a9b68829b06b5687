package event

import (
	"fmt"
	"slices"
)

// Piece is one event of a drained list, still encoded: whose it is, and its
// number. Raw points into the list.
type Piece struct {
	Worker uint64 // Dynamo's worker_id, 0 in TensorRT-LLM's events
	Rank   int
	ID     uint64
	Raw    []byte
}

// MaxPieces is the most events that one list may hold.
const MaxPieces = 1 << 17

// Drain takes the list apart that TensorRT-LLM answers to POST
// /kv_cache_events, or that a Dynamo relay sends: pieces are ordered by worker,
// rank and number, since the engine merges its ranks' events in any order. An
// object alone is a list of one. to is reused for the answer.
//
// Elements that are no events are counted in refused. The error, which wraps
// ErrMessage, says that the list itself is none or ends early; the pieces
// before that are still good, and the reader has taken them from the engine, so
// use them.
func Drain(data []byte, to []Piece, refused *Tally) ([]Piece, error) {
	to = to[:0]
	if len(data) > MaxBatchBytes {
		refused.Add(Refusal{Reason: BadMessage, Field: "length", Value: int64(len(data)), Want: MaxBatchBytes})
		return to, fmt.Errorf("%w: %d bytes, at most %d are read", ErrMessage, len(data), MaxBatchBytes)
	}
	s := scanner{b: data}
	n := 0
	element := func() bool {
		at := s.i
		n++
		p, ok := s.piece()
		if ok && len(to) < MaxPieces {
			to = append(to, p)
			return true
		}
		if ok {
			return s.fail(TooLarge, "events", "too many in one list")
		}
		why := s.bad
		s.i = at
		if !s.skip() {
			return false
		}
		why.Index = n - 1
		refused.Add(why)
		return true
	}
	var ok bool
	switch s.peek() {
	case '{':
		ok = element()
	case '[':
		ok = s.list("events", element)
	default:
		s.miss("events")
	}
	slices.SortStableFunc(to, comparePieces)
	if !ok {
		s.bad.Index = max(0, n-1)
		s.bad.Reason = BadMessage
		if s.bad.Got == "" {
			s.bad.Got = "the list ends early"
		}
		refused.Add(s.bad)
		return to, fmt.Errorf("%w: after %d events: %s", ErrMessage, len(to), s.bad.Got)
	}
	return to, nil
}

func comparePieces(a, b Piece) int {
	switch {
	case a.Worker != b.Worker:
		return cmp64(a.Worker, b.Worker)
	case a.Rank != b.Rank:
		return a.Rank - b.Rank
	}
	return cmp64(a.ID, b.ID)
}

func cmp64(a, b uint64) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// piece reads an event's name and number and passes over the rest. Dynamo keeps
// them one object further in.
func (s *scanner) piece() (Piece, bool) {
	s.peek()
	from, found := s.i, false
	var p Piece
	var member func(key []byte) bool
	member = func(key []byte) (ok bool) {
		switch string(key) {
		case "event_id":
			p.ID, _, ok = s.bits("event_id")
			found = ok
		case "attention_dp_rank", "dp_rank":
			var n int64
			if ok = s.isNull(); !ok {
				n, ok = s.count(string(key), 1<<20)
				p.Rank = int(n)
			}
		case "worker_id":
			p.Worker, _, ok = s.bits("worker_id")
		case "event":
			if found {
				return s.skip()
			}
			ok = s.object("event", func(key []byte) bool {
				if string(key) == "event" {
					return s.skip()
				}
				return member(key)
			})
		default:
			ok = s.skip()
		}
		return ok
	}
	if !s.object("event", member) {
		return p, false
	}
	if !found {
		return p, s.fail(MissingField, "event_id", "")
	}
	p.Raw = s.b[from:s.i]
	return p, true
}
