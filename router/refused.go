package router

import (
	"errors"
	"fmt"
	"time"

	"adpdeck/router/model"
)

// refusedEvery is the least time between two events about refusals.
const refusedEvery = 10 * time.Second

// countRefused counts a request that the cluster tier turned away, by reason.
// Where ranks are overloaded, closed, or the queue is full it warns as well,
// not more often than refusedEvery: a missing worker is the client's doing, and
// one that found no room was told to come again.
func (r *Router) countRefused(err error) {
	n := &r.totals.Refused
	r.refusing.saw(r.elapsed(), err)
	switch {
	case errors.Is(err, ErrNoEligible):
		n.NoEligible++
	case errors.Is(err, ErrOverloaded):
		n.Overloaded++
	case errors.Is(err, ErrQueueFull):
		n.QueueFull++
	case errors.Is(err, ErrFull):
		n.NoRoom++
		return
	default:
		n.Other++
		return
	}
	if told := n.NoEligible + n.Overloaded + n.QueueFull; told > 1 && r.now.Sub(r.refusedAt) < refusedEvery {
		return
	}
	r.refusedAt = r.now
	r.event("warn", "router", fmt.Sprintf("refused (%d so far): %v", n.NoEligible+n.Overloaded+n.QueueFull, err), 0)
}

// countFull counts a request that found no room and does not wait for it.
func (r *Router) countFull(err error) {
	if errors.Is(err, ErrFull) {
		r.countRefused(err)
	}
}

// refusing tells operators while requests are turned away.
type refusing struct {
	seen   window
	since  time.Duration // router time of the first of a series
	newest string        // why the newest was refused
}

// manyRefused is from how many refusals within the window on the finding stands:
// one client that names what is not there raises none.
const manyRefused = 3

func newRefusing() refusing { return refusing{seen: newWindow(time.Second, 10)} }

func (f *refusing) saw(now time.Duration, err error) {
	if f.seen.sum(now).count == 0 {
		f.since = now
	}
	f.seen.at(now).count++
	f.newest = err.Error()
}

// addRefusing adds that requests are refused, while they are: the operator sees
// it even where no rank shows anything but that it is idle.
func (r *Router) addRefusing(out []model.Finding) []model.Finding {
	f := &r.refusing
	n := f.seen.sum(r.elapsed()).count
	if n < manyRefused {
		return out
	}
	return append(out, model.Finding{
		Code: model.FindingRefusing, Target: *workerTarget(""), Since: r.start.Add(f.since),
		Message: cut(fmt.Sprintf("%d requests refused in the last %.0f s, the newest: %s", n, f.seen.width.Seconds()*float64(len(f.seen.slots)), f.newest), maxFindingBytes),
		Next:    "view 4 and ctl get totals count them by reason; U takes back a change that caused it",
	})
}
