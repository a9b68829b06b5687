package router

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"adpdeck/router/cluster"
	"adpdeck/router/load"
	"adpdeck/router/model"
)

// Errors of Submit, Step and Route that callers branch on. They come wrapped
// with the request or worker that they concern.
var (
	// ErrDuplicate is returned when a request with the same id is open.
	ErrDuplicate = load.ErrDuplicate
	// ErrNoWorker is returned for a worker that does not exist.
	ErrNoWorker = errors.New("no such worker")
	// ErrNoRank is returned for a rank that its worker does not have.
	ErrNoRank = errors.New("no such rank")
	// ErrNoEligible is returned when no worker that the request may go to has a
	// rank that takes new work.
	ErrNoEligible = errors.New("no eligible rank: every rank is draining, does not answer or has weight 0")
	// ErrID is returned for an id that is too long, not UTF-8 or negative.
	ErrID = errors.New("bad id")
	// ErrRequest is returned for numbers that no request can have.
	ErrRequest = errors.New("bad request")
	// ErrBusy is returned when MaxOpen requests are open.
	ErrBusy = errors.New("too many open requests")
	// ErrOverloaded is returned when every rank that may take the request is
	// above an overload threshold of the cluster tier.
	ErrOverloaded = cluster.ErrOverloaded
	// ErrWorkerNeeded is returned in mode direct for a request that names no
	// worker.
	ErrWorkerNeeded = cluster.ErrWorkerNeeded
	// ErrQueueFull is returned by RouteWait when the queue is full.
	ErrQueueFull = cluster.ErrQueueFull
	// ErrFull is returned by Route when no rank that may take the request has
	// room, or it would have to queue by the cluster tier's thresholds; the
	// request is not open then and may be sent again.
	ErrFull = errors.New("no room")
	// ErrStep is returned by Step for input that does not fit the worker.
	ErrStep = errors.New("bad step")
)

// MaxOpen bounds the requests that are open at one time.
const MaxOpen = 1 << 18

func checkRequest(req *model.Request) error {
	if req.ID < 0 {
		return fmt.Errorf("request %d: %w: request ids count from 0", req.ID, ErrID)
	}
	parts := [...]struct{ name, text string }{
		{"conversation id", req.Conv.ID}, {"tenant", req.Conv.Tenant}, {"model", req.Conv.Model},
	}
	for _, p := range parts {
		if len(p.text) > model.MaxIDBytes {
			return fmt.Errorf("request %d: %w: %s has %d bytes, at most %d are taken",
				req.ID, ErrID, p.name, len(p.text), model.MaxIDBytes)
		}
		if !utf8.ValidString(p.text) {
			return fmt.Errorf("request %d: %w: %s is not UTF-8", req.ID, ErrID, p.name)
		}
	}
	if req.PromptTokens < 0 || req.Children < 0 || req.ExpectedOutput < 0 {
		return fmt.Errorf("request %d: %w: prompt tokens %d, children %d and expected output %d must be 0 or more",
			req.ID, ErrRequest, req.PromptTokens, req.Children, req.ExpectedOutput)
	}
	return nil
}

// checkTarget says whether t is a rank, or with NoRank a worker, of this
// cluster.
func (r *Router) checkTarget(t model.Target) error {
	w, ok := r.byID[t.Worker]
	if !ok {
		return fmt.Errorf("%w %q: choose one of %s", ErrNoWorker, t.Worker, r.workerNames())
	}
	n := len(r.workers[w].ranks)
	if t.Rank != model.NoRank && (t.Rank < 0 || t.Rank >= n) {
		return fmt.Errorf("%w %s/%d: %s has ranks 0 to %d", ErrNoRank, t.Worker, t.Rank, t.Worker, n-1)
	}
	return nil
}

func (r *Router) workerNames() string {
	const most = 8
	text := ""
	for i, w := range r.sorted {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(r.workers)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += w.spec.ID
	}
	return text
}
