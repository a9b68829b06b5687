package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"

	"adpdeck/router"
	"adpdeck/router/gateway/body"
	"adpdeck/router/gateway/convid"
	"adpdeck/router/model"
)

// problem is an answer that refuses a request.
type problem struct {
	status  int
	code    string
	message string
	// retryAfter is when to come again, in seconds; 0: not said.
	retryAfter int
}

func (p *problem) Error() string { return p.message }

func refusal(status int, code, format string, args ...any) *problem {
	return &problem{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// after says when to come again.
func (p *problem) after(seconds int) *problem {
	p.retryAfter = seconds
	return p
}

// Causes with which a request's context ends.
var (
	errDeadline = errors.New("the request took longer than its time limit")
	errQueue    = errors.New("no rank had room in time")
	errStopped  = errors.New("adpdeck is shutting down")
)

// statusGone is what a request counts as whose client went (nginx's number); it
// is never sent.
const statusGone = 499

// problemOf turns an error of the router or of an engine into an answer.
func problemOf(err error) *problem {
	var p *problem
	var large *http.MaxBytesError
	var up *upstreamError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &large):
		return refusal(http.StatusRequestEntityTooLarge, "body_too_large", "the request body is larger than %d MiB: send less", MaxBodyBytes>>20)
	case errors.Is(err, errStopped):
		return refusal(http.StatusServiceUnavailable, "shutting_down", "%v: send the request to another one, or again later", errStopped).after(5)
	case errors.As(err, &up):
		return up.problem()
	case errors.Is(err, errQueue):
		return refusal(http.StatusTooManyRequests, "no_room", "%v: send it again, or raise the ranks' cap or the queue's time limit", err).after(1)
	case errors.Is(err, errDeadline), errors.Is(err, context.DeadlineExceeded):
		return refusal(http.StatusGatewayTimeout, "timeout", "%v: ask for fewer tokens, or raise the limit", errDeadline)
	case errors.Is(err, context.Canceled):
		return refusal(statusGone, "client_gone", "the client went before it was answered")
	}
	for _, c := range routing {
		if errors.Is(err, c.err) {
			q := refusal(c.status, c.code, "%v", err).after(c.after)
			if c.next != "" {
				q.message += ": " + c.next
			}
			return q
		}
	}
	return refusal(http.StatusInternalServerError, "internal", "adpdeck could not carry the request: %v", err)
}

// routing says how the router's refusals are answered. Their texts name the
// cause; next is added where they name no next step.
var routing = []struct {
	err        error
	status     int
	code, next string
	after      int
}{
	{body.ErrBody, http.StatusBadRequest, "bad_body", "", 0},
	{convid.ErrID, http.StatusBadRequest, "bad_conversation", "", 0},
	{router.ErrID, http.StatusBadRequest, "bad_id", "", 0},
	{router.ErrRequest, http.StatusBadRequest, "bad_request", "", 0},
	{router.ErrNoWorker, http.StatusBadRequest, "no_such_worker", "", 0},
	{router.ErrNoRank, http.StatusBadRequest, "no_such_rank", "", 0},
	{router.ErrWorkerNeeded, http.StatusBadRequest, "worker_needed", "name one in X-Adpdeck-Worker, or use another router_mode", 0},
	{router.ErrQueueFull, http.StatusTooManyRequests, "no_room", "send it again later", 1},
	{router.ErrFull, http.StatusTooManyRequests, "no_room", "", 1},
	{router.ErrOverloaded, http.StatusTooManyRequests, "no_room", "send it again later", 1},
	{router.ErrBusy, http.StatusTooManyRequests, "no_room", "", 1},
	{router.ErrNoModel, http.StatusNotFound, "model_not_found", "", 0},
	{router.ErrNoWorkers, http.StatusServiceUnavailable, "no_worker", "", 5},
	{router.ErrDown, http.StatusServiceUnavailable, "rank_down", "", 5},
	{router.ErrExcluded, http.StatusServiceUnavailable, "no_rank", "send it again later", 1},
	{router.ErrNoEligible, http.StatusServiceUnavailable, "no_rank", "set one ready, or see /health for what is down", 5},
}

// refuse answers with an OpenAI error object, unless nobody is there to read it.
func refuse(w http.ResponseWriter, p *problem) {
	if p.status == statusGone {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Del("Content-Length")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	w.WriteHeader(p.status)
	kind := "invalid_request_error"
	switch {
	case p.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case p.status >= 500:
		kind = "server_error"
	}
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	// A client that does not read its answer is no concern of ours.
	_ = json.NewEncoder(w).Encode(map[string]object{"error": {Message: p.message, Type: kind, Code: p.code}})
}

// upstreamError is an engine that did not answer.
type upstreamError struct {
	target model.Target
	err    error
	// again is why the request was not sent elsewhere after that, nil where that
	// was not tried.
	again error
	// left says that the request may have reached the engine, begun that a byte of
	// an answer came, unsent that nothing was tried: the worker is not there.
	left, begun, unsent bool
}

func (u *upstreamError) Error() string { return fmt.Sprintf("engine of %s: %v", u.target, u.err) }
func (u *upstreamError) Unwrap() error { return u.err }

// problem names the cause without the engine's address: clients have no business
// with it.
func (u *upstreamError) problem() *problem {
	p := refusal(http.StatusBadGateway, "engine_failed", "the engine of %s %s before it answered", u.target, causeOf(u.err))
	if u.unsent {
		p = refusal(http.StatusBadGateway, "cannot_steer", "%v", u.err)
	}
	if errors.Is(u.err, errDeadline) || errors.Is(u.err, context.DeadlineExceeded) {
		p = refusal(http.StatusGatewayTimeout, "timeout", "the engine of %s had not answered when %v", u.target, errDeadline)
	}
	if u.again != nil {
		p.message += fmt.Sprintf("; it could not be sent elsewhere (%s)", problemOf(u.again).message)
	}
	p.message += ": send the request again; /health names the engines that are down"
	return p.after(1)
}

func causeOf(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused the connection"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset the connection"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "could not be reached in time"
	}
	return "broke off"
}
