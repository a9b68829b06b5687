package router

import (
	"errors"
	"fmt"
	"slices"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

// Errors of requests whose target cannot be had. They come wrapped.
var (
	// ErrNoWorkers is returned while no worker has joined.
	ErrNoWorkers = errors.New("no workers: no engine has joined yet")
	// ErrNoModel is returned when no worker serves the model of the request, or
	// the worker that it is held to does not.
	ErrNoModel = errors.New("no worker serves this model")
	// ErrDown is returned when the rank that an operator's pin or the client
	// holds the request to does not answer, or is not there. A pin is never
	// silently elsewhere: it is refused until it is lifted or the rank is back.
	ErrDown = errors.New("its rank does not answer")
	// ErrExcluded is returned when the only rank that the request may go to is
	// among those that it must not go to (Request.Exclude).
	ErrExcluded = errors.New("the only rank that it may go to was just tried")
)

// audiences are the workers by the models that they serve. The zero value says
// that all serve all.
type audiences struct {
	some    bool // some worker names its models
	named   map[string]bool
	byModel map[string]*audience // all models that nobody names under ""
	byLane  map[int32]*audience
}

// audiencesOf are those of a list of workers.
func audiencesOf(workers []*worker) (v audiences) {
	for _, w := range workers {
		for _, name := range w.spec.Models {
			if v.named == nil {
				v.named = map[string]bool{}
			}
			v.some, v.named[name] = true, true
		}
	}
	return v
}

// audience is who serves one model.
type audience struct {
	only []bool // by the cluster tier's number of the worker, nil for all
	lane int32  // where requests wait that any of them may take
}

// modelLanes is the first lane of the queue that is a model's; slots lie below.
const modelLanes = cluster.MaxSlots

func (w *worker) serves(name string) bool {
	return len(w.spec.Models) == 0 || slices.Contains(w.spec.Models, name)
}

// servesModel reports that a request for a model may go to a worker.
func (r *Router) servesModel(w *worker, name string) bool {
	if !r.serves.some || name == "" {
		return true
	}
	if !r.serves.named[name] {
		name = "" // who names no model serves it, whatever clients call it
	}
	return w.serves(name)
}

// who reports of workers whether they serve a model, nil where all do.
func (r *Router) who(name string) func(worker string) bool {
	if !r.serves.some || name == "" {
		return nil
	}
	return func(worker string) bool { return r.servesModel(r.workers[r.byID[worker]], name) }
}

// serving finds who may take a request for its model.
func (r *Router) serving(req *model.Request) error {
	s := &r.steer
	s.audience = nil
	if len(r.workers) == 0 {
		return fmt.Errorf("request %d: %w; start one, or look at why those of the settings do not answer", req.ID, ErrNoWorkers)
	}
	name := req.Conv.Model
	if !r.serves.some || name == "" {
		return nil
	}
	group := name
	if !r.serves.named[name] {
		group = "" // who names no model serves it, whatever clients call it
	}
	a := r.serves.byModel[group]
	if a == nil {
		if a = r.newAudience(group); a == nil {
			return fmt.Errorf("request %d: %w: %.100q is not among %s; ask for one of them", req.ID, ErrNoModel, name, r.modelNames())
		}
	}
	s.audience, s.req.Only = a, a.only
	return nil
}

// newAudience makes the audience of a model, nil when nobody serves it.
func (r *Router) newAudience(name string) *audience {
	n, a := 0, &audience{lane: cluster.SharedLane}
	for _, w := range r.workers {
		if !w.serves(name) {
			continue
		}
		n++
		for len(a.only) <= w.number {
			a.only = append(a.only, false)
		}
		a.only[w.number] = true
	}
	switch n {
	case 0:
		return nil
	case len(r.workers):
		a.only = nil
	}
	v := &r.serves
	if v.byModel == nil {
		v.byModel, v.byLane = map[string]*audience{}, map[int32]*audience{}
	}
	if a.only != nil {
		a.lane = modelLanes + int32(len(v.byModel))
		v.byLane[a.lane] = a
	}
	v.byModel[name] = a
	return a
}

// modelNames lists the models that are served, the first eight.
func (r *Router) modelNames() string {
	var names []string
	for _, w := range r.workers {
		for _, name := range w.spec.Models {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	if len(names) > 8 {
		return fmt.Sprintf("%q and %d more", names[:8], len(names)-8)
	}
	return fmt.Sprintf("%q", names)
}

// sharedAs is the lane of a request that waited in the shared one, were there
// not models that only some workers serve.
func (r *Router) sharedAs(lane int32) int32 {
	if a := r.steer.audience; lane == cluster.SharedLane && a != nil {
		return a.lane
	}
	return lane
}

// reaches says why a request cannot go to the only target that it may go to; by
// names what holds it there.
func (r *Router) reaches(req *model.Request, t model.Target, by string) error {
	fail := func(err error, what, next string) error {
		return fmt.Errorf("request %d: %s to %s: %w: %s; %s", req.ID, by, t, err, what, next)
	}
	at, ok := r.byID[t.Worker]
	switch {
	case !ok:
		return fail(ErrDown, t.Worker+" has left or not joined yet", "bring it back under this id, or unpin or migrate the conversation")
	case t.Rank >= len(r.workers[at].ranks):
		return fail(ErrDown, fmt.Sprintf("%s has ranks 0 to %d", t.Worker, len(r.workers[at].ranks)-1),
			"bring the rank back, or unpin or migrate the conversation")
	}
	w := r.workers[at]
	switch {
	case !w.answers(t.Rank):
		return fail(ErrDown, w.whyDown(t.Rank), "wait for it to come back, or ask for another, or unpin or migrate the conversation")
	case r.steer.audience != nil && !w.serves(req.Conv.Model):
		return fail(ErrNoModel, fmt.Sprintf("%s does not serve %.100q", t.Worker, req.Conv.Model), "ask another, or unpin or migrate the conversation")
	case excludes(r.steer.req.Exclude, t):
		return fail(ErrExcluded, "another is not allowed", "send it again later, or unpin the conversation")
	}
	return nil
}

// passes reports that a request passes its binding over this time: the target
// was just tried, or does not serve the model.
func (r *Router) passes(req *model.Request, t model.Target) bool {
	return len(req.Exclude) > 0 && excludes(r.steer.req.Exclude, t) || r.steer.audience != nil && !r.mayServe(t.Worker)
}

// mayServe reports that a worker is in the audience of the request at hand.
func (r *Router) mayServe(id string) bool {
	at, ok := r.byID[id]
	return ok && allowed(r.steer.req.Only, r.workers[at])
}

func allowed(only []bool, w *worker) bool {
	return only == nil || w.number < len(only) && only[w.number]
}

// excludes reports that list holds t, or its worker as a whole.
func excludes(list []model.Target, t model.Target) bool {
	for i := range list {
		if e := &list[i]; e.Worker == t.Worker && (e.Rank == model.NoRank || e.Rank == t.Rank) {
			return true
		}
	}
	return false
}

// mayTake counts the ranks of a worker that take new work and may take this
// request, whether they have room or not.
func (r *Router) mayTake(w *worker, req *model.Request) int {
	if !allowed(r.steer.req.Only, w) {
		return 0
	}
	if len(req.Exclude) == 0 {
		return w.eligible
	}
	n := 0
	for k := range w.ranks {
		if s := &w.ranks[k]; s.eligible() && !excludes(r.steer.req.Exclude, s.load.Target) {
			n++
		}
	}
	return n
}

// closed is which ranks of a worker take nothing new in the batch at hand.
func (r *Router) closed(w *worker) []bool {
	if len(r.exclude) == 0 {
		return w.closed
	}
	w.shut = append(w.shut[:0], make([]bool, len(w.ranks))...)
	copy(w.shut, w.closed)
	for k := range w.ranks {
		w.shut[k] = w.shut[k] || excludes(r.exclude, w.ranks[k].load.Target)
	}
	return w.shut
}

// noneEligible says why no worker takes a request.
func (r *Router) noneEligible(req *model.Request) error {
	text := "make one ready"
	if down := r.downText(); down != "" {
		text = down + "; bring one back, or make one ready"
	}
	if len(req.Exclude) > 0 {
		text += fmt.Sprintf(" (%d just tried)", len(req.Exclude))
	}
	return fmt.Errorf("request %d: %w; %s", req.ID, ErrNoEligible, text)
}

// downText says which ranks do not answer, empty when all do.
func (r *Router) downText() string {
	for _, w := range r.workers {
		for k := range w.ranks {
			if w.ranks[k].down {
				return fmt.Sprintf("%d ranks do not answer (%s)", r.downCount(), w.whyDown(k))
			}
		}
	}
	return ""
}
