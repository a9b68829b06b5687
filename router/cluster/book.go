package cluster

import (
	"fmt"
	"time"

	"adpdeck/router/model"
)

// Book books a request where Choose sent it and moves the rotation on. The
// error wraps ErrDuplicate, ErrBooked, or ErrNoWorker when the target has gone.
func (r *Router) Book(now time.Duration, req *Request, c *Choice) error {
	if _, ok := r.Target(c.Slot); !ok {
		return fmt.Errorf("book request %d: %w: it was removed after the choice", req.ID, ErrNoWorker)
	}
	k := Booking{ID: req.ID, Slot: c.Slot, PromptTokens: req.PromptTokens, ExpectedOutput: req.ExpectedOutput}
	if c.config.TrackPrefillTokens {
		k.PrefillTokens = max(0, req.PromptTokens-c.CachedTokens)
	}
	if c.config.TrackActiveBlocks {
		switch {
		case req.Blocks == nil:
			k.Unshared = req.PromptTokens / r.opt.BlockTokens
		case !c.config.AssumeKVReuse:
			k.Unshared = len(req.Blocks)
		default:
			k.Blocks = req.Blocks
		}
	}
	if c.config.PrefillLoadModel == model.PrefillModelAIC {
		k.ExpectedPrefill = req.ExpectedPrefill
	}
	if err := r.load.Book(now, &k); err != nil {
		return fmt.Errorf("book request %d on %s: %w", req.ID, c.Target, err)
	}
	if c.By == model.ByRotation {
		r.cursor = c.worker
	}
	if c.Slot >= 0 {
		r.slots[c.Slot].known = true
		if r.cfg.RecentWeight > 0 {
			r.slots[c.Slot].lately.add(now, r.cfg.RecentSecs, req.PromptTokens)
		}
		if r.mode == model.ModeLockstep {
			r.recent.sent(req.Blocks, c.Slot)
		}
		r.relatch(c.Slot)
	}
	return nil
}

// Place says which rank a request runs on: the engine's own choice where none
// was made, or another than it was asked for. cachedTokens is what that rank's
// caches are expected to hold of its prompt.
func (r *Router) Place(now time.Duration, id int64, t model.Target, promptTokens, cachedTokens int) bool {
	to, ok := r.Slot(t)
	if !ok {
		return false
	}
	from, ok := r.load.Booked(id)
	prefill := 0
	if r.cfg.TrackPrefillTokens {
		prefill = max(0, promptTokens-cachedTokens)
	}
	if !r.load.Move(now, id, to, prefill) || !ok {
		return false
	}
	r.slots[to].known = true
	r.relatch(to)
	r.relatch(from)
	return true
}

// FirstToken ends the prefill of a request.
func (r *Router) FirstToken(now time.Duration, id int64) bool { return r.load.FirstToken(now, id) }

// Output says how many tokens a request has generated; it counts only with
// router_track_output_blocks.
func (r *Router) Output(now time.Duration, id int64, generated int) bool {
	s, ok := r.load.Booked(id)
	if !ok || !r.cfg.TrackOutputBlocks {
		return ok
	}
	r.load.Output(now, id, generated)
	r.relatch(s)
	return true
}

// Free removes everything of a request, exactly once. It reports false, and
// counts a stray, when the request is not booked.
func (r *Router) Free(now time.Duration, id int64) bool {
	s, ok := r.load.Booked(id)
	r.load.Free(now, id)
	if ok {
		r.relatch(s)
	}
	return ok
}

// Sweep drops bookings that have shown no sign of life for
// booking_expiry_secs; call it every 30 s or so.
func (r *Router) Sweep(now time.Duration) int {
	n := r.load.Expire(now, seconds(r.cfg.BookingExpirySecs))
	if n > 0 {
		r.drop()
		r.relatchAll()
	}
	return n
}

// Phantoms appends the phantom load of each slot to dst.
func (r *Router) Phantoms(now time.Duration, dst []Phantom) []Phantom {
	return r.load.Phantoms(now, seconds(r.cfg.PhantomAfterSecs), dst)
}

// ClearPhantoms drops the phantom load of a target, or of a worker's requests
// without a rank when its rank is NoRank. It returns how many bookings went.
func (r *Router) ClearPhantoms(now time.Duration, t model.Target) int {
	s, ok := r.Slot(t)
	if at, there := r.byID[t.Worker]; !ok && there && t.Rank == model.NoRank {
		s, ok = NoRankSlot(int(at)), true
	}
	if !ok {
		return 0
	}
	n := r.load.ClearPhantoms(s, now, seconds(r.cfg.PhantomAfterSecs))
	if n > 0 {
		r.drop()
	}
	r.relatch(s)
	return n
}

// drop notes that fewer are booked than may be out.
func (r *Router) drop() { r.dropped = r.opt.Outstanding != nil }

func (r *Router) relatchAll() {
	for s := range r.slots {
		r.relatch(int32(s))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
