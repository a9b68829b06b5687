package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// answer is what an engine said to one request of the fleet's own.
type answer struct {
	status      int
	contentType string
	body        []byte
	sent        time.Time // before it was sent: what it says is not older
}

// fetch asks an engine: GET without a body, POST with one. The whole of it takes
// at most timeout, and at most limit+1 bytes of the answer are read, so that the
// reader sees that there were more.
func (w *worker) fetch(ctx context.Context, address string, body []byte, limit int64, timeout time.Duration) (answer, error) {
	return w.fetchWith(ctx, address, nil, body, limit, timeout)
}

// fetchWith is fetch with further headers.
func (w *worker) fetchWith(ctx context.Context, address string, header http.Header, body []byte, limit int64, timeout time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	method, content := http.MethodGet, io.Reader(nil)
	if body != nil {
		method, content = http.MethodPost, bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return answer{}, err
	}
	maps.Copy(req.Header, header)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if w.key != "" && w.isHost(req.URL.Hostname()) {
		req.Header.Set("Authorization", "Bearer "+w.key)
	}
	a := answer{sent: w.f.o.Clock.Now()}
	// The transport itself: an engine redirects nowhere.
	resp, err := w.f.o.Transport.RoundTrip(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.status, a.contentType = resp.StatusCode, resp.Header.Get("Content-Type")
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	return a, err
}

// isHost reports whether a host is the worker's own: metrics may be elsewhere, and
// the key is none of theirs.
func (w *worker) isHost(name string) bool {
	return slices.ContainsFunc(w.doors, func(d *door) bool { return strings.EqualFold(hostOf(d.base), name) })
}

// under is an address below a worker's base.
func under(base, path string) string { return strings.TrimRight(base, "/") + path }

// plain says in a few words why an engine could not be asked, or not within
// timeout (0: somebody else's).
func plain(err error, timeout time.Duration) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errTimeout):
		if timeout == 0 {
			return "no answer in time"
		}
		return noAnswerWithin(timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return wordsRefused
	case errors.Is(err, syscall.ECONNRESET):
		return wordsReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return wordsEnded
	case errors.As(err, &dns):
		return "host " + dns.Name + " is not known"
	case errors.As(err, &op) && op.Timeout():
		return wordsNoConnection
	}
	return cut(err.Error())
}

// What plain says that names nobody.
const (
	wordsRefused = "connection refused"
	wordsReset   = "connection reset"
	wordsEnded   = "the connection ended before its answer did"
	wordsDoubt   = " requests in a row got no answer, though the engine answers"
)

var wordsNoConnection = "no connection within " + dialTimeout.String()

func noAnswerWithin(d time.Duration) string { return fmt.Sprintf("no answer within %v", d) }

// errTimeout is for callers that count a wait of their own as one.
var errTimeout = errors.New("timeout")

// cut shortens foreign text.
func cut(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// hostOf is the host of an address, for endpoints that an engine gives without.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
