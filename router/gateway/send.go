package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"adpdeck/router/engine"
	"adpdeck/router/engine/steer"
	"adpdeck/router/gateway/convid"
	"adpdeck/router/gateway/tap"
	"adpdeck/router/model"
)

// rewrite prepares what every attempt of a request has in common.
func rewrite(p *httputil.ProxyRequest) {
	// Where it goes is decided by the attempt; the proxy wants something there.
	p.Out.URL.Scheme, p.Out.URL.Host = "http", "engine"
	h := p.Out.Header
	// An answer that is compressed cannot be watched, no route is upgraded, and the
	// body, which is here, waits for no leave to be sent.
	for _, name := range [...]string{"Accept-Encoding", "Upgrade", "Connection", "Content-Length", "Expect"} {
		h.Del(name)
	}
	for _, name := range ownHeaders {
		h.Del(name)
	}
	p.Out.TransferEncoding, p.Out.Trailer = nil, nil
}

// carrier is the proxy's transport: it routes and sends the trip that the
// request's context holds.
type carrier struct{}

func (carrier) RoundTrip(out *http.Request) (*http.Response, error) {
	t, ok := out.Context().Value(tripKey{}).(*trip)
	if !ok {
		return nil, errors.New("gateway: a request without its trip")
	}
	return t.send(out)
}

// failed answers for a request that got no answer from an engine.
func (g *Gateway) failed(_ http.ResponseWriter, r *http.Request, err error) {
	if t, ok := r.Context().Value(tripKey{}).(*trip); ok {
		t.refuse(err)
	}
}

// send books a rank and sends the request there; where nothing was answered, once
// more elsewhere.
func (t *trip) send(out *http.Request) (*http.Response, error) {
	if err := t.place(); err != nil {
		return nil, err
	}
	resp, err := t.attempt(out)
	var up *upstreamError
	if err == nil || !errors.As(err, &up) || !t.maySendAgain(up) {
		return resp, err
	}
	t.free(model.OutcomeError)
	t.exclude(up)
	if up.again = t.place(); up.again != nil {
		return nil, up
	}
	t.g.metrics.retries.Inc()
	return t.attempt(out)
}

// place routes and books the request, waiting for room as long as it may.
func (t *trip) place() error {
	ctx := t.ctx
	if s := t.g.spec.QueueTimeoutSecs; s > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, seconds(s), errQueue)
		defer done()
	}
	t.req.ID = t.g.ids.Add(1)
	d, err := t.g.router.RouteWait(ctx, &t.req, nil)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			return cause
		}
		return err
	}
	t.booked, t.decision, t.target = true, d, d.Target
	return nil
}

// maySendAgain reports that a failed attempt may be followed by another one:
// nothing was answered, and nothing is done twice by it.
func (t *trip) maySendAgain(up *upstreamError) bool {
	if up.begun || t.ctx.Err() != nil {
		return false
	}
	return up.unsent || t.g.spec.Retry && (!up.left || t.route != model.RouteResponses)
}

// exclude keeps the next attempt off the target that failed: off its whole worker
// unless each of its ranks has an address of its own.
func (t *trip) exclude(up *upstreamError) {
	x := up.target
	if up.unsent || t.channel != steer.ChannelPort {
		x.Rank = model.NoRank
	}
	t.req.Exclude = append(t.req.Exclude, x)
}

// attempt sends the request to the rank that it is booked on.
func (t *trip) attempt(out *http.Request) (*http.Response, error) {
	up, err := t.g.engines.Upstream(t.target, t.route, convid.ForEngine(t.req.Conv))
	if err != nil { // the worker left in this moment
		return nil, &upstreamError{target: t.target, err: err, unsent: true}
	}
	t.channel = up.Channel
	t.g.router.Sent(t.req.ID, up.Channel)
	var seen watch
	req, err := t.outgoing(out, &up, &seen)
	if err != nil {
		return nil, err
	}
	t.g.metrics.sent(t)
	resp, err := up.Transport.RoundTrip(req)
	if err == nil && resp.StatusCode < http.StatusOK {
		// 101, or no status at all: nothing that a client could be given.
		resp.Body.Close()
		err = fmt.Errorf("the status %d is no answer", resp.StatusCode)
	}
	if err != nil {
		return nil, t.attemptFailed(err, &seen)
	}
	t.g.engines.Answered(t.target)
	t.letGo()
	t.answer(resp)
	return resp, nil
}

// attemptFailed judges an attempt without an answer. A connection that had idled
// and was closed by the engine in that moment says nothing about its health.
func (t *trip) attemptFailed(err error, seen *watch) error {
	begun := seen.begun.Load()
	switch cause := context.Cause(t.ctx); {
	case cause != nil:
		err = cause
		if errors.Is(cause, errDeadline) {
			t.g.engines.Failed(t.target, err) // it took the request, and the head of its answer never ended
		}
	case begun || !seen.reused.Load():
		t.g.engines.Failed(t.target, err)
	}
	if t.client.Err() != nil {
		return err
	}
	t.g.log.Info("engine did not answer", "target", t.target.String(), "route", t.route, "err", err)
	return &upstreamError{target: t.target, err: err, left: !isDial(err), begun: begun}
}

func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// watch is what is seen of an attempt's connection, by the transport's goroutines.
type watch struct{ reused, begun atomic.Bool }

// outgoing is the request as this engine gets it.
func (t *trip) outgoing(out *http.Request, up *engine.Upstream, seen *watch) (*http.Request, error) {
	fields := up.Body
	if t.hide {
		// With the usage vLLM would also give what counts only beside it: one in
		// every chunk.
		fields = append(fields[:len(fields):len(fields)], steer.Field{Name: "stream_options.include_usage", JSON: []byte("true")},
			steer.Field{Name: "stream_options.continuous_usage_stats"})
	}
	text, err := steer.Edit(t.doc.Bytes(), fields)
	if err != nil {
		return nil, err
	}
	ctx := httptrace.WithClientTrace(t.ctx, &httptrace.ClientTrace{
		GotConn:              func(c httptrace.GotConnInfo) { seen.reused.Store(c.Reused) },
		GotFirstResponseByte: func() { seen.begun.Store(true) },
	})
	req := out.WithContext(ctx)
	req.URL = target(up.Base, out.URL)
	req.Host = req.URL.Host
	req.Header = out.Header.Clone()
	for _, name := range up.Strip {
		req.Header.Del(name)
	}
	for name, values := range up.Header {
		req.Header[name] = values
	}
	req.ContentLength = int64(len(text))
	req.Body = io.NopCloser(bytes.NewReader(text))
	if req.Header["Idempotency-Key"] == nil && req.Header["X-Idempotency-Key"] == nil {
		// The transport then dials anew where an idle connection turns out to be
		// closed before a byte was written. With such a key, were it blank, it would
		// send again also what the engine has read, which is for us to decide.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	}
	return req, nil
}

// target is the engine's address of what the client called.
func target(base, called *url.URL) *url.URL {
	u := *base
	u.Path, u.RawPath = called.Path, called.RawPath
	if base.Path != "" && base.Path != "/" {
		joined := base.JoinPath(called.EscapedPath())
		u.Path, u.RawPath = joined.Path, joined.RawPath
	}
	u.RawQuery = called.RawQuery
	return &u
}

// answer watches an answer pass.
func (t *trip) answer(resp *http.Response) {
	t.answered, t.status, t.header = true, resp.StatusCode, resp.Header
	for _, name := range ownHeaders {
		resp.Header.Del(name)
	}
	for name := range resp.Header {
		// Whether pages of other sites may read what is here is not the engine's to
		// say: they may not.
		if strings.HasPrefix(name, "Access-Control-") {
			delete(resp.Header, name)
		}
	}
	t.targetHeaders(resp.Header)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	o := tap.Options{Events: kind == "text/event-stream", End: t.bodyEnded}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		o.Opaque = true // it was not asked for
	}
	if resp.StatusCode < 300 {
		o.First, o.Progress = t.firstEvent, t.progress
		o.HideUsage, o.Ending = t.hide, endingOf(t.route)
	}
	if o.Events && o.HideUsage && !o.Opaque {
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
	}
	resp.Body = tap.New(resp.Body, o)
}

// endingOf is how all engines end a stream of the route.
func endingOf(route model.Route) tap.Ending {
	switch route {
	case model.RouteChat, model.RouteCompletions:
		return tap.EndsDone
	case model.RouteResponses:
		return tap.EndsResponse
	}
	return tap.EndsWithBody
}

var ownHeaders = [...]string{"X-Adpdeck-Worker", "X-Adpdeck-Rank", "X-Adpdeck-Decision"}

// targetHeaders say where the request went, where the settings want that.
func (t *trip) targetHeaders(h http.Header) {
	if !t.g.spec.DecisionHeaders || t.target.Worker == "" {
		return
	}
	h.Set(ownHeaders[0], t.target.Worker)
	if t.target.Rank != model.NoRank {
		h.Set(ownHeaders[1], strconv.Itoa(t.target.Rank))
	}
	h.Set(ownHeaders[2], strconv.FormatUint(t.decision.ID, 10))
}
