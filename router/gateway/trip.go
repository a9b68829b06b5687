package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"adpdeck/router/gateway/body"
	"adpdeck/router/gateway/convid"
	"adpdeck/router/gateway/prompt"
	"adpdeck/router/gateway/tap"
	"adpdeck/router/model"
)

// trip is one request on its way. It belongs to the goroutine of its handler.
type trip struct {
	g      *Gateway
	w      *writer
	route  model.Route
	start  time.Time
	client context.Context // ends when the client goes
	ctx    context.Context // also when time is up or the gateway stops
	cancel context.CancelCauseFunc

	doc       *body.Doc
	held      int64 // bytes of the body that are counted as held
	req       model.Request
	predicted bool // the match is of the prompt's tokens
	hide      bool // the client did not ask for the usage that it would get

	booked   bool // req.ID is on the router's books
	decision model.Decision
	target   model.Target
	channel  string
	header   http.Header // of the answer
	first    bool        // the router knows of the first token

	answered bool // an answer's head came
	status   int  // of the answer, or of the refusal
	ended    tap.End
	outcome  model.Outcome
}

type tripKey struct{}

// carry returns the handler of a route.
func (g *Gateway) carry(route model.Route) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !g.enter() {
			rw.Header().Set("Connection", "close")
			refuse(rw, problemOf(errStopped))
			return
		}
		t := &trip{g: g, w: newWriter(rw, g.clock), route: route, start: g.clock.Now(), client: r.Context()}
		t.ctx, t.cancel = context.WithCancelCause(r.Context())
		done := context.CancelFunc(func() {})
		if s := g.spec.RequestTimeoutSecs; s > 0 {
			t.ctx, done = context.WithTimeoutCause(t.ctx, seconds(s), errDeadline)
		}
		unstop := context.AfterFunc(g.hard, func() { t.cancel(errStopped) })
		unhurry := context.AfterFunc(t.ctx, t.w.hurry)
		g.metrics.begin(route)
		defer func() {
			p := recover()
			t.close(p)
			unhurry()
			t.w.free()
			unstop()
			done()
			t.cancel(nil)
			g.leave()
			if p != nil {
				t.panicked(p)
			}
		}()
		t.serve(r)
	})
}

// serve does the work; whatever way it ends, close follows.
func (t *trip) serve(r *http.Request) {
	if err := t.read(r); err != nil {
		t.refuse(err)
		return
	}
	r = r.WithContext(context.WithValue(t.ctx, tripKey{}, t))
	r.Body, r.ContentLength = http.NoBody, 0 // each attempt brings its own
	t.g.proxy.ServeHTTP(t.w, r)
}

// read takes the request in: its body, whose it is, and what its prompt is.
func (t *trip) read(r *http.Request) error {
	raw, err := t.readBody(r)
	if err != nil {
		return err
	}
	if t.doc, err = body.Parse(raw); err != nil {
		return err
	}
	name := t.doc.Get("model")
	if name.Exists() && name.Type != jsonString {
		return refusal(http.StatusBadRequest, "bad_request", "the field model is not text: name a model of /v1/models")
	}
	source := convid.None
	// It is kept, the body is not.
	t.req.Conv.Model, t.req.LoRA = t.g.adapter(t.doc, strings.Clone(name.Str))
	if t.req.Conv.ID, source, err = convid.Read(t.doc, r.Header); err != nil {
		return err
	}
	if t.req.Conv.ID == "" && t.g.spec.DeriveConversation {
		if t.req.Conv.ID = convid.Derive(t.doc, t.route); t.req.Conv.ID != "" {
			source = convid.Derived
		}
	}
	if t.req.Conv.Tenant, err = convid.Tenant(r.Header, t.g.spec.TenantHeader, t.g.spec.TenantFromKey); err != nil {
		return err
	}
	t.g.metrics.source(source)
	if t.req.Explicit, err = t.g.wish(r.Header); err != nil {
		return err
	}
	t.req.Route = t.route
	if err := hints(&t.req, t.doc, r.Header); err != nil {
		return err
	}
	t.hide = hidesUsage(t.route, t.doc)
	p := t.g.prompts.Read(t.ctx, prompt.Source{Route: t.route, Doc: t.doc, Conv: t.req.Conv, LoRA: t.req.LoRA})
	p.Fill(&t.req)
	t.predicted = len(p.Locals) > 0 && !p.Guessed
	t.g.metrics.prompt(p.How)
	return nil
}

// readBody reads the body, unless it is one that cannot be read.
func (t *trip) readBody(r *http.Request) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, refusal(http.StatusUnsupportedMediaType, "bad_encoding", "a body in Content-Encoding %.20q cannot be read: send it as it is", enc)
	}
	return t.g.take(t.ctx, t.w, r, &t.held)
}

// letGo forgets the body: no attempt follows.
func (t *trip) letGo() {
	t.g.held.Add(-t.held)
	t.held = 0
	t.doc, t.req.Locals, t.req.Lead = nil, nil, nil
}

// refuse answers with what went wrong, if the client is there to hear it.
func (t *trip) refuse(err error) {
	if cause := context.Cause(t.ctx); cause != nil && t.client.Err() == nil && err != nil {
		if p := problemOf(err); p.status == statusGone {
			err = cause
		}
	}
	p := problemOf(err)
	t.status = p.status
	if t.client.Err() != nil && p.status != http.StatusRequestTimeout {
		t.status = statusGone
		panic(http.ErrAbortHandler)
	}
	if p.status >= 500 {
		t.g.log.Warn("request refused", "route", t.route, "status", p.status, "why", err.Error())
	}
	t.targetHeaders(t.w.Header())
	refuse(t.w, p)
}

// close frees what the request holds, whatever way it ended; p is what its
// handler panicked with.
func (t *trip) close(p any) {
	t.outcome = t.howItEnded(p)
	if t.booked {
		t.free(t.outcome)
	}
	t.letGo()
	t.g.metrics.end(t)
}

func (t *trip) howItEnded(p any) model.Outcome {
	switch {
	case p != nil && p != any(http.ErrAbortHandler):
		return model.OutcomePanic
	case t.answered && t.ended.Complete && !t.ended.Failed && t.status < 400 && (p == nil || t.ended.Marked):
		return model.OutcomeOK
	case t.client.Err() != nil:
		return model.OutcomeCancelled
	}
	return model.OutcomeError
}

// free takes the request off the router's books.
func (t *trip) free(o model.Outcome) {
	t.booked = false
	t.g.router.Done(t.req.ID, o)
}

// panicked answers for a handler that panicked, where an answer is possible, and
// lets the server close the connection where it is not.
func (t *trip) panicked(p any) {
	if p == any(http.ErrAbortHandler) {
		panic(p)
	}
	t.g.log.Error("panic while carrying a request", "route", t.route, slog.Any("panic", p), "stack", string(debug.Stack()))
	if t.w.wrote {
		panic(http.ErrAbortHandler)
	}
	refuse(t.w, refusal(http.StatusInternalServerError, "internal", "adpdeck failed while carrying the request: send it again, and report what its log says"))
}
