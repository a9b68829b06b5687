package gateway

import (
	"net/http"
	"sync"
	"time"
)

// writer sets a deadline for each write, moving it on now and then.
type writer struct {
	http.ResponseWriter
	clock interface{ Now() time.Time }
	wrote bool

	mu      sync.Mutex // guards what follows
	moved   time.Time  // when the deadline was set last, zero: not yet
	hurried bool       // it stands as it is
	freed   bool
}

func newWriter(w http.ResponseWriter, clock interface{ Now() time.Time }) *writer {
	return &writer{ResponseWriter: w, clock: clock}
}

// Unwrap lets http.ResponseController find the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes that an answer has begun.
func (w *writer) WriteHeader(status int) {
	w.wrote = w.wrote || status >= 200
	w.move()
	w.ResponseWriter.WriteHeader(status)
}

// Write writes within writeTimeout, give or take a quarter.
func (w *writer) Write(p []byte) (int, error) {
	w.wrote = true
	w.move()
	return w.ResponseWriter.Write(p)
}

func (w *writer) move() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.clock.Now(); !w.hurried && (w.moved.IsZero() || now.Sub(w.moved) > writeTimeout/4) {
		w.moved = now
		w.until(writeTimeout)
	}
}

// hurry leaves a client that does not read its answer a last moment: nothing of
// it is still to come. It may be called from any goroutine.
func (w *writer) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.freed {
		w.hurried = true
		w.until(lastTimeout)
	}
}

// free says that the handler ends: what follows is the server's last flush, and
// the connection's next request, which sets a deadline of its own.
func (w *writer) free() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.freed = true
	if !w.hurried {
		w.until(writeTimeout)
	}
}

// until sets the deadline so far ahead. Callers hold mu.
func (w *writer) until(d time.Duration) {
	// A writer without deadlines (a test's) has no connection that could stall.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(d))
}
