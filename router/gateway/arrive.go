package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// pregrown is how much memory a body gets before it has come: what a client
// announces and does not send costs no more.
const pregrown = 64 << 10

// errHeld ends the reading of a body that comes on top of too many.
var errHeld = errors.New("too many bodies at once")

// bound sets the first deadlines of a request: of its body's arrival, also of one
// that nobody reads, since the server reads on after an answer to use the
// connection again; and of the answer, for handlers that set none of their own.
func (g *Gateway) bound(w http.ResponseWriter, r *http.Request) {
	deadline := http.NewResponseController(w)
	// A writer without deadlines (a test's) has no connection that could stall.
	if r.Body != nil && r.Body != http.NoBody {
		_ = deadline.SetReadDeadline(time.Now().Add(g.patience))
	}
	_ = deadline.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// take reads a request's body within its bounds of size and time, or until ctx
// ends. What has come is counted in held and as held by the gateway; the caller
// lets go of it.
func (g *Gateway) take(ctx context.Context, w http.ResponseWriter, r *http.Request, held *int64) ([]byte, error) {
	if r.ContentLength > MaxBodyBytes {
		return nil, &http.MaxBytesError{Limit: MaxBodyBytes}
	}
	deadline := http.NewResponseController(w)
	stop := context.AfterFunc(ctx, func() { _ = deadline.SetReadDeadline(time.Unix(1, 0)) })
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, pregrown)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(&counted{http.MaxBytesReader(w, r.Body, MaxBodyBytes), g, held})
	if ended := !stop(); err != nil || ended {
		return nil, g.arrival(err, context.Cause(ctx))
	}
	_ = deadline.SetReadDeadline(time.Time{})
	return buf.Bytes(), nil
}

// arrival words why a body did not come. The server takes a connection whose time
// is up for one whose client went, and ends the context for both.
func (g *Gateway) arrival(err, cause error) error {
	var large *http.MaxBytesError
	switch {
	case cause != nil && !errors.Is(cause, context.Canceled), errors.As(err, &large):
		return cmp.Or(cause, err)
	case errors.Is(err, errHeld):
		return refusal(http.StatusTooManyRequests, "too_much_at_once", "the open requests hold %d MiB already: send it again later", MaxHeldBytes>>20).after(1)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refusal(http.StatusRequestTimeout, "body_timeout", "the request body took longer than %v: send it again", g.patience)
	case cause != nil:
		return cause
	}
	return refusal(http.StatusBadRequest, "bad_body", "the request body broke off: send it again")
}

// counted is a body whose bytes count as held.
type counted struct {
	src  io.Reader
	g    *Gateway
	held *int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	if c.g.held.Add(int64(n)) > MaxHeldBytes {
		c.g.held.Add(int64(-n))
		return 0, errHeld
	}
	*c.held += int64(n)
	return n, err
}
