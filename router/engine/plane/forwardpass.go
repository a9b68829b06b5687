package plane

import (
	"time"

	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/model"
)

// passVersion is the version of ForwardPassMetrics that is read.
const passVersion = 1

// Pass is one iteration of one rank (ForwardPassMetrics). Counts that the
// message does not have are 0, as its encoder's defaults are.
type Pass struct {
	Worker uint64
	// Named says that Worker holds: engines that Dynamo did not start have no id.
	Named bool
	Rank  int // the engine's own number
	// Counter numbers a rank's passes.
	Counter uint64
	// Wall is how long the iteration took; 0 is an idle rank's sign of life.
	Wall      time.Duration
	Scheduled Batch
	Queued    Batch
}

// Batch is a set of requests and what they weigh, in tokens. For queued
// requests, decode means preempted, and KV of those in prefill is 0.
type Batch struct {
	PrefillRequests, PrefillTokens, PrefillKVTokens float64
	DecodeRequests, DecodeKVTokens                  float64
}

// Idle reports whether the message is a sign of life without an iteration.
func (p *Pass) Idle() bool { return p.Wall == 0 }

// Report gives the rank's figures. queued says that Queued is the rank's own;
// TensorRT-LLM has one queue before all ranks and writes it into rank 0's, so
// that what waits is unknown of each there.
//
// Tokens are what scheduled requests hold and are about to, PendingTokens what
// of the prompts is still to be computed: this iteration's part and, where the
// queue is known, the whole of those that wait.
func (p *Pass) Report(queued bool) model.RankReport {
	r := unknown()
	s, q := &p.Scheduled, &p.Queued
	r.Rank = p.Rank
	r.Running = model.Maybe(s.PrefillRequests + s.DecodeRequests)
	tokens := s.PrefillTokens + s.PrefillKVTokens + s.DecodeKVTokens
	pending := s.PrefillTokens
	if queued {
		r.Waiting = model.Maybe(q.PrefillRequests + q.DecodeRequests)
		tokens += q.PrefillTokens + q.DecodeKVTokens
		pending += q.PrefillTokens
	}
	r.Tokens, r.PendingTokens = model.Maybe(tokens), model.Maybe(pending)
	return r
}

// ForwardPass reads the payload of TopicForwardPass, or of an engine's own hop
// (three frames: topic, sequence, payload).
func ForwardPass(payload []byte) (Pass, error) {
	var p Pass
	version, scheduled := uint64(passVersion), false
	rest, err := object(payload, func(key string, v []byte) (err error) {
		switch key {
		case "version":
			version, err = unsigned(key, v)
		case "worker_id":
			p.Worker, p.Named, err = workerID(key, v)
		case "dp_rank":
			p.Rank, err = rank(key, v)
		case "counter_id":
			p.Counter, err = unsigned(key, v)
		case "wall_time":
			p.Wall, err = seconds(key, v)
		case "scheduled_requests", "scheduled":
			scheduled = true
			p.Scheduled, err = batch(v)
		case "queued_requests", "queued":
			p.Queued, err = batch(v)
		}
		return err
	})
	switch {
	case version != passVersion:
		// Said first: under another version nothing else need make sense.
		return Pass{}, refuse(BadVersion, "forward pass metrics of version %d; %d is known", version, passVersion)
	case err != nil:
		return Pass{}, err
	case len(rest) > 0:
		return Pass{}, refuse(BadMsgpack, "%d bytes after the metrics", len(rest))
	case !scheduled:
		return Pass{}, refuse(BadField, "forward pass metrics without scheduled_requests")
	}
	return p, nil
}

func batch(v []byte) (b Batch, err error) {
	_, err = object(v, func(key string, v []byte) (err error) {
		switch key {
		case "num_prefill_requests":
			b.PrefillRequests, _, err = amount(key, v)
		case "sum_prefill_tokens":
			b.PrefillTokens, _, err = amount(key, v)
		case "sum_prefill_kv_tokens":
			b.PrefillKVTokens, _, err = amount(key, v)
		case "num_decode_requests":
			b.DecodeRequests, _, err = amount(key, v)
		case "sum_decode_kv_tokens":
			b.DecodeKVTokens, _, err = amount(key, v)
		}
		return err
	})
	return b, err
}

func seconds(key string, v []byte) (time.Duration, error) {
	f, _, err := amount(key, v)
	if err != nil {
		return 0, err
	}
	if f > 86_400 {
		return 0, refuse(BadField, "%s is %g seconds, over a day", key, f)
	}
	return time.Duration(f * float64(time.Second)), nil
}

// optional reads a text that may be nil.
func optional(key string, v []byte) (string, error) {
	if msgp.IsNil(v) {
		return "", nil
	}
	return str(key, v, MaxTopicBytes)
}
