package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"adpdeck/router/model"
)

// RankHeader is sent where Habits.RankHeader is set. No engine knows it.
const RankHeader = "X-Fake-Rank"

// answer is a request whose answer is being written.
type answer struct {
	*work
	e       *Engine
	body    *body
	created int64
	text    string // of the answer so far
	ids     []uint32
}

// frame is one event of a stream; data that is a string is written as it is.
type frame struct {
	event string
	data  any
}

// shape is how a route writes an answer.
type shape interface {
	open(a *answer) []frame // with the first token
	delta(a *answer, text string) []frame
	end(a *answer) []frame
	whole(a *answer) any
}

// serve answers a generating route over an address that belongs to rank bound,
// or to all.
func (e *Engine) serve(route model.Route, bound int, s shape) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, bad := e.readBody(w, r)
		if bad != nil {
			e.fail(w, bad)
			return
		}
		j, bad := e.job(route, bound, r, b)
		if bad != nil {
			e.fail(w, bad)
			return
		}
		a, bad := e.start(j, b)
		if bad != nil {
			e.fail(w, bad)
			return
		}
		defer e.leave(a.work)
		if b.Stream {
			e.stream(w, r, a, s)
		} else {
			e.answer(w, r, a, s)
		}
	}
}

// job reads a request as far as the ranks need it.
func (e *Engine) job(route model.Route, bound int, r *http.Request, b *body) (job, *apiError) {
	j := job{route: route, model: b.Model, salt: b.CacheSalt}
	if b.NVExt != nil && b.NVExt.CacheSalt != "" {
		j.salt = b.NVExt.CacheSalt
	}
	if bad := e.knows(&j); bad != nil {
		return j, bad
	}
	t, bad := b.prompt(route, false)
	if bad != nil {
		return j, bad
	}
	j.prompt = t.ids
	if route == model.RouteEmbeddings {
		if len(t.ids) > e.cfg.MaxModelLen {
			return j, badRequest("input", "This model's maximum context length is %d tokens. Your input contains %d.", e.cfg.MaxModelLen, len(t.ids))
		}
	} else if j.want, j.natural, bad = e.want(b, t.ids); bad != nil {
		return j, bad
	}
	if j.choice, bad = e.choose(bound, route, r.Header, b); bad != nil {
		return j, bad
	}
	switch e.cfg.Kind {
	case model.EngineTRTLLM:
		if j.conv, bad = e.conversation(route, r.Header, b); bad != nil {
			return j, bad
		}
	case model.EngineDynamo:
		j.conv = session(r.Header)
		if len(j.conv) > model.MaxIDBytes {
			return j, badRequest("session", "the session id is longer than %d bytes", model.MaxIDBytes)
		}
		if bad := e.conflict(&j); bad != nil {
			return j, bad
		}
	}
	j.id = e.requestID(route, r.Header, b)
	return j, nil
}

// knows checks the model's name. SGLang and TensorRT-LLM answer whatever the name.
func (e *Engine) knows(j *job) *apiError {
	if slices.Contains(e.cfg.Adapters, j.model) {
		j.lora = j.model
		return nil
	}
	if slices.Contains(e.cfg.Models, j.model) && !(e.dyn != nil && e.habits.Load().NotReady) {
		return nil
	}
	switch e.cfg.Kind {
	case model.EngineVLLM:
		if j.model == "" {
			j.model = e.cfg.Models[0]
			return nil
		}
		return &apiError{status: http.StatusNotFound, kind: "NotFoundError", msg: fmt.Sprintf("The model `%s` does not exist.", j.model), param: "model"}
	case model.EngineDynamo:
		return &apiError{status: http.StatusNotFound, kind: "Not Found", msg: "Model not found: " + j.model}
	}
	if j.model == "" {
		j.model = e.cfg.Models[0]
	}
	return nil
}

// requestID is the id of an answer: vLLM and Dynamo take the client's.
func (e *Engine) requestID(route model.Route, header http.Header, b *body) string {
	e.mu.Lock()
	e.requests++
	n := e.requests
	e.mu.Unlock()
	id := fmt.Sprintf("%016x%016x", mix(e.cfg.Seed+n), n)
	switch e.cfg.Kind {
	case model.EngineVLLM, model.EngineDynamo:
		if own := header.Get("X-Request-Id"); own != "" && len(own) <= model.MaxIDBytes {
			id = own
		}
	case model.EngineSGLang:
		if b.RID != "" && len(b.RID) <= model.MaxIDBytes {
			return b.RID
		}
		return id
	}
	switch route {
	case model.RouteChat:
		return "chatcmpl-" + id
	case model.RouteCompletions:
		return "cmpl-" + id
	case model.RouteResponses:
		return "resp_" + id
	case model.RouteEmbeddings:
		return "embd-" + id
	case RouteMessages:
		return "msg_" + id
	}
	return id
}

func (e *Engine) start(j job, b *body) (*answer, *apiError) {
	if bad := e.rejected(j.model); bad != nil {
		return nil, bad
	}
	w, err := e.submit(j)
	if err != nil {
		kind := "InternalServerError"
		if errors.Is(err, errBusy) {
			kind = "ServiceUnavailableError"
		}
		return nil, &apiError{status: http.StatusServiceUnavailable, kind: kind, msg: err.Error()}
	}
	return &answer{work: w, e: e, body: b, created: e.clock.Now().Unix()}, nil
}

// crashed reports that the answer is to be cut off here.
func (a *answer) crashed() bool {
	n := a.e.habits.Load().CrashAfterTokens
	return n > 0 && a.sent >= n
}

// answer writes the whole answer when it is there.
func (e *Engine) answer(w http.ResponseWriter, r *http.Request, a *answer, s shape) {
	for {
		n, err := e.next(r.Context(), a.work)
		a.text += n.text
		a.ids = append(a.ids, n.ids...)
		if err != nil || a.crashed() {
			e.broken(w, r, err)
			return
		}
		if n.ended {
			break
		}
	}
	e.bind(a.work)
	e.headers(w, r, a)
	whole := s.whole(a)
	e.leave(a.work) // so that who has read the answer finds it among those served
	writeJSON(w, http.StatusOK, whole)
}

// broken ends an answer that cannot go on before its first byte.
func (e *Engine) broken(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil || r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	e.fail(w, &apiError{status: http.StatusInternalServerError, kind: "InternalServerError", msg: "EngineCore encountered an issue: " + err.Error()})
}

func (e *Engine) headers(w http.ResponseWriter, r *http.Request, a *answer) {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= model.MaxIDBytes {
		w.Header().Set("X-Request-Id", id)
	}
	if !e.habits.Load().RankHeader {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.rank != nil {
		w.Header().Set(RankHeader, strconv.Itoa(a.rank.at))
	}
}

// stream writes the answer as it comes. The headers go out at once, as from
// engines, unless RankHeader must wait for the rank.
func (e *Engine) stream(w http.ResponseWriter, r *http.Request, a *answer, s shape) {
	out := http.NewResponseController(w)
	e.awaitRank(r.Context(), a.work)
	e.headers(w, r, a)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	_ = out.Flush()
	for opened := false; ; {
		n, err := e.next(r.Context(), a.work)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		var frames []frame
		if !opened {
			opened = true
			e.bind(a.work)
			frames = s.open(a)
		}
		a.text += n.text
		a.ids = append(a.ids, n.ids...)
		if len(n.ids) > 0 {
			frames = append(frames, s.delta(a, n.text)...)
		}
		crashed := a.crashed()
		if n.ended && !crashed {
			frames = append(frames, s.end(a)...)
			e.leave(a.work)
		}
		if err := writeFrames(w, frames); err != nil || out.Flush() != nil || crashed {
			panic(http.ErrAbortHandler)
		}
		if n.ended {
			return
		}
	}
}

// awaitRank waits until TensorRT-LLM's queue has placed the request, where the
// headers are to name its rank.
func (e *Engine) awaitRank(ctx context.Context, w *work) {
	for e.cfg.Kind == model.EngineTRTLLM && e.habits.Load().RankHeader {
		e.mu.Lock()
		placed := w.rank != nil || w.ended
		e.mu.Unlock()
		if placed {
			return
		}
		select {
		case <-w.bell:
		case <-e.changed():
		case <-ctx.Done():
			return
		}
	}
}

func writeFrames(w http.ResponseWriter, frames []frame) error {
	var buf []byte
	for _, f := range frames {
		if f.event != "" {
			buf = append(append(append(buf, "event: "...), f.event...), '\n')
		}
		buf = append(buf, "data: "...)
		if s, ok := f.data.(string); ok {
			buf = append(buf, s...)
		} else {
			b, err := json.Marshal(f.data)
			if err != nil {
				return err
			}
			buf = append(buf, b...)
		}
		buf = append(buf, "\n\n"...)
	}
	_, err := w.Write(buf)
	return err
}
