package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router"
	"adpdeck/router/gateway/prompt"
	"adpdeck/router/model"
)

// Limits of what is taken.
const (
	MaxBodyBytes   = 32 << 20
	MaxHeaderBytes = 64 << 10
	// MaxHeldBytes bounds the sum of the bodies that are held at one time.
	MaxHeldBytes = 1 << 30
)

// Time-outs of sockets. A stream has no bound but the request's deadline, only
// each of its writes has.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 60 * time.Second
	writeTimeout  = 60 * time.Second
	lastTimeout   = time.Second // of a write when the request's time is up
	idleTimeout   = 120 * time.Second
)

// Options are what a gateway is made from. Router, Engines and Clock are needed.
type Options struct {
	Router  *router.Router
	Engines Engines
	Spec    model.GatewaySpec
	Clock   router.Clock
	// Log tells of what went wrong; nil: nobody.
	Log *slog.Logger
}

// Gateway is the front. It is an http.Handler; any number of goroutines may use
// it.
type Gateway struct {
	router  *router.Router
	engines Engines
	spec    model.GatewaySpec
	clock   router.Clock
	log     *slog.Logger

	mux     *http.ServeMux
	proxy   *httputil.ReverseProxy
	metrics *metrics
	view    *view
	prompts *prompt.Reader
	leases  *leases

	patience time.Duration // with a body: bodyTimeout, a test's is shorter

	ids  atomic.Int64 // of requests, given
	held atomic.Int64 // bytes of bodies

	hard     context.Context // ends what is open
	stop     context.CancelFunc
	mu       sync.Mutex // guards what follows
	open     int        // requests being carried
	draining bool
	idle     chan struct{} // closed when the last open one ends while draining
}

// New makes a gateway.
func New(o Options) (*Gateway, error) {
	if o.Router == nil || o.Engines == nil || o.Clock == nil {
		return nil, errors.New("gateway: Options needs a Router, Engines and a Clock")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{
		router: o.Router, engines: o.Engines, spec: o.Spec, clock: o.Clock, log: o.Log,
		view: &view{engines: o.Engines, clock: o.Clock}, leases: newLeases(leaseTime(o.Spec)), idle: make(chan struct{}),
		patience: bodyTimeout,
	}
	g.hard, g.stop = context.WithCancel(context.Background())
	g.prompts = prompt.New(prompt.Options{Mode: o.Spec.Tokenize, BlockTokens: o.Router.BlockTokens, Tokenize: g.view.tokenize, Clock: o.Clock})
	g.metrics = newMetrics(g)
	g.proxy = &httputil.ReverseProxy{
		Rewrite:       rewrite,
		Transport:     carrier{},
		FlushInterval: -1,
		BufferPool:    &buffers{},
		ErrorHandler:  g.failed,
		ErrorLog:      slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	g.mux = g.routes()
	return g, nil
}

func (g *Gateway) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for path, route := range map[string]model.Route{
		"/v1/chat/completions": model.RouteChat, "/v1/completions": model.RouteCompletions,
		"/v1/responses": model.RouteResponses, "/v1/embeddings": model.RouteEmbeddings,
	} {
		mux.Handle(path, only(http.MethodPost, g.carry(route)))
	}
	mux.Handle("/v1/models", only(http.MethodGet, http.HandlerFunc(g.models)))
	mux.Handle("/v1/route", only(http.MethodPost, http.HandlerFunc(g.routeOnly)))
	mux.Handle("/v1/route/{id}", only(http.MethodDelete, http.HandlerFunc(g.routeEnds)))
	mux.Handle("/v1/route/{id}/first_token", only(http.MethodPost, http.HandlerFunc(g.routeFirst)))
	mux.Handle("/query", only(http.MethodPost, http.HandlerFunc(g.query)))
	mux.Handle("/query_by_hash", only(http.MethodPost, http.HandlerFunc(g.query)))
	mux.Handle("/live", only(http.MethodGet, http.HandlerFunc(g.live)))
	mux.Handle("/health", only(http.MethodGet, http.HandlerFunc(g.health)))
	mux.Handle("/ready", only(http.MethodGet, http.HandlerFunc(g.ready)))
	mux.Handle("/metrics", only(http.MethodGet, g.metrics.handler()))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, refusal(http.StatusNotFound, "not_found", "adpdeck serves no %.80q: use /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings or /v1/models", r.URL.Path))
	})
	return mux
}

// only lets one method through; HEAD goes where GET does.
func only(method string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method || method == http.MethodGet && r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", method)
		refuse(w, refusal(http.StatusMethodNotAllowed, "method_not_allowed", "%s takes %s, not %.20q", r.URL.Path, method, r.Method))
	})
}

// ServeHTTP answers a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.Tick()
	g.bound(w, r)
	g.mux.ServeHTTP(w, r)
}

// Tick frees what /v1/route handed out and nobody ended in time. It is cheap, and
// done by every request; a caller with a ticker does it when there are none.
func (g *Gateway) Tick() {
	for _, id := range g.leases.expire(g.clock.Now()) {
		g.router.Done(id, model.OutcomeError)
		g.metrics.abandoned.Inc()
	}
}

// Server returns a server of the gateway with every time-out and limit set. Times
// of a body's arrival and of each write are set by the handler, since streams have
// no bound of their own.
func (g *Gateway) Server(addr string) *http.Server {
	return &http.Server{
		Addr: addr, Handler: g,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
	}
}

// buffers are the proxy's.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
