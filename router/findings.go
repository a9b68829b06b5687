package router

import (
	"fmt"
	"slices"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// findings are what the router itself and those who speak to engines have found.
type findings struct {
	told []model.Finding // by Found, oldest first
	// stranded are about operator pins to what is not there; stale says that they
	// have to be worked out anew.
	stranded []model.Finding
	stale    bool
}

const (
	maxFindingBytes = 1024
	maxCodeBytes    = 64
)

// Found tells operators that something is wrong with an engine, until Cleared. A
// finding is known by its code and target; told again its text changes and its
// time stays. Beyond model.MaxFindings new ones are left out.
func (r *Router) Found(f model.Finding) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	f.Code, f.Message, f.Next = cut(f.Code, maxCodeBytes), cut(f.Message, maxFindingBytes), cut(f.Next, maxFindingBytes)
	if f.Since.IsZero() {
		f.Since = r.now
	}
	i := r.found.index(f.Code, f.Target)
	switch {
	case i >= 0:
		f.Since = r.found.told[i].Since
		if r.found.told[i] == f {
			return
		}
		r.found.told[i] = f
	case len(r.found.told) >= model.MaxFindings:
		return
	default:
		r.found.told = append(r.found.told, f)
	}
	r.stamp++
}

// Cleared takes a finding back.
func (r *Router) Cleared(code string, t model.Target) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	if i := r.found.index(cut(code, maxCodeBytes), t); i >= 0 {
		r.found.told = slices.Delete(r.found.told, i, i+1)
		r.stamp++
	}
}

func (f *findings) index(code string, t model.Target) int {
	return slices.IndexFunc(f.told, func(o model.Finding) bool { return o.Code == code && o.Target == t })
}

// forget takes back what was found of a worker that has left.
func (f *findings) forget(worker string) {
	f.told = slices.DeleteFunc(f.told, func(o model.Finding) bool { return o.Target.Worker == worker })
}

// findings adds to those of the index what else is wrong, oldest first. The
// answer is new where there is anything.
func (r *Router) findings(index []model.Finding) []model.Finding {
	out := append(slices.Clip(index), r.found.told...)
	out = r.addRefusing(out)
	out = r.addPhantoms(out)
	for _, w := range r.sorted {
		if w.spec.KVEvents && r.know.index != nil && r.know.blockTokens() == 0 {
			out = append(out, model.Finding{
				Code: model.FindingNoBlockSize, Target: *workerTarget(w.spec.ID), Since: w.joined,
				Message: "no engine has named its block size, so that KV events cannot be used and caches look cold",
				Next:    "name it in the settings of a worker (block_tokens)",
			})
		}
		for _, p := range w.proofs.list {
			if p.raised {
				out = append(out, p.finding())
			}
		}
	}
	out = append(out, r.stranded()...)
	if len(out) == len(index) {
		return index
	}
	slices.SortStableFunc(out, func(a, b model.Finding) int { return a.Since.Compare(b.Since) })
	return out[:min(len(out), model.MaxFindings)]
}

// stranded are the operator pins whose rank does not answer, is not there or
// does not serve the model, by target.
func (r *Router) stranded() []model.Finding {
	f := &r.found
	if !f.stale {
		return f.stranded
	}
	f.stale = false
	n := map[model.Target]int{}
	r.ops.Each(func(key model.ConvKey, p pin.Pin) {
		t := p.Target
		if at, ok := r.byID[t.Worker]; !ok || !r.workers[at].answers(t.Rank) || !r.servesModel(r.workers[at], key.Model) {
			n[t]++
		}
	})
	since := map[model.Target]time.Time{}
	for i := range f.stranded {
		since[f.stranded[i].Target] = f.stranded[i].Since
	}
	f.stranded = nil
	for t, count := range n {
		next := "bring the rank back under this name, or unpin or migrate them"
		if r.there(t) && !r.rank(t).down {
			next = "unpin them, or migrate them to a worker that serves it"
		}
		at, ok := since[t]
		if !ok {
			at = r.now
		}
		f.stranded = append(f.stranded, model.Finding{
			Code: model.FindingPinGone, Target: t, Since: at,
			Message: fmt.Sprintf("operator pins hold %s to %s, which %s; their requests are refused", conversations(count), t, r.whyStranded(t)),
			Next:    next,
		})
	}
	slices.SortFunc(f.stranded, func(a, b model.Finding) int { return a.Target.Compare(b.Target) })
	f.stranded = f.stranded[:min(len(f.stranded), model.MaxFindings)]
	return f.stranded
}

func (r *Router) whyStranded(t model.Target) string {
	switch s := r.rank(t); {
	case s == nil:
		return "is not there"
	case s.down:
		return "does not answer"
	}
	return "does not serve their model"
}
