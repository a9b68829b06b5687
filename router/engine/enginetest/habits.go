package enginetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"adpdeck/router/model"
)

// Habits are what real engines get wrong, each to be switched on by itself while
// the engine runs (Engine.Set, or POST /__fake). The zero Habits are none.
type Habits struct {
	// IgnoreRank lists routes (chat, completions, responses, embeddings,
	// generate, messages, or *) on which a rank that was asked for is silently
	// ignored, with a 200 all the same.
	IgnoreRank []model.Route `json:"ignore_rank"`
	// Honours replaces, for the routes that it names, the channels (header, body)
	// over which a rank is taken; an empty list: none.
	Honours map[model.Route][]string `json:"honours"`
	// OutOfRange says what becomes of a rank that does not exist: error (400),
	// fail (500, as vLLM's hybrid mode once did) or balance (as if none had been
	// asked for). Empty: as the kind does.
	OutOfRange string `json:"out_of_range"`
	// RankHeader adds X-Fake-Rank, the rank that ran the request counted from 0,
	// to answers. No engine sends it; it is for watching.
	RankHeader bool `json:"rank_header"`
	// NoCachedTokens leaves prompt_tokens_details out of the usage, as engines do
	// unless told otherwise by a flag.
	NoCachedTokens bool `json:"no_cached_tokens"`
	// OmitZeroCached leaves them out only when nothing was cached, as vLLM does.
	OmitZeroCached bool `json:"omit_zero_cached"`
	// OldSchema makes trtllm-serve one from before conversation_params
	// (TensorRT-LLM#15452): it refuses the field and reads no conversation header.
	OldSchema bool `json:"old_schema"`

	EventHabits
	LoadHabits
	MetricHabits
	HTTPHabits
}

// EventHabits spoil the KV events. N-th means: every n-th batch of a rank, 0
// none.
type EventHabits struct {
	// DropEvery loses batches on the way (a replay still has them),
	// DuplicateEvery sends them twice, ReorderEvery lets them change places with
	// the batch after.
	DropEvery      int `json:"drop_every"`
	DuplicateEvery int `json:"duplicate_every"`
	ReorderEvery   int `json:"reorder_every"`
	// Form is array or map, Hash unsigned, signed or bytes, Framing of replays
	// old (without the topic) or new. Empty: as the kind does. A new framing is
	// in force from the next restart on.
	Form    string `json:"form"`
	Hash    string `json:"hash"`
	Framing string `json:"framing"`
	// Fields cuts positional events after so many fields, 0 writes them all.
	Fields int `json:"fields"`
	// NoBatchRank leaves the rank out of batches.
	NoBatchRank bool `json:"no_batch_rank"`
	// EventsRank0Only lets only rank 0 publish, EventsSilent none.
	EventsRank0Only bool `json:"events_rank0_only"`
	EventsSilent    bool `json:"events_silent"`
	// EventsHang makes the ZMQ sockets accept connections and do nothing more.
	EventsHang bool `json:"events_hang"`
}

// MetricHabits spoil what the engine says of its load.
type MetricHabits struct {
	// DuplicateSeries shows the same figure more than once: by tp_rank, by
	// priority, under an old name, or as a total beside the ranks' rows.
	DuplicateSeries bool `json:"duplicate_series"`
	// MetricsRank0Only shows rank 0 alone; MissingRanks leaves ranks out.
	MetricsRank0Only bool  `json:"metrics_rank0_only"`
	MissingRanks     []int `json:"missing_ranks"`
	// MetricValue takes the place of every gauge: NaN, +Inf, -Inf or -1.
	MetricValue string `json:"metric_value"`
	// MetricBytes pads the page to this size, at most 64 MiB.
	MetricBytes int `json:"metric_bytes"`
	// MetricsFrozen goes on showing the page as it was when first asked for
	// after this was switched on.
	MetricsFrozen bool `json:"metrics_frozen"`
}

// HTTPHabits spoil answers. All but the last three hold for the classes in On:
// openai, health, metrics, events, info; empty: all.
type HTTPHabits struct {
	On []string `json:"on"`
	// Unhealthy answers health checks with 200 and a body that says unhealthy.
	// It needs no On.
	Unhealthy bool `json:"unhealthy"`
	// NotReady behaves as an engine whose model is still being loaded, or a
	// Dynamo frontend before any worker registered.
	NotReady bool `json:"not_ready"`
	// Status answers everything with this status, for example 503, and an error
	// body of ErrorBytes (at most 64 MiB).
	Status     int `json:"status"`
	ErrorBytes int `json:"error_bytes"`
	// Latency comes before the work begins, SlowHeaders after it, before the
	// first byte.
	Latency     Duration `json:"latency"`
	SlowHeaders Duration `json:"slow_headers"`
	// EndlessHeader begins a header and never ends it.
	EndlessHeader bool `json:"endless_header"`
	// HalfOpen accepts requests and never answers.
	HalfOpen bool `json:"half_open"`
	// ContentType takes the place of the right one.
	ContentType string `json:"content_type"`
	// CrashAfterTokens cuts the connection when an answer has so many tokens.
	CrashAfterTokens int `json:"crash_after_tokens"`
	// NoFirstToken takes requests and never runs their prefill.
	NoFirstToken bool `json:"no_first_token"`
}

// Duration is a time.Duration that JSON writes as text: "500ms".
type Duration time.Duration

// MarshalJSON writes the duration as Go does: "1.5s".
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads "1.5s", or a number of seconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds < 1e6 {
		*d = Duration(seconds * float64(time.Second))
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return fmt.Errorf("%s is no duration: want \"500ms\" or seconds", b)
	}
	*d = Duration(v)
	return nil
}

// maxPadding bounds MetricBytes and ErrorBytes.
const maxPadding = 64 << 20

// classes are the groups of addresses that On names.
func classes() []string { return []string{"openai", "health", "metrics", "events", "info"} }

// check refuses habits that cannot be.
func (h *Habits) check() error {
	oneOf := func(field, v string, allowed ...string) error {
		if v != "" && !slices.Contains(allowed, v) {
			return fmt.Errorf("habits: %s is %q: want %s", field, v, strings.Join(allowed, ", "))
		}
		return nil
	}
	for _, err := range []error{
		oneOf("out_of_range", h.OutOfRange, "error", "fail", "balance"),
		oneOf("form", h.Form, "array", "map"),
		oneOf("hash", h.Hash, "unsigned", "signed", "bytes"),
		oneOf("framing", h.Framing, "old", "new"),
		oneOf("loads_bad", h.LoadsBad, "version", "text", "cut", "named", "negative"),
		oneOf("metric_value", h.MetricValue, "NaN", "+Inf", "-Inf", "-1"),
	} {
		if err != nil {
			return err
		}
	}
	for _, c := range h.On {
		if err := oneOf("on", c, classes()...); err != nil {
			return err
		}
	}
	for _, r := range h.IgnoreRank {
		if r != "*" && !slices.Contains(routes(), r) {
			return fmt.Errorf("habits: ignore_rank names %q: want * or one of %v", r, routes())
		}
	}
	for r, channels := range h.Honours {
		if !slices.Contains(routes(), r) {
			return fmt.Errorf("habits: honours names %q: want one of %v", r, routes())
		}
		for _, c := range channels {
			if c != "header" && c != "body" {
				return fmt.Errorf("habits: honours.%s is %q: want header or body", r, c)
			}
		}
	}
	if h.MetricBytes < 0 || h.MetricBytes > maxPadding || h.ErrorBytes < 0 || h.ErrorBytes > maxPadding {
		return fmt.Errorf("habits: metric_bytes and error_bytes must be 0 to %d", maxPadding)
	}
	if h.Status != 0 && (h.Status < 200 || h.Status > 599) {
		return fmt.Errorf("habits: status is %d: want 200 to 599, or 0 for none", h.Status)
	}
	if min(h.DropEvery, h.DuplicateEvery, h.ReorderEvery, h.Fields, h.CrashAfterTokens) < 0 {
		return fmt.Errorf("habits: counts must not be below 0")
	}
	return nil
}

// on reports whether the habits of HTTPHabits hold for a class of addresses.
func (h *HTTPHabits) on(class string) bool { return len(h.On) == 0 || slices.Contains(h.On, class) }

// clone copies h with all it refers to.
func (h *Habits) clone() Habits {
	c := *h
	c.IgnoreRank, c.On, c.MissingRanks = slices.Clone(h.IgnoreRank), slices.Clone(h.On), slices.Clone(h.MissingRanks)
	if h.Honours != nil {
		c.Honours = make(map[model.Route][]string, len(h.Honours))
		for r, l := range h.Honours {
			c.Honours[r] = slices.Clone(l)
		}
	}
	return c
}
