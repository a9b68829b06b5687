package feed

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"adpdeck/router/model"
)

// errGap is wrapped by every reason to ask for a snapshot.
var errGap = errors.New("out of step")

// stream turns server frames into the state and the lists that a View shows.
// Client and Player share it. It has no clock, no goroutine and no lock.
type stream struct {
	hello  helloFrame
	seq    uint64
	synced bool // a whole snapshot and every change since
	merger Merger

	parts     *model.State // a snapshot being collected, nil when none is
	nextPart  int
	partSeq   uint64
	partBytes int

	ring        []*model.Decision // at most model.MaxDecisions, a window into a longer array
	settled     map[uint64]model.Settled
	settledFrom map[uint64]model.Settled // the copy last published, nil when settled changed
	newest      uint64                   // highest decision id of this epoch
	leftOut     uint64
	unknown     uint64
}

// maxHistory bounds the revisions, and the events, of a snapshot.
const maxHistory = max(model.MaxRevisions, model.MaxEvents)

// outcome is what a frame led to.
type outcome struct {
	current bool // the state is known to be current as of this frame
	reply   *model.Reply
}

// apply takes one message. An error that wraps errGap or errDecode means that
// the stream is out of step until the next whole snapshot.
func (s *stream) apply(msg []byte) (outcome, error) {
	f, err := decode(msg)
	if err != nil {
		return outcome{}, s.lose(err)
	}
	switch f := f.(type) {
	case *helloFrame:
		s.greet(f)
		return outcome{}, nil
	case *snapshotFrame:
		return s.collect(f, len(msg))
	case *changeFrame:
		return s.change(f)
	case *decisionsFrame:
		return outcome{}, s.decisions(f)
	case *eventFrame:
		if s.synced && s.hello.Epoch == f.Epoch && f.Seq == s.seq {
			s.merger.Apply(&model.Change{Events: f.Events})
		}
		return outcome{}, nil
	case *replyFrame:
		return outcome{reply: f.Reply}, nil
	default:
		s.unknown++
		return outcome{}, nil
	}
}

// lose marks the state as old and returns why.
func (s *stream) lose(why error) error {
	s.synced, s.parts = false, nil
	return why
}

// greet takes a hello. A new epoch forgets the decisions, whose ids begin anew;
// the state stays to be shown as old.
func (s *stream) greet(f *helloFrame) {
	if f.Epoch != s.hello.Epoch {
		s.ring, s.settled, s.settledFrom = nil, nil, nil
		s.newest, s.leftOut = 0, 0
	}
	s.hello = *f
	s.synced, s.parts = false, nil
}

func (s *stream) sameEpoch(kind, epoch string) error {
	switch {
	case s.hello.Epoch == "":
		return s.lose(fmt.Errorf("%w: %s before hello", errGap, kind))
	case s.hello.Epoch != epoch:
		return s.lose(fmt.Errorf("%w: new epoch %.32q, had %.32q", errGap, epoch, s.hello.Epoch))
	}
	return nil
}

// collect adds a part of a snapshot. The state is replaced only by a whole one.
func (s *stream) collect(f *snapshotFrame, size int) (outcome, error) {
	if s.hello.Epoch == "" {
		return outcome{}, s.lose(fmt.Errorf("%w: snapshot before hello", errGap))
	}
	if f.Part == 1 {
		if f.Epoch != s.hello.Epoch {
			hello := s.hello
			hello.Epoch = f.Epoch
			s.greet(&hello)
		}
		s.parts, s.partSeq, s.partBytes, s.nextPart = f.State, f.Seq, size, 2
	} else {
		if s.parts == nil && !s.synced {
			return outcome{}, nil // the rest of a snapshot that was given up
		}
		if s.parts == nil || f.Part != s.nextPart || f.Seq != s.partSeq || f.Epoch != s.hello.Epoch {
			return outcome{}, s.lose(fmt.Errorf("%w: snapshot part %d is not the next one", errGap, f.Part))
		}
		s.nextPart++
		s.partBytes += size
		join(s.parts, f.State)
	}
	if p := s.parts; f.Part > maxSnapshotParts || s.partBytes > maxSnapshotBytes || len(p.Convs) > model.MaxFeedConvs ||
		max(len(p.Ranks), len(p.Workers), len(p.Index)) > maxTargets || len(p.Findings) > model.MaxFindings || max(len(p.Revisions), len(p.Events)) > maxHistory {
		return outcome{}, s.lose(fmt.Errorf("%w: the snapshot exceeds its bounds", errDecode))
	}
	if f.More {
		return outcome{}, nil
	}
	s.merger.Reset(s.parts)
	s.seq, s.synced, s.parts = s.partSeq, true, nil
	return outcome{current: true}, nil
}

func join(s, more *model.State) {
	s.Workers = append(s.Workers, more.Workers...)
	s.Ranks = append(s.Ranks, more.Ranks...)
	s.Index = append(s.Index, more.Index...)
	s.Findings = append(s.Findings, more.Findings...)
	s.Convs = append(s.Convs, more.Convs...)
	s.Revisions = append(s.Revisions, more.Revisions...)
	s.Events = append(s.Events, more.Events...)
}

func (s *stream) change(f *changeFrame) (outcome, error) {
	if err := s.sameEpoch("change", f.Epoch); err != nil {
		return outcome{}, err
	}
	if !s.synced {
		return outcome{}, nil // waiting for a snapshot: never bridged
	}
	if s.parts != nil {
		return outcome{}, s.lose(fmt.Errorf("%w: change amid a snapshot", errGap))
	}
	if f.Seq != s.seq+1 {
		return outcome{}, s.lose(fmt.Errorf("%w: change %d follows %d", errGap, f.Seq, s.seq))
	}
	s.seq = f.Seq
	s.merger.Apply(f.Change)
	return outcome{current: true}, nil
}

// decisions appends to the ring what is newer than all it holds.
func (s *stream) decisions(f *decisionsFrame) error {
	if err := s.sameEpoch("decisions", f.Epoch); err != nil {
		return err
	}
	missed, known := uint64(0), s.newest > 0
	for _, d := range f.Decisions {
		if d.ID <= s.newest {
			continue
		}
		if known {
			missed += d.ID - s.newest - 1
		}
		known, s.newest = true, d.ID
		s.push(d)
	}
	s.leftOut += max(missed, f.LeftOut)
	for _, out := range f.Settled {
		s.settle(out)
	}
	return nil
}

// push appends to the ring. Published windows are never written: the array is
// only appended to, and left behind when it is full.
func (s *stream) push(d *model.Decision) {
	if len(s.ring) == model.MaxDecisions {
		if _, held := s.settled[s.ring[0].ID]; held {
			delete(s.settled, s.ring[0].ID)
			s.settledFrom = nil
		}
		s.ring = s.ring[1:]
	}
	if len(s.ring) == cap(s.ring) {
		grown := make([]*model.Decision, len(s.ring), min(max(64, 2*len(s.ring)), 2*model.MaxDecisions))
		copy(grown, s.ring)
		s.ring = grown
	}
	s.ring = append(s.ring, d)
}

// settle keeps an outcome if its decision is in the ring, so that the map stays
// as small as the ring.
func (s *stream) settle(out model.Settled) {
	lo, hi := 0, len(s.ring)
	for lo < hi {
		if mid := (lo + hi) / 2; s.ring[mid].ID < out.Decision {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(s.ring) || s.ring[lo].ID != out.Decision {
		return
	}
	if s.settled == nil {
		s.settled = make(map[uint64]model.Settled)
	}
	s.settled[out.Decision] = out
	s.settledFrom = nil
}

// fill puts what the stream holds into a view.
func (s *stream) fill(v *View) {
	if s.settledFrom == nil {
		s.settledFrom = maps.Clone(s.settled)
	}
	v.State = s.merger.State()
	v.Decisions = s.ring[:len(s.ring):len(s.ring)]
	v.Settled = s.settledFrom
	v.LeftOut = s.leftOut
	v.Link.Epoch, v.Link.Seq = s.hello.Epoch, s.seq
	v.Link.Role, v.Link.Server = s.hello.Role, s.hello.Server
	v.Link.Period = time.Duration(s.hello.PeriodMs) * time.Millisecond
	v.Link.Unknown = s.unknown
}
