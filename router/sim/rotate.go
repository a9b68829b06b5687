package sim

import "adpdeck/router/model"

// Rotate is plain rotation over all ranks of the cluster, whatever they hold:
// what a router must beat. A request whose rank is at the hard cap waits.
type Rotate struct {
	targets []model.Target
	next    int
	open    map[int64]int // rank of the requests in flight
}

// NewRotate returns a rotation over all ranks, which takes rank 0 of each
// worker, then rank 1 of each, and so on.
func NewRotate(workers []model.WorkerSpec) *Rotate {
	r := &Rotate{open: map[int64]int{}}
	most := 0
	for _, w := range workers {
		most = max(most, w.Ranks)
	}
	for k := range most {
		for _, w := range workers {
			if k < w.Ranks {
				r.targets = append(r.targets, model.Target{Worker: w.ID, Rank: k})
			}
		}
	}
	return r
}

// Submit takes the next rank.
func (r *Rotate) Submit(req *model.Request) (model.Target, error) {
	t := r.targets[r.next]
	r.next = (r.next + 1) % len(r.targets)
	r.open[req.ID] = t.Rank
	return t, nil
}

// Step places each request on the rank that Submit took.
func (r *Rotate) Step(_ string, in *model.StepInput, out *model.StepOutput) error {
	resetOutput(out, len(in.States))
	out.Expected = in.HardCap
	for i, q := range in.Requests {
		k := r.open[q.ID]
		if in.States[k].NumActiveRequests+len(out.Order[k]) >= in.HardCap {
			out.Ranks = append(out.Ranks, model.NoRank)
			continue
		}
		out.Ranks = append(out.Ranks, int32(k))
		out.Order[k] = append(out.Order[k], int32(i))
	}
	return nil
}

// FirstToken does nothing.
func (r *Rotate) FirstToken(int64, model.Usage) {}

// Done forgets the request.
func (r *Rotate) Done(id int64, _ model.Outcome) { delete(r.open, id) }

// Output does nothing.
func (r *Rotate) Output(int64, int) {}

// TracksOutput is false: nothing looks at it.
func (r *Rotate) TracksOutput() bool { return false }

// Report does nothing.
func (r *Rotate) Report(string, int, int, []model.RankState, []model.RankLoad) {}

// SetSource does nothing.
func (r *Rotate) SetSource(model.Source) {}

// Events does nothing.
func (r *Rotate) Events(string, int, uint64, []byte) {}

// Mode is a rotation.
func (r *Rotate) Mode() model.RouterMode { return model.ModeRoundRobin }

// Gate returns upstream's defaults: no balance gate, no probes.
func (r *Rotate) Gate(string) (cfg model.AttentionDpConfig, minGenerationRequests, lowOccupancyTimeoutIters int) {
	return model.DefaultAttentionDpConfig(), 0, 0
}

// resetOutput empties out for a worker of n ranks and keeps its memory.
func resetOutput(out *model.StepOutput, n int) {
	out.Ranks, out.PinWaits = out.Ranks[:0], 0
	if cap(out.Order) < n {
		out.Order = make([][]int32, n)
	}
	out.Order = out.Order[:n]
	for k := range out.Order {
		out.Order[k] = out.Order[k][:0]
	}
}
