package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"adpdeck/router/adp"
)

type wireAdmission struct {
	Enqueue []struct {
		ID       *int64      `json:"id"`
		Children []int64     `json:"child_req_ids"`
		Params   *wireParams `json:"scheduling_params"`
	} `json:"enqueue"`
	Counts []int `json:"num_active_requests"`
	Limit  *int  `json:"max_req_count"`
}

// admissionSteps makes the waiting queue of a line.
func admissionSteps(e *envelope, opt Options) (func([]byte, json.RawMessage) ([]byte, error), error) {
	tp, err := ranksOf(e)
	if err != nil {
		return nil, err
	}
	var q adp.Queue[struct{}]
	return func(out []byte, raw json.RawMessage) ([]byte, error) {
		var w wireAdmission
		if err := decode(raw, &w); err != nil {
			return nil, err
		}
		if w.Limit == nil {
			return nil, errors.New(`"max_req_count" is missing`)
		}
		if len(w.Counts) != tp {
			return nil, fmt.Errorf(`"num_active_requests" has %d entries; want one for each of %d ranks`, len(w.Counts), tp)
		}
		for i, x := range w.Enqueue {
			if x.ID == nil {
				return nil, fmt.Errorf(`item %d of "enqueue": "id" is missing`, i)
			}
			q.Push(adp.Item[struct{}]{ID: *x.ID, Children: len(x.Children), Params: x.Params.params()})
		}
		var popped []adp.Item[struct{}]
		var err error
		if opt.Parity {
			popped, err = q.AdmitParity(*w.Limit, w.Counts, *e.HardCap)
		} else {
			popped = q.Admit(*w.Limit, w.Counts, *e.HardCap)
		}
		var pe *adp.ParityError
		if errors.As(err, &pe) {
			out = appendString(append(out, `{"error":`...), pe.Name)
			out = appendString(append(out, `,"error_message":`...), pe.Message)
		} else {
			out = appendItems(append(out, `{"popped":`...), popped)
		}
		out = appendItems(append(out, `,"queue":`...), q.Items())
		return append(out, '}'), nil
	}, nil
}

func appendItems(out []byte, items []adp.Item[struct{}]) []byte {
	out = append(out, '[')
	for at := range items {
		if at > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, items[at].ID, 10)
	}
	return append(out, ']')
}

// balanceSteps makes the gate of a line.
func balanceSteps(e *envelope) (func([]byte, json.RawMessage) ([]byte, error), error) {
	tp, err := ranksOf(e)
	if err != nil {
		return nil, err
	}
	var c struct {
		MaxBatch *int `json:"max_batch_size"`
		Timeout  *int `json:"timeout_iters"`
		Batching *int `json:"batching_wait_iters"`
		MinGen   int  `json:"min_generation_requests"`
		LowOcc   int  `json:"low_occupancy_timeout_iters"`
	}
	if err := decode(e.Config, &c); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if c.MaxBatch == nil || c.Timeout == nil || c.Batching == nil {
		return nil, errors.New(`config of a balance line needs "max_batch_size", "timeout_iters" and "batching_wait_iters"`)
	}
	var g adp.Gate
	g.Configure(adp.GateConfig{
		MaxBatchSize: *c.MaxBatch, TimeoutIters: *c.Timeout, BatchingWaitIters: *c.Batching,
		MinGenerationRequests: c.MinGen, LowOccupancyTimeoutIters: c.LowOcc,
	})
	return func(out []byte, raw json.RawMessage) ([]byte, error) {
		var w struct {
			Ranks [][]int `json:"ranks"`
		}
		if err := decode(raw, &w); err != nil {
			return nil, err
		}
		if len(w.Ranks) != tp {
			return nil, fmt.Errorf(`"ranks" has %d entries; want one for each of %d ranks`, len(w.Ranks), tp)
		}
		ranks := make([]adp.GateRank, tp)
		for k, n := range w.Ranks {
			if len(n) != 3 {
				return nil, fmt.Errorf(`"ranks" has an entry %v; want [context, generation, real generation]`, n)
			}
			ranks[k] = adp.GateRank{Ctx: n[0], Gen: n[1], RealGen: n[2]}
		}
		out = strconv.AppendBool(append(out, `{"release":`...), g.Step(ranks))
		out = strconv.AppendInt(append(out, `,"waiting":`...), int64(g.Waiting()), 10)
		out = strconv.AppendInt(append(out, `,"batching":`...), int64(g.Batching()), 10)
		return append(out, '}'), nil
	}, nil
}
