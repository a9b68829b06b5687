package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"adpdeck/router/gateway/convid"
	"adpdeck/router/gateway/prompt"
	"adpdeck/router/gateway/tap"
	"adpdeck/router/model"
)

// metrics are the front's own, in a registry of its own. Labels are routes,
// status codes, outcomes and live targets: nothing that a client makes up.
type metrics struct {
	registry *prometheus.Registry

	requests  *prometheus.CounterVec   // by route and code
	outcomes  *prometheus.CounterVec   // by outcome
	open      *prometheus.GaugeVec     // by route
	duration  *prometheus.HistogramVec // by route
	ttft      prometheus.Histogram
	before    prometheus.Histogram // until the request left for its engine
	retries   prometheus.Counter
	abandoned prometheus.Counter
	// unfinished are counted among the errors of outcomes too.
	unfinished prometheus.Counter
	sources    *prometheus.CounterVec // of conversation ids
	prompts    *prometheus.CounterVec // how blocks were known
	tokens     *prometheus.CounterVec // predicted, cached, prompt
	unknown    prometheus.Counter     // answers without cached tokens
}

func newMetrics(g *Gateway) *metrics {
	times := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	short := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30}
	m := &metrics{
		registry:   prometheus.NewRegistry(),
		requests:   counters("requests_total", "Requests that ended, by route and HTTP status; 499: the client went before an answer.", "route", "code"),
		outcomes:   counters("outcomes_total", "Requests that ended, by what became of them.", "outcome"),
		open:       prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "adpdeck", Subsystem: "gateway", Name: "open_requests", Help: "Requests being carried."}, []string{"route"}),
		duration:   prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "adpdeck", Subsystem: "gateway", Name: "request_seconds", Help: "From arrival to the end.", Buckets: times}, []string{"route"}),
		ttft:       histogram("first_token_seconds", "From arrival to the first event of a stream.", times),
		before:     histogram("before_engine_seconds", "From arrival to the request's leaving for its engine: reading, routing, waiting for room.", short),
		retries:    counter("retries_total", "Requests that were sent again to another target."),
		abandoned:  counter("abandoned_total", "Placements of /v1/route that nobody ended in time."),
		unfinished: counter("unfinished_streams_total", "Streams that their engine ended without the event that ends them, data: [DONE] or the response's last."),
		sources:    counters("conversations_total", "Requests by where their conversation id came from; none: keyless.", "source"),
		prompts:    counters("prompts_total", "Requests by how the blocks of their prompt were known.", "how"),
		tokens:     counters("prompt_tokens_total", "Prompt tokens of requests whose tokens were known and whose engine said how many it had cached: all, those cached, and those predicted to be.", "kind"),
		unknown:    counter("cached_unknown_total", "Answers whose engine did not say how many prompt tokens it had cached."),
	}
	m.registry.MustRegister(m.requests, m.outcomes, m.open, m.duration, m.ttft, m.before, m.retries, m.abandoned, m.unfinished,
		m.sources, m.prompts, m.tokens, m.unknown, &targets{g: g}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "adpdeck", Subsystem: "gateway", Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "adpdeck", Subsystem: "gateway", Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "adpdeck", Subsystem: "gateway", Name: name, Help: help, Buckets: buckets})
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) begin(r model.Route) { m.open.WithLabelValues(string(r)).Inc() }

func (m *metrics) end(t *trip) {
	route := string(t.route)
	m.open.WithLabelValues(route).Dec()
	m.duration.WithLabelValues(route).Observe(t.g.clock.Now().Sub(t.start).Seconds())
	m.requests.WithLabelValues(route, code(t.status)).Inc()
	m.outcomes.WithLabelValues(string(t.outcome)).Inc()
}

// code is a status as a label: engines may send any number.
func code(status int) string {
	if status < 100 || status > 599 {
		return "none"
	}
	return strconv.Itoa(status)
}

func (m *metrics) source(s convid.Source) { m.sources.WithLabelValues(string(s)).Inc() }
func (m *metrics) prompt(h prompt.How)    { m.prompts.WithLabelValues(string(h)).Inc() }

func (m *metrics) sent(t *trip) { m.before.Observe(t.g.clock.Now().Sub(t.start).Seconds()) }

// used counts predicted cached tokens against real ones, where both are known.
func (m *metrics) used(t *trip, u tap.Usage) {
	switch {
	case u.Cached < 0 || u.Prompt < 0:
		m.unknown.Inc()
	case t.predicted:
		m.tokens.WithLabelValues("prompt").Add(float64(u.Prompt))
		m.tokens.WithLabelValues("cached").Add(float64(u.Cached))
		m.tokens.WithLabelValues("predicted").Add(float64(max(t.decision.Placement.MatchTokens, 0)))
	}
}

// targets are the router's figures of the workers and ranks that there are now:
// one that left is gone from the next scrape.
type targets struct{ g *Gateway }

var (
	rankLabels   = []string{"worker", "rank"}
	descInFlight = prometheus.NewDesc("adpdeck_rank_in_flight", "Open requests booked on the rank.", rankLabels, nil)
	descRequests = prometheus.NewDesc("adpdeck_rank_requests_total", "Requests routed to the rank.", rankLabels, nil)
	descWeight   = prometheus.NewDesc("adpdeck_rank_weight", "The operator's weight of the rank.", rankLabels, nil)
	descReady    = prometheus.NewDesc("adpdeck_rank_ready", "1 where the rank takes new conversations.", rankLabels, nil)
	descPins     = prometheus.NewDesc("adpdeck_rank_pins", "Conversations bound to the rank.", rankLabels, nil)
	descHit      = prometheus.NewDesc("adpdeck_rank_hit_ratio", "Share of prompt tokens found in cache over the last minute; absent while unknown.", rankLabels, nil)
	descUp       = prometheus.NewDesc("adpdeck_worker_up", "1 where the engine answers, 0 where it does not or only parts of it do; absent while unknown.", []string{"worker"}, nil)
	descRestarts = prometheus.NewDesc("adpdeck_worker_restarts_total", "How often the worker's engine began anew.", []string{"worker"}, nil)
)

// Describe names nothing: the series are those of the moment.
func (c *targets) Describe(chan<- *prometheus.Desc) {}

// Collect tells the figures of the moment.
func (c *targets) Collect(out chan<- prometheus.Metric) {
	s := c.g.router.Snapshot()
	for i := range s.Ranks {
		r := &s.Ranks[i]
		labels := []string{label(r.Target.Worker), strconv.Itoa(r.Target.Rank)}
		gauge := func(d *prometheus.Desc, v float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
		}
		ready := 0.0
		if r.Availability == model.Ready && r.Weight > 0 {
			ready = 1
		}
		gauge(descInFlight, float64(r.InFlight))
		gauge(descWeight, r.Weight)
		gauge(descReady, ready)
		gauge(descPins, float64(r.Pins))
		if r.Hit.Known() {
			gauge(descHit, float64(r.Hit))
		}
		out <- prometheus.MustNewConstMetric(descRequests, prometheus.CounterValue, float64(r.Requests), labels...)
	}
	for i := range s.Workers {
		w := &s.Workers[i]
		if w.Liveness != model.LiveUnknown {
			up := 0.0
			if w.Liveness == model.LiveUp {
				up = 1
			}
			out <- prometheus.MustNewConstMetric(descUp, prometheus.GaugeValue, up, label(w.ID))
		}
		out <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, float64(w.Restarts), label(w.ID))
	}
}

// label is a name as a label's value.
func label(name string) string { return strings.ToValidUTF8(name, "\ufffd") }
