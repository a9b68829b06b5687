package sim

import (
	"adpdeck/router/model"
	"adpdeck/router/trace"
)

// Router is what a simulated cluster asks where requests go. The live router,
// Engine and Rotate satisfy it. All calls come from the goroutine that runs the
// Sim. Slices and pointers that are handed in are valid during the call only,
// req.Lead apart, which is never written again.
type Router interface {
	// Submit is the cluster tier: it picks the worker and opens the booking. The
	// rank of the answer may be NoRank.
	Submit(req *model.Request) (model.Target, error)
	// Step is the engine tier: it places the admitted requests of one step.
	Step(worker string, in *model.StepInput, out *model.StepOutput) error
	// FirstToken and Done tell how a request went on; Done frees its booking.
	FirstToken(id int64, u model.Usage)
	Done(id int64, o model.Outcome)
	// Output tells how many tokens a request has generated, each time its answer
	// fills one more block; only where TracksOutput asks for it.
	Output(id int64, generated int)
	TracksOutput() bool
	// Events is one batch of KV-cache events of a rank, msgpack as engines
	// publish it, numbered from 0 for each rank.
	Events(worker string, rank int, seq uint64, payload []byte)
	// Mode is the cluster tier's mode in force.
	Mode() model.RouterMode
	// Report tells how the ranks of a worker stand, now and then for a screen; in
	// mode lockstep, which looks at what is left to prefill, after every step.
	Report(worker string, waiting, held int, states []model.RankState, loads []model.RankLoad)
	// SetSource says where the traffic comes from, for a screen.
	SetSource(model.Source)
	// Gate returns the settings in force for a worker: the policy, and what the
	// balance gate needs.
	Gate(worker string) (cfg model.AttentionDpConfig, minGenerationRequests, lowOccupancyTimeoutIters int)
}

// Traffic is a stream of requests ordered by arrival.
type Traffic interface {
	// Next fills row and reports whether there was another one.
	Next(row *trace.Row) bool
	// Total is how many rows there are in all, 0 when the stream has no end.
	Total() int
}
