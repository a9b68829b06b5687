package enginetest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/adp"
	"adpdeck/router/model"
)

// frontend is what a Dynamo frontend has beside its workers. It belongs to the
// engine's lock.
type frontend struct {
	sessions *adp.LRU // session to rank over all workers
	busy     map[string]thresholds
}

// nvext is Dynamo's extension of requests. Ids are u64: never through a float.
type nvext struct {
	Backend     *uint64  `json:"backend_instance_id"`
	Decode      *uint64  `json:"decode_worker_id"`
	Prefill     *uint64  `json:"prefill_worker_id"`
	DPRank      *int     `json:"dp_rank"`
	PrefillRank *int     `json:"prefill_dp_rank"`
	TokenData   []uint32 `json:"token_data"`
	ExtraFields []string `json:"extra_fields"`
	CacheSalt   string   `json:"cache_salt"`
}

// wants reports whether the answer's nvext is to have a field.
func (n *nvext) wants(field string) bool { return n != nil && slices.Contains(n.ExtraFields, field) }

// firstHeader is the first of several names that a request has, its value
// trimmed.
func firstHeader(header http.Header, names ...string) (name, value string) {
	for _, n := range names {
		if v := strings.TrimSpace(header.Get(n)); v != "" {
			return n, v
		}
	}
	return "", ""
}

// chooseDynamo reads worker and rank from headers, which win, and nvext.
func (e *Engine) chooseDynamo(channels []string, header http.Header, b *body) (choice, *apiError) {
	c := choice{rank: model.NoRank, worker: model.NoRank}
	var id *uint64
	var number *int
	if n := b.NVExt; n != nil && slices.Contains(channels, "body") {
		id, number = n.Decode, n.DPRank
		if id == nil {
			id = n.Backend
		}
		if id != nil || number != nil {
			c.by = "body"
		}
	}
	if slices.Contains(channels, "header") {
		if name, v := firstHeader(header, "X-Dynamo-Worker-Instance-Id", "X-Worker-Instance-Id"); v != "" {
			u, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				return c, badRequest(name, "invalid header %s: %q is not an unsigned 64-bit integer", strings.ToLower(name), v)
			}
			id, c.by = &u, "header"
		}
		if name, v := firstHeader(header, "X-Dynamo-Dp-Rank", "X-Dp-Rank", "X-Data-Parallel-Rank"); v != "" {
			u, err := strconv.ParseUint(v, 10, 31)
			if err != nil {
				return c, badRequest(name, "invalid header %s: %q is not an unsigned 32-bit integer", strings.ToLower(name), v)
			}
			r := int(u)
			number, c.by = &r, "header"
		}
	}
	return e.resolve(c, id, number)
}

// resolve finds the worker and the rank. A rank alone names it on whichever
// worker is chosen; with one worker that is clear at once.
func (e *Engine) resolve(c choice, id *uint64, number *int) (choice, *apiError) {
	if id != nil {
		w := *id - e.cfg.InstanceBase
		if w >= uint64(e.cfg.Workers) {
			return c, &apiError{
				status: http.StatusInternalServerError, kind: "Internal Server Error",
				msg: fmt.Sprintf("instance_id=%d not found for endpoint dynamo/backend/generate", *id),
			}
		}
		c.worker = int(w)
	}
	if number == nil {
		return c, nil
	}
	first := 0
	if e.cfg.Numbers == model.NumbersGlobal {
		first = e.cfg.StartRank
	}
	if *number < first || *number >= first+e.cfg.Ranks {
		// vLLM's worker falls back to its own choice without a word.
		return c, e.outOfRange(*number, first, e.cfg.Ranks, e.cfg.Backend == model.EngineVLLM)
	}
	if c.worker == model.NoRank {
		e.mu.Lock()
		c.worker = e.turn % e.cfg.Workers
		e.turn++
		e.mu.Unlock()
	}
	c.rank = c.worker*e.cfg.Ranks + *number - first
	return c, nil
}

// session is a request's session id: Dynamo's own header, or one of the agents'
// that it knows.
func session(header http.Header) string {
	_, v := firstHeader(header, "X-Dynamo-Session-Id", "X-Claude-Code-Session-Id", "Thread-Id", "X-Session-Id")
	return v
}

// pickDynamo chooses a worker in turn, unless one was asked for or a session has
// its target, and leaves the rank to vLLM's balance. The engine's lock is held.
func (e *Engine) pickDynamo(j *job) *rank {
	if e.cfg.SessionAffinity && j.conv != "" && j.choice.worker == model.NoRank {
		if at, ok := e.dyn.sessions.Get(j.conv); ok {
			return e.ranks[at]
		}
	}
	w := j.choice.worker
	if w == model.NoRank {
		w = e.turn % e.cfg.Workers
		e.turn++
	}
	return leastLoaded(e.ranks[w*e.cfg.Ranks : (w+1)*e.cfg.Ranks])
}

// bind keeps a session on the rank that answered it, once it has.
func (e *Engine) bind(w *work) {
	if e.dyn == nil || !e.cfg.SessionAffinity || w.conv == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dyn.sessions.Record(w.conv, w.rank.at)
}

// conflict reports a session that is bound to another target than the request
// asks for, which Dynamo refuses.
func (e *Engine) conflict(j *job) *apiError {
	if e.dyn == nil || !e.cfg.SessionAffinity || j.conv == "" || j.choice.worker == model.NoRank {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.dyn.sessions.Get(j.conv)
	if !ok {
		return nil
	}
	k := e.ranks[at]
	if k.worker == j.choice.worker && (j.choice.rank == model.NoRank || j.choice.rank == at) {
		return nil
	}
	return badRequest("session", "session %.64q is bound to worker %d rank %d", j.conv, e.instance(k.worker), k.number())
}

// extension is the nvext of an answer, nil when none was asked for.
func (e *Engine) extension(n *nvext, w *work) any {
	if e.dyn == nil || n == nil || !n.wants("worker_id") && !n.wants("timing") {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	x := map[string]any{}
	if n.wants("worker_id") {
		id, rank := e.instance(w.rank.worker), w.rank.number()
		x["worker_id"] = map[string]any{"prefill_worker_id": id, "prefill_dp_rank": rank, "decode_worker_id": id, "decode_dp_rank": rank}
	}
	if n.wants("timing") && !w.first.IsZero() {
		ms := func(d float64) float64 { return d * 1000 }
		t := map[string]any{"ttft_ms": ms(w.first.Sub(w.arrived).Seconds()), "total_time_ms": ms(w.last.Sub(w.arrived).Seconds())}
		if n := w.answered(); n > 1 {
			t["itl_ms"] = ms(w.last.Sub(w.first).Seconds()) / float64(n-1)
		}
		x["timing"] = t
	}
	return x
}
