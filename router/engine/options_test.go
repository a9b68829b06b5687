package engine

import (
	"net/http"
	"testing"
	"time"
)

// TestIdleConnectionsAreClosedBeforeTheEngineDoes wants no request to meet a
// connection that is just being closed: uvicorn does so after five seconds.
func TestIdleConnectionsAreClosedBeforeTheEngineDoes(t *testing.T) {
	var o Options
	o.defaults()
	if idle := o.Transport.(*http.Transport).IdleConnTimeout; idle <= 0 || idle >= 5*time.Second {
		t.Errorf("idle connections are kept for %v", idle)
	}
}
