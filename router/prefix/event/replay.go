package event

import (
	"encoding/binary"
	"errors"
	"time"
)

// ReplayEnded tells the feed that a replay's answer is complete, or failed. A
// gap that is still open is asked for again after a pause that doubles from
// 200 ms to 5 s; after ReplayTries answers that brought nothing, what is missing
// counts as lost.
func (f *Feed) ReplayEnded(now time.Time) {
	g, r := &f.gap, &f.replay
	if !r.asking {
		return
	}
	r.asking = false
	switch {
	case r.stale:
		r.stale, r.again = false, now
		return
	case r.progressed:
		r.tries, r.again = 0, now
		f.advance(now)
		return
	}
	r.tries++
	r.again = now.Add(min(5*time.Second, 100*time.Millisecond<<min(r.tries, 10)))
	if g.open && r.tries >= f.cfg.ReplayTries {
		g.resync, g.verify, r.tries = false, false, 0
		f.unhold(now)
		if len(g.held) > 0 || f.next <= f.highest {
			f.lose(now)
		}
	}
	f.advance(now)
}

// Tick lets time pass: it gives up on batches that do not come, and ends doubts.
// Call it a few times a second while InDoubt; more often costs nothing.
func (f *Feed) Tick(now time.Time) {
	if f.replay.asking && now.Sub(f.replay.asked) >= f.cfg.ReplayTimeout {
		f.ReplayEnded(now)
	}
	f.expire(now)
	f.advance(now)
}

// Resync asks for everything afresh: the whole replay if there is one, and
// nothing is wiped before its first batch is there. Without replay what is
// known is wiped at once, and fills again as the engine goes on.
func (f *Feed) Resync(now time.Time) {
	f.stats.Resyncs++
	if !f.cfg.Replay {
		f.wipe(false)
		f.began, f.doubtful = false, false
		f.first = f.next
		return
	}
	f.gap.begin(now)
	f.gap.resync = true
	f.replay.stale, f.replay.again = f.replay.asking, now
}

// ErrFrames is returned for a multipart message that is no batch and no answer
// to a replay.
var ErrFrames = errors.New("not the frames of a kv event publisher: want topic, 8-byte number, payload")

// endOfReplay is the number that ends a replay's answer.
const endOfReplay = 1<<64 - 1

// ParseLive reads the three frames of a published batch.
func ParseLive(frames [][]byte) (topic []byte, seq uint64, payload []byte, err error) {
	if len(frames) != 3 || len(frames[1]) != 8 {
		return nil, 0, nil, ErrFrames
	}
	return frames[0], binary.BigEndian.Uint64(frames[1]), frames[2], nil
}

// ParseReplay reads the frames of one answer to a replay. Older publishers send
// "", number, payload and newer ones "", topic, number, payload; so the last two
// frames count. ended says that it is the marker at the answer's end.
func ParseReplay(frames [][]byte) (seq uint64, payload []byte, ended bool, err error) {
	n := len(frames)
	if n < 2 || n > 4 || len(frames[n-2]) != 8 {
		return 0, nil, false, ErrFrames
	}
	seq, payload = binary.BigEndian.Uint64(frames[n-2]), frames[n-1]
	return seq, payload, seq == endOfReplay || len(payload) == 0, nil
}

// AppendReplayRequest appends the second frame of a replay's request, after an
// empty one, to p.
func AppendReplayRequest(p []byte, from uint64) []byte {
	return binary.BigEndian.AppendUint64(p, from)
}
