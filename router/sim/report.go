package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"adpdeck/router/model"
)

// Report is what a run came to.
type Report struct {
	// Requests arrived, with PromptTokens in all.
	Requests     int64 `json:"requests"`
	PromptTokens int64 `json:"prompt_tokens"`
	// PrefixHitRate is the share of prompt tokens that were found in the cache
	// of the rank that ran them, IdealHitRate what one endless cache would have
	// found over the same rows in the order of arrival.
	PrefixHitRate model.Maybe `json:"prefix_hit_rate"`
	IdealHitRate  model.Maybe `json:"ideal_hit_rate"`
	// The busiest rank of the cluster over the mean of all, by requests and by
	// prompt tokens placed.
	MaxOverMeanRequests model.Maybe `json:"max_over_mean_requests"`
	MaxOverMeanTokens   model.Maybe `json:"max_over_mean_tokens"`
	// TTFTMs is from arrival to the first token, E2EMs to the last, TPOTMs the
	// time per further token; milliseconds of virtual time.
	TTFTMs Quantiles `json:"ttft_ms"`
	E2EMs  Quantiles `json:"e2e_ms"`
	TPOTMs Quantiles `json:"tpot_ms"`
	// StepWaitShare is the share of the ranks' time in steps that they spent
	// waiting for the slowest of their worker, idle ranks included.
	StepWaitShare model.Maybe `json:"step_wait_share"`
	// MovesPerConversation is how often a turn ran on another rank than the
	// turn before it, over all conversations.
	MovesPerConversation model.Maybe `json:"moves_per_conversation"`
	// DecisionsPerSecond are placements per second of wall time.
	DecisionsPerSecond model.Maybe `json:"decisions_per_second"`
	BadRows            int         `json:"bad_rows"`

	// ShareOfIdeal is PrefixHitRate over IdealHitRate.
	ShareOfIdeal  model.Maybe `json:"share_of_ideal"`
	Conversations int64       `json:"conversations"`
	OutputTokens  int64       `json:"output_tokens"`
	Steps         int64       `json:"steps"`
	// Refused rows were not taken by the router, Failed requests fit into no
	// cache, Unserved ones were still open at the end.
	Refused  int64 `json:"refused"`
	Failed   int64 `json:"failed"`
	Unserved int   `json:"unserved"`

	// Index is what was published of the caches and what an index made of it,
	// nil where nothing was published.
	Index *IndexReport `json:"index,omitempty"`

	Traffic        string  `json:"traffic"`
	Policy         string  `json:"policy"`
	Mode           string  `json:"router_mode,omitempty"`
	Workers        int     `json:"workers"`
	Ranks          int     `json:"ranks"`
	Blocks         int     `json:"blocks"`
	BlockTokens    int     `json:"block_tokens"`
	Seed           uint64  `json:"seed"`
	Speed          float64 `json:"speed"`
	VirtualSeconds float64 `json:"virtual_seconds"`
	WallSeconds    float64 `json:"wall_seconds"`
}

// IndexReport is what the ranks published of their caches, and what a router
// that listened made of it.
type IndexReport struct {
	Batches int64 `json:"batches"`
	Events  int64 `json:"events"`
	Bytes   int64 `json:"bytes"`
	// Agreed is the share of requests whose match the router predicted to the
	// block, unknown where it predicts nothing.
	Agreed model.Maybe `json:"agreed"`
	// Blocks are the distinct blocks that the index holds at the end.
	Blocks int `json:"blocks"`
}

// Indexer is a Router that keeps an index of the caches.
type Indexer interface {
	// IndexFigures returns the share of requests whose match was as predicted,
	// since the start, and the distinct blocks that the index holds.
	IndexFigures() (agreed model.Maybe, blocks int)
}

// Report sums the run up as it stands; wall is how long it took by the wall
// clock, 0 when that was not measured.
func (s *Sim) Report(wall time.Duration) Report {
	r := Report{
		Requests: s.sent, PromptTokens: s.asked, BadRows: s.cfg.BadRows,
		PrefixHitRate: ratio(float64(s.found), float64(s.prompts)), IdealHitRate: model.Unknown(),
		TTFTMs: s.ttft.quantiles(), E2EMs: s.e2e.quantiles(), TPOTMs: s.tpot.quantiles(),
		StepWaitShare:        ratio(float64(s.waitTime), float64(s.stepTime)),
		MovesPerConversation: ratio(float64(s.moves), float64(s.conversations)),
		DecisionsPerSecond:   ratio(float64(s.placed), wall.Seconds()),
		Conversations:        s.conversations, OutputTokens: s.outputs, Steps: s.steps,
		Refused: s.refused, Failed: s.failed, Unserved: s.open,
		Traffic: s.cfg.Name, Policy: s.policy(), Workers: s.cfg.Workers, Ranks: s.cfg.Ranks,
		Blocks: s.cfg.Blocks, BlockTokens: s.cfg.BlockTokens, Seed: s.cfg.Seed, Speed: s.cfg.Speed,
		VirtualSeconds: s.Elapsed().Seconds(), WallSeconds: wall.Seconds(),
	}
	if s.seen != nil {
		r.IdealHitRate = ratio(float64(s.ideal), float64(s.asked))
	}
	r.ShareOfIdeal = ratio(float64(r.PrefixHitRate), float64(r.IdealHitRate))
	if s.router != nil {
		r.Mode = string(s.router.Mode())
	}
	var most, sum, mostTokens, sumTokens int64
	for _, w := range s.workers {
		for _, k := range w.ranks {
			most, sum = max(most, k.requests), sum+k.requests
			mostTokens, sumTokens = max(mostTokens, k.prompts), sumTokens+k.prompts
		}
	}
	n := float64(s.cfg.Workers * s.cfg.Ranks)
	r.MaxOverMeanRequests = ratio(float64(most)*n, float64(sum))
	r.MaxOverMeanTokens = ratio(float64(mostTokens)*n, float64(sumTokens))
	if p := s.publisher; p != nil {
		r.Index = &IndexReport{Batches: p.batches, Events: p.events, Bytes: p.bytes, Agreed: model.Unknown()}
		if x, ok := s.router.(Indexer); ok {
			r.Index.Agreed, r.Index.Blocks = x.IndexFigures()
		}
	}
	return r
}

// Resident is how many blocks the caches of all ranks hold for reuse.
func (s *Sim) Resident() int {
	n := 0
	for _, w := range s.workers {
		for _, k := range w.ranks {
			n += k.cache.resident
		}
	}
	return n
}

// Refusal is the first reason for which the router took a row not, nil when it
// took all.
func (s *Sim) Refusal() error { return s.refusal }

// policy names the rank router in force.
func (s *Sim) policy() string {
	switch r := s.router.(type) {
	case nil:
		return ""
	case *Rotate:
		return "rotate"
	default:
		cfg, _, _ := r.Gate(s.workers[0].id)
		return string(cfg.Policy())
	}
}

// ratio is a ÷ b, unknown when b is 0 or either is unknown.
func ratio(a, b float64) model.Maybe {
	if b == 0 {
		return model.Unknown()
	}
	return model.Maybe(a / b)
}

// WriteJSON writes the report as one JSON object and a newline.
func (r *Report) WriteJSON(w io.Writer) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// WriteTable writes the report as lines for people: a name, a figure, a unit.
func (r *Report) WriteTable(w io.Writer) error {
	t := printer{w: w}
	t.line("traffic", "%s, %g× speed, %d workers × %d ranks × %d blocks of %d tokens, %s",
		r.Traffic, r.Speed, r.Workers, r.Ranks, r.Blocks, r.BlockTokens, r.Policy)
	t.line("requests", "%d in %d conversations, %d bad rows", r.Requests, r.Conversations, r.BadRows)
	t.line("prompt tokens", "%d", r.PromptTokens)
	t.line("prefix hit rate", "%s of ideal %s (%s)", percent(r.PrefixHitRate), percent(r.IdealHitRate), percent(r.ShareOfIdeal))
	t.line("max over mean", "requests %s, tokens %s", number(r.MaxOverMeanRequests, 3), number(r.MaxOverMeanTokens, 3))
	t.spread("ttft ms", r.TTFTMs)
	t.spread("e2e ms", r.E2EMs)
	t.spread("tpot ms", r.TPOTMs)
	t.line("step wait share", "%s", percent(r.StepWaitShare))
	t.line("moves per conv", "%s", number(r.MovesPerConversation, 3))
	if x := r.Index; x != nil {
		t.line("index", "mode %s, matches as predicted %s, %d events in %d batches, %d blocks", r.Mode, percent(x.Agreed), x.Events, x.Batches, x.Blocks)
	}
	t.line("decisions", "%s per second of wall time", number(r.DecisionsPerSecond, 0))
	t.line("time", "%.1f s virtual, %.2f s wall, %d steps", r.VirtualSeconds, r.WallSeconds, r.Steps)
	if r.Refused > 0 || r.Failed > 0 || r.Unserved > 0 {
		t.line("not served", "%d refused by the router, %d too long for a cache, %d still open", r.Refused, r.Failed, r.Unserved)
	}
	return t.err
}

// printer writes named lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (t *printer) line(name, format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, "%-16s %s\n", name, fmt.Sprintf(format, args...))
	}
}

func (t *printer) spread(name string, q Quantiles) {
	t.line(name, "mean %s  p50 %s  p90 %s  p99 %s", number(q.Mean, 1), number(q.P50, 1), number(q.P90, 1), number(q.P99, 1))
}

func number(m model.Maybe, decimals int) string {
	if !m.Known() {
		return "–"
	}
	return strconv.FormatFloat(float64(m), 'f', decimals, 64)
}

func percent(m model.Maybe) string {
	if !m.Known() {
		return "–"
	}
	return number(m*100, 1) + " %"
}
