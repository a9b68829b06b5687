package plane

import (
	"errors"

	"adpdeck/router/model"
)

// Load is what a worker or a router says of one rank's load.
type Load struct {
	Worker uint64
	Rank   int // the engine's own number
	// Scope is scheduler_load_scope: local (what the publishing router itself
	// has booked), replica_synchronized (what all routers have), "" where not
	// said.
	Scope string
	// Measured says that a worker sent it, with the blocks in use as the engine
	// counts them; otherwise they are a router's books.
	Measured bool
	Report   model.RankReport
}

// ActiveLoad reads the payload of TopicActiveLoad. Blocks in use are
// kv_used_blocks, else active_decode_blocks; PendingTokens are
// active_prefill_tokens.
func ActiveLoad(payload []byte) (Load, error) {
	l := Load{Report: unknown()}
	named := false
	used, blocks := model.Unknown(), model.Unknown()
	rest, err := object(payload, func(key string, v []byte) (err error) {
		switch key {
		case "worker_id":
			l.Worker, named, err = workerID(key, v)
		case "dp_rank":
			l.Rank, err = rank(key, v)
		case "kv_used_blocks":
			used, err = maybe(key, v)
		case "active_decode_blocks":
			blocks, err = maybe(key, v)
		case "active_prefill_tokens":
			l.Report.PendingTokens, err = maybe(key, v)
		case "waiting_requests":
			l.Report.Waiting, err = maybe(key, v)
		case "scheduler_load_scope":
			l.Scope, err = optional(key, v)
		}
		return err
	})
	switch {
	case err != nil:
		return Load{}, err
	case len(rest) > 0:
		return Load{}, refuse(BadMsgpack, "%d bytes after the load", len(rest))
	case !named:
		return Load{}, refuse(BadField, "a load without a worker_id of 64 bits")
	}
	l.Report.Rank, l.Measured = l.Rank, used.Known()
	l.Report.KVUsedBlocks = blocks
	if l.Measured {
		l.Report.KVUsedBlocks = used
	}
	return l, nil
}

func unknown() model.RankReport {
	u := model.Unknown()
	return model.RankReport{Running: u, Waiting: u, Tokens: u, PendingTokens: u, KVUsedBlocks: u, KVTotalBlocks: u, CacheHit: u}
}

func maybe(key string, v []byte) (model.Maybe, error) {
	f, known, err := amount(key, v)
	if err != nil || !known {
		return model.Unknown(), err
	}
	return model.Maybe(f), nil
}

// asRefusal gives an error of this package as what it is.
func asRefusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return refuse(BadMsgpack, "%v", err)
}
