package engine

import (
	"time"

	"adpdeck/router/model"
)

// Sink is told what the engines are and say; *router.Router is one. No call may
// wait for an engine.
type Sink interface {
	// Join adds a worker or changes it, Leave takes it away.
	Join(spec model.WorkerSpec) error
	Leave(worker string) error
	// Live says whether a rank, or with NoRank all of a worker, answers.
	Live(worker string, rank int, live bool, why string) error
	// Restarted says that the process behind a rank (NoRank: all) began anew.
	Restarted(worker string, rank int, why string)
	// Observe brings loads as they were at a moment not before at; Unobserved
	// says why there are none.
	Observe(worker string, at time.Time, loads []model.RankReport)
	// LoadsFrom says where the loads of the next Observe are from: empty for the
	// engine's pages.
	LoadsFrom(worker, source string)
	Unobserved(worker string, why string)
	// EventsOn takes one batch of KV events from a rank's publisher, EventsJSON
	// one draining read of TensorRT-LLM's, RouterEvents one list of Dynamo's.
	EventsOn(worker string, rank int, conn, seq uint64, payload []byte)
	EventsJSON(worker string, payload []byte)
	RouterEvents(worker string, payload []byte, json bool)
	// Gaps is where ranks ask for batches that they have missed. Replayed takes
	// one batch of the answer, ReplayDone its end; an err of *zmtp.EvictedError
	// says that what came began too late.
	Gaps() <-chan model.Gap
	Replayed(worker string, rank int, seq uint64, payload []byte)
	ReplayDone(worker string, rank int, err error)
	// Found and Cleared keep the list of what is wrong.
	Found(f model.Finding)
	Cleared(code string, t model.Target)
}
