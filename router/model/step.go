package model

// StepInput is what an engine that routes inside hands the live router once
// per step: its rank states, ordered by rank, and the requests it admitted.
type StepInput struct {
	States []RankState
	// HardCap is max_num_active_requests of one rank.
	HardCap  int
	Requests []StepRequest
}

// StepRequest is one admitted request of a step.
type StepRequest struct {
	ID int64
	// Matches is the prefix found on each rank, in tokens, by rank; shorter
	// means 0 for the rest.
	Matches []int32
}

// StepOutput is where the requests of a step go. The caller keeps and reuses
// it; it is valid until the next step.
type StepOutput struct {
	// Ranks holds the rank of each request, NoRank for one that found no room
	// and stays at the head of the engine's queue.
	Ranks []int32
	// Order lists by rank the indexes of its requests, in the router's order.
	Order [][]int32
	// Expected is the soft cap that the call worked with.
	Expected int
	// PinWaits counts the requests that found no room because an operator's pin,
	// or the cluster tier's choice, holds them to a rank that is full. Like upstream's strict ones they are
	// held back and take nobody's place: the engine may admit as many others.
	PinWaits int
}
