package plane

import (
	"strconv"

	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/model"
)

// Topics of loads. Workers publish how much KV cache they use on TopicActiveLoad
// when that changes, and frontends what they have booked; where it is switched on,
// engines publish each of their steps on TopicForwardPass, and while they have
// none a heartbeat a second.
const (
	TopicActiveLoad  = "kv_metrics"
	TopicForwardPass = "forward-pass-metrics"
)

const (
	forwardVersion = 1
	maxWorkerBytes = 256
)

// Load is what one message says of one rank. What it does not say is unknown.
type Load struct {
	// Worker is the id of the worker as text, empty where it is not said: engines
	// that publish their steps themselves may not know it.
	Worker string
	// RankReport has the figures; its Rank is the global one.
	model.RankReport
	// BookedBlocks is KV blocks as a router has booked them, or as older workers
	// say of themselves: less than KVUsedBlocks is worth.
	BookedBlocks model.Maybe
	// Idle says that the message is a heartbeat: no step has ended within the
	// last second.
	Idle bool
}

func noLoad() Load {
	u := model.Unknown()
	return Load{RankReport: model.RankReport{Running: u, Waiting: u, Tokens: u, PendingTokens: u, KVUsedBlocks: u, KVTotalBlocks: u, CacheHit: u}, BookedBlocks: u}
}

// ActiveLoad reads the payload of TopicActiveLoad. What a router says it has
// booked to prefill is not taken: it is another router's word, not the engine's.
func ActiveLoad(payload []byte) (Load, error) {
	l := noLoad()
	rest, err := object(payload, func(key string, v []byte) (err error) {
		switch key {
		case "worker_id":
			var id uint64
			id, err = unsigned(key, v)
			l.Worker = strconv.FormatUint(id, 10)
		case "dp_rank":
			l.Rank, err = rank(key, v)
		case "kv_used_blocks":
			l.KVUsedBlocks, err = figure(key, v)
		case "active_decode_blocks":
			l.BookedBlocks, err = figure(key, v)
		}
		return err
	})
	switch {
	case err != nil:
		return Load{}, err
	case len(rest) > 0:
		return Load{}, refuse(BadMsgpack, "%d bytes after the load", len(rest))
	case l.Worker == "":
		return Load{}, refuse(BadField, "a load without worker_id")
	}
	return l, nil
}

// ForwardPass reads one step of an engine, as TopicForwardPass carries it and as
// engines publish it themselves.
//
// Running are the requests in the step, Waiting those that were not in it. Tokens
// are those of both, with whole prompts for the waiting: what the cache has of
// them is not known there. PendingTokens is known only where it is 0, after a step
// without prefill and with nobody waiting: a prompt may be computed in several
// steps, and a step does not say what is left of it.
func ForwardPass(payload []byte) (Load, error) {
	l := noLoad()
	version, wall := uint64(forwardVersion), 0.0
	var step, queue batchFigures
	step.none()
	queue.none()
	rest, err := object(payload, func(key string, v []byte) (err error) {
		switch key {
		case "version":
			version, err = unsigned(key, v)
		case "worker_id":
			l.Worker, err = str(key, v, maxWorkerBytes)
		case "dp_rank":
			l.Rank, err = rank(key, v)
		case "wall_time":
			wall, err = number(key, v)
		case "scheduled_requests":
			err = step.read(v)
		case "queued_requests":
			err = queue.read(v)
		}
		return err
	})
	switch {
	case err != nil:
		return Load{}, err
	case len(rest) > 0:
		return Load{}, refuse(BadMsgpack, "%d bytes after the step", len(rest))
	case version != forwardVersion:
		return Load{}, refuse(BadVersion, "forward pass metrics of version %d; %d is known", version, forwardVersion)
	case !step.prefills.Known() && !step.decodes.Known():
		return Load{}, refuse(BadField, "a step without scheduled_requests")
	}
	l.Running = step.prefills + step.decodes
	l.Waiting = queue.prefills + queue.decodes
	l.Tokens = step.prefill + step.prefillKV + step.decodeKV + queue.prefill + queue.decodeKV
	l.Idle = wall == 0
	if !l.Idle && step.prefills == 0 && l.Waiting == 0 {
		l.PendingTokens = 0
	}
	return l, nil
}

// batchFigures are what a step says of the requests in it, or beside it.
type batchFigures struct{ prefills, prefill, prefillKV, decodes, decodeKV model.Maybe }

func (b *batchFigures) none() {
	u := model.Unknown()
	*b = batchFigures{u, u, u, u, u}
}

func (b *batchFigures) read(p []byte) error {
	_, err := object(p, func(key string, v []byte) (err error) {
		switch key {
		case "num_prefill_requests":
			b.prefills, err = figure(key, v)
		case "sum_prefill_tokens":
			b.prefill, err = figure(key, v)
		case "sum_prefill_kv_tokens":
			b.prefillKV, err = figure(key, v)
		case "num_decode_requests":
			b.decodes, err = figure(key, v)
		case "sum_decode_kv_tokens":
			b.decodeKV, err = figure(key, v)
		}
		return err
	})
	return err
}

// figure reads a count; nil is unknown.
func figure(key string, v []byte) (model.Maybe, error) {
	if msgp.IsNil(v) {
		return model.Unknown(), nil
	}
	n, err := unsigned(key, v)
	if err != nil {
		return 0, err
	}
	if n > 1<<53 {
		return 0, refuse(BadField, "%s %d is more than can be", key, n)
	}
	return model.Maybe(n), nil
}

// number reads a float, or a whole number in its place.
func number(key string, v []byte) (float64, error) {
	if f, _, err := msgp.ReadFloat64Bytes(v); err == nil {
		return f, nil
	}
	n, err := unsigned(key, v)
	return float64(n), err
}
