package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"adpdeck/router/adp"
	"adpdeck/router/model"
)

type wireRequest struct {
	ID      *int64      `json:"id"`
	Tokens  [][]int64   `json:"tokens"`
	Null    bool        `json:"null_request"`
	Params  *wireParams `json:"scheduling_params"`
	Conv    string      `json:"conversation_id"`
	Matches [][]int64   `json:"match_lens"`
}

type wireBatch struct {
	States   [][]int       `json:"rank_states"`
	HardCap  *int          `json:"max_num_active_requests"`
	Requests []wireRequest `json:"requests"`
}

// The wire form of a rank state is a list of at most this many numbers, of
// which the first three are read.
const maxStateInts = 14

// routerSteps makes the router of a line and returns what answers its steps.
func routerSteps(e *envelope, opt Options) (func([]byte, json.RawMessage) ([]byte, error), error) {
	tp, err := ranksOf(e)
	if err != nil {
		return nil, err
	}
	cfg, err := e.routerConfig()
	if err != nil {
		return nil, err
	}
	r := adp.New(tp, cfg, nil, adp.Options{Parity: opt.Parity, Record: opt.Explain, MaxCandidates: opt.MaxCandidates})
	var res adp.Result
	return func(out []byte, raw json.RawMessage) ([]byte, error) {
		var w wireBatch
		if err := decode(raw, &w); err != nil {
			return nil, err
		}
		b, err := w.batch(tp)
		if err != nil {
			return nil, err
		}
		err = r.Route(b, &res)
		out = appendResult(append(out, '{'), b, &res, err)
		out = appendRouterState(out, r, cfg.Policy())
		if opt.Explain && err == nil {
			records, err := json.Marshal(res.Placements)
			if err != nil {
				return nil, fmt.Errorf("decision records: %w", err)
			}
			out = append(append(out, `,"decisions":`...), records...)
		}
		return append(out, '}'), nil
	}, nil
}

// batch checks a step and turns it into a routing call.
func (w *wireBatch) batch(tp int) (*adp.Batch, error) {
	if w.HardCap == nil {
		return nil, errors.New(`"max_num_active_requests" is missing`)
	}
	if len(w.States) != tp {
		return nil, fmt.Errorf(`"rank_states" has %d entries; want one for each of %d ranks`, len(w.States), tp)
	}
	b := &adp.Batch{HardCap: *w.HardCap}
	b.States = make([]model.RankState, tp)
	for k, s := range w.States {
		if len(s) < 1 || len(s) > maxStateInts {
			return nil, fmt.Errorf("rank state %d has %d numbers; want 1 to %d", k, len(s), maxStateInts)
		}
		var three [3]int
		copy(three[:], s)
		b.States[k] = model.RankState{Rank: three[0], NumActiveRequests: three[1], NumActiveTokens: three[2]}
	}
	b.Requests = make([]adp.Request, len(w.Requests))
	matched := 0
	for i := range w.Requests {
		if len(w.Requests[i].Matches) > 0 {
			matched++
		}
		if matched*tp > MaxMatches {
			return nil, fmt.Errorf("%d ranks times %d requests with \"match_lens\"; want at most %d", tp, matched, MaxMatches)
		}
		if err := w.Requests[i].request(&b.Requests[i], tp); err != nil {
			return nil, fmt.Errorf("request %d: %w", i, err)
		}
	}
	return b, nil
}

func (w *wireRequest) request(q *adp.Request, tp int) error {
	if w.ID == nil {
		return errors.New(`"id" is missing`)
	}
	*q = adp.Request{ID: *w.ID, Null: w.Null, Params: w.Params.params(), Conv: w.Conv}
	for _, seg := range w.Tokens {
		if len(seg) != 2 || seg[1] < 0 || seg[1] > MaxPromptToken {
			return fmt.Errorf(`"tokens" has a segment %v; want [seed, length]`, seg)
		}
		q.Lead = appendLead(q.Lead, seg[0], seg[1])
		if q.Tokens += int(seg[1]); q.Tokens > MaxPromptToken {
			return fmt.Errorf(`"tokens" are more than %d`, MaxPromptToken)
		}
	}
	if len(w.Matches) == 0 {
		return nil
	}
	q.Matches = make([]int32, tp)
	for _, m := range w.Matches {
		if len(m) != 2 || m[0] < 0 || m[0] >= int64(tp) || m[1] < 0 || m[1] > math.MaxInt32 {
			return fmt.Errorf(`"match_lens" has an entry %v; want [rank under %d, length]`, m, tp)
		}
		q.Matches[m[0]] = int32(m[1])
	}
	return nil
}

// leadTokens is how much of a prompt the routers look at.
const leadTokens = 64

// appendLead appends the token ids of a segment, as far as they are looked at:
// token i is (seed·1000003 + i·7919) mod 50000.
func appendLead(lead []int32, seed, length int64) []int32 {
	const vocabulary = 50000
	t := (seed%vocabulary + vocabulary) % vocabulary * (1000003 % vocabulary) % vocabulary
	for range min(length, int64(leadTokens-len(lead))) {
		lead = append(lead, int32(t))
		t = (t + 7919) % vocabulary
	}
	return lead
}

// appendResult writes what the call returned, or upstream's exception.
func appendResult(out []byte, b *adp.Batch, res *adp.Result, err error) []byte {
	var pe *adp.ParityError
	if errors.As(err, &pe) {
		out = appendString(append(out, `"error":`...), pe.Name)
		return appendString(append(out, `,"error_message":`...), pe.Message)
	}
	out = append(out, `"assignments":[`...)
	for k, list := range res.Assignments {
		if k > 0 {
			out = append(out, ',')
		}
		out = appendIDs(out, b, list)
	}
	out = append(out, `],"expected_num_active_requests":`...)
	out = strconv.AppendInt(out, int64(res.Expected), 10)
	if len(res.Unassigned) > 0 {
		out = appendIDs(append(out, `,"unassigned":`...), b, res.Unassigned)
	}
	return out
}

func appendIDs(out []byte, b *adp.Batch, list []int32) []byte {
	out = append(out, '[')
	for at, i := range list {
		if at > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, b.Requests[i].ID, 10)
	}
	return append(out, ']')
}

// appendRouterState writes what the router keeps between calls.
func appendRouterState(out []byte, r *adp.Router, policy model.Policy) []byte {
	switch policy {
	case model.PolicyKVAware:
		out = append(out, `,"pending_warmup":[`...)
		for at, k := range r.PendingWarmup() {
			if at > 0 {
				out = append(out, ',')
			}
			out = strconv.AppendInt(out, int64(k), 10)
		}
		out = append(out, ']')
	case model.PolicyConversation:
		out = append(out, `,"pins":[`...)
		first := true
		for key, rank := range r.Pins().All() {
			if !first {
				out = append(out, ',')
			}
			first = false
			out = append(appendString(append(out, '['), key), ',')
			out = append(strconv.AppendInt(out, int64(rank), 10), ']')
		}
		out = append(out, `],"cursor":`...)
		out = strconv.AppendInt(out, int64(r.Cursor()), 10)
	}
	return out
}
