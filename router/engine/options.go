package engine

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"
)

// Clock is the time in which stamps are made. Waits are in the time of package
// time.
type Clock interface{ Now() time.Time }

// Options tune a Fleet; zero fields take the defaults named.
type Options struct {
	// Transport carries requests to engines, the fleet's own and, as
	// Upstream.Transport, those of clients. Default: one that dials within two
	// seconds, bounds headers, and leaves compression alone.
	Transport http.RoundTripper
	// Dial opens the connections of event subscribers and of the default
	// Transport (a net.Dialer that finds vanished hosts).
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Clock stamps what engines say (the wall's).
	Clock Clock
	// Rand draws from [0,1) (math/rand/v2): periods are spread a little, so that
	// many workers are not asked at the same moment.
	Rand func() float64
	// Getenv reads the variables that hold engines' keys (os.Getenv).
	Getenv func(name string) string
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (o *Options) defaults() {
	if o.Clock == nil {
		o.Clock = wallClock{}
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Transport == nil {
		dial := o.Dial
		if dial == nil {
			dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 5 * time.Second}).DialContext
		}
		o.Transport = &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				// A dial outlives the request that wanted it: it needs an end of its own.
				ctx, cancel := context.WithTimeout(ctx, dialTimeout)
				defer cancel()
				return dial(ctx, network, address)
			},
			TLSHandshakeTimeout:    dialTimeout,
			MaxIdleConnsPerHost:    256,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true,
		}
	}
}

// Periods and bounds of what is asked of an engine. A dead engine is found out
// within checkPeriod + checkTimeout + recheckPause + checkTimeout < 3 s, and one
// that answers again within checkTimeout + 2 × checkPeriod < 5 s.
const (
	dialTimeout   = 2 * time.Second
	idleTimeout   = 4 * time.Second // engines close idle connections after 5 (uvicorn): none must meet a request
	checkPeriod   = 500 * time.Millisecond
	checkTimeout  = time.Second
	recheckPause  = 200 * time.Millisecond
	loadPeriod    = time.Second
	loadTimeout   = 2 * time.Second
	drainTimeout  = 4 * time.Second // TensorRT-LLM waits up to two seconds for a first row
	learnPeriod   = 10 * time.Second
	learnRetry    = time.Second
	learnTimeout  = 2 * time.Second
	schemaPeriod  = time.Minute // a web server makes its schema anew each time
	tokenTimeout  = 2 * time.Second
	hearPeriod    = 2 * time.Second
	drainPeriod   = 250 * time.Millisecond
	maxHealthPage = 1 << 20 // a frontend lists its workers
	maxTokenPage  = 32 << 20
	maxTokenBody  = 8 << 20
	maxTokenCalls = 4 // at one worker at a time
)

// spread gives a period with up to a tenth added or taken away.
func (o *Options) spread(d time.Duration) time.Duration {
	return d + time.Duration((o.Rand()-0.5)*0.2*float64(d))
}
