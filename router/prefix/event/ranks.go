package event

import (
	"fmt"
	"time"
)

// Ranks feeds on TensorRT-LLM's drained lists, in which all ranks of a worker
// come together: one Feed for each rank, made when the rank first speaks.
type Ranks struct {
	cfg     Config
	sink    func(*Batch)
	feeds   []*Feed
	pieces  []Piece
	refused Tally
}

// maxRanks is how many ranks a worker may have when the configuration does not
// say.
const maxRanks = 1024

// NewRanks returns the feeds of one worker. cfg.Format must be TRTJSON, and
// cfg.Rank is not used; the rest is as for NewFeed.
func NewRanks(cfg Config, sink func(*Batch)) (*Ranks, error) {
	cfg.Rank = 0
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Format != TRTJSON {
		return nil, fmt.Errorf("kv events of all ranks in one list: format %d: only TensorRT-LLM's JSON comes so", cfg.Format)
	}
	return &Ranks{cfg: cfg, sink: sink}, nil
}

// Poll takes one answer of /kv_cache_events. conn changes when the worker is
// known to be another process; a restart is also seen from the events. The
// error, which wraps ErrMessage, says that the answer is no list of events, or
// ends early; what came before is used.
func (r *Ranks) Poll(now time.Time, conn uint64, answer []byte) error {
	var err error
	r.pieces, err = Drain(answer, r.pieces, &r.refused)
	for _, p := range r.pieces {
		f, ok := r.feed(p.Rank - r.cfg.StartRank)
		if !ok {
			r.refused.Add(Refusal{Reason: UnknownRank, Field: "attention_dp_rank", Value: int64(p.Rank)})
			continue
		}
		f.Live(now, conn, p.ID, p.Raw)
	}
	clear(r.pieces) // the answer is the caller's
	return err
}

func (r *Ranks) feed(rank int) (*Feed, bool) {
	limit := r.cfg.Ranks
	if limit == 0 {
		limit = maxRanks
	}
	if rank < 0 || rank >= limit {
		return nil, false
	}
	for len(r.feeds) <= rank {
		r.feeds = append(r.feeds, nil)
	}
	if r.feeds[rank] == nil {
		cfg := r.cfg
		cfg.Rank = rank
		f, err := NewFeed(cfg, r.sink)
		if err != nil {
			return nil, false
		}
		r.feeds[rank] = f
	}
	return r.feeds[rank], true
}

// Feed returns the feed of a rank, made if it never spoke, so that its silence
// can be told; nil for a rank that the worker cannot have.
func (r *Ranks) Feed(rank int) *Feed {
	f, _ := r.feed(rank)
	return f
}

// Refused counts what belongs to no rank: elements that are no events, lists
// cut short, ranks that the worker does not have.
func (r *Ranks) Refused() *Tally { return &r.refused }
