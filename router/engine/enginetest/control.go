package enginetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"adpdeck/router/model"
)

// order is the body of POST /__fake: habits to change, those that are not named
// stay, and an act.
type order struct {
	Habits json.RawMessage `json:"habits"`
	// Do is restart (a rank, or all without one), drop (the next Count batches of a
	// rank), or reset: no bad habits but those of this order.
	Do    string `json:"do"`
	Rank  *int   `json:"rank"`
	Count int    `json:"count"`
}

// control serves /__fake.
func (e *Engine) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			err = e.obey(raw)
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, object{"error": err.Error()})
			return
		}
	default:
		writeJSON(w, http.StatusMethodNotAllowed, object{"error": "want GET or POST"})
		return
	}
	writeJSON(w, http.StatusOK, e.status())
}

func (e *Engine) obey(raw []byte) error {
	var o order
	if err := decodeStrict(raw, &o); err != nil {
		return fmt.Errorf("an order is {\"habits\": {…}, \"do\": …, \"rank\": …, \"count\": …}: %w", err)
	}
	rank := model.NoRank
	if o.Rank != nil {
		rank = *o.Rank
	}
	switch o.Do {
	case "", "restart", "drop":
	case "reset":
		if err := e.Set(func(h *Habits) { *h = Habits{} }); err != nil {
			return err
		}
	default:
		return fmt.Errorf("do is %q: want restart, drop or reset", o.Do)
	}
	if len(o.Habits) > 0 {
		if err := e.SetJSON(o.Habits); err != nil {
			return err
		}
	}
	switch o.Do {
	case "restart":
		return e.Restart(rank)
	case "drop":
		return e.DropBatches(rank, o.Count)
	}
	return nil
}

// rankStatus is one rank as GET /__fake shows it.
type rankStatus struct {
	Rank         int    `json:"rank"`
	Worker       int    `json:"worker"`
	InstanceID   uint64 `json:"instance_id,omitempty"`
	Running      int    `json:"running"`
	Waiting      int    `json:"waiting"`
	UsedBlocks   int    `json:"used_blocks"`
	CachedBlocks int    `json:"cached_blocks"`
	NextBatch    uint64 `json:"next_batch"`
	Events       string `json:"events,omitempty"`
	Replay       string `json:"replay,omitempty"`
}

func (e *Engine) status() any {
	var ranks []rankStatus
	e.mu.Lock()
	for _, k := range e.ranks {
		s := rankStatus{
			Rank: k.number(), Worker: k.worker, Running: len(k.running), Waiting: len(k.waiting),
			UsedBlocks: k.cache.used(), CachedBlocks: k.cache.named, NextBatch: k.pub.seq,
		}
		if e.dyn != nil {
			s.InstanceID = e.instance(k.worker)
		}
		ranks = append(ranks, s)
	}
	e.mu.Unlock()
	for i := range ranks {
		at := i
		if e.dyn != nil {
			at = ranks[i].Worker
		}
		ranks[i].Events, ranks[i].Replay = e.EventEndpoint(at), e.ReplayEndpoint(at)
	}
	return object{"kind": e.cfg.Kind, "models": e.cfg.Models, "ranks": ranks, "habits": e.habits.Load()}
}
