package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// Bounds of a configuration.
const (
	MaxWorkers   = 1024
	MaxRanks     = 1024 // of one worker
	MaxIDBytes   = 128
	maxCapacity  = 1 << 30
	maxModels    = 64
	maxStartRank = 1 << 16
)

// SpecError is one reason why a configuration of workers is refused.
type SpecError struct {
	// Index is the worker's place in the list, -1 for the list as a whole, and
	// Worker its id.
	Index  int
	Worker string
	// Field is the field of model.EngineSpec that is wrong.
	Field string
	// Cause and Next say what is wrong and what to do about it.
	Cause, Next string
}

func (e *SpecError) Error() string {
	who := "workers"
	switch {
	case e.Worker != "":
		who = fmt.Sprintf("worker %q", e.Worker)
	case e.Index >= 0:
		who = fmt.Sprintf("worker %d", e.Index+1)
	}
	return fmt.Sprintf("%s: %s; %s", who, e.Cause, e.Next)
}

// Check says whether the workers can be served together: addresses, steering,
// event endpoints, and ranges of ranks that leave neither holes nor overlaps in
// their group. The error joins one *SpecError for each thing wrong, at most one
// for each field of a worker.
func Check(workers []model.EngineSpec) error {
	c := &checker{}
	switch n := len(workers); {
	case n == 0:
		c.list("no workers are named", "name at least one engine")
	case n > MaxWorkers:
		c.list(fmt.Sprintf("%d are named", n), fmt.Sprintf("name at most %d", MaxWorkers))
		return errors.Join(c.errs...)
	}
	for i := range workers {
		c.at, c.w = i, &workers[i]
		c.identity()
		c.addresses()
		c.steering()
		c.events()
		c.rest()
	}
	c.together(workers)
	return errors.Join(c.errs...)
}

type checker struct {
	errs []error
	at   int
	w    *model.EngineSpec
}

func (c *checker) list(cause, next string) {
	c.errs = append(c.errs, &SpecError{Index: -1, Cause: cause, Next: next})
}

// say refuses the current worker's field.
func (c *checker) say(field, cause, next string) {
	c.errs = append(c.errs, &SpecError{Index: c.at, Worker: c.w.ID, Field: field, Cause: cause, Next: next})
}

func (c *checker) identity() {
	w := c.w
	switch {
	case strings.TrimSpace(w.ID) == "":
		c.say("ID", "it has no id", "give it a name: pins are kept under it")
	case len(w.ID) > MaxIDBytes || strings.ContainsRune(w.ID, '/') || strings.ContainsFunc(w.ID, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		c.say("ID", "its id cannot be typed as WORKER/RANK", fmt.Sprintf("use at most %d bytes without blanks, slashes and control characters", MaxIDBytes))
	}
	if !slices.Contains(steer.Kinds(), w.Kind) {
		c.say("Kind", fmt.Sprintf("kind %q is not known", w.Kind), "use vllm, sglang, trtllm or dynamo")
	}
	switch {
	case w.Ranks < 0 || w.Ranks > MaxRanks:
		c.say("Ranks", fmt.Sprintf("it cannot have %d ranks", w.Ranks), fmt.Sprintf("use 1 to %d, or leave them out to ask the engine", MaxRanks))
	case len(w.RankURLs) > 0 && w.Ranks != 0 && w.Ranks != len(w.RankURLs):
		c.say("Ranks", fmt.Sprintf("it has %d ranks and %d addresses of ranks", w.Ranks, len(w.RankURLs)), "name one address for each rank, or leave the number out")
	}
	if w.StartRank < 0 || w.StartRank > maxStartRank {
		c.say("StartRank", fmt.Sprintf("its first rank cannot be %d", w.StartRank), "use the engine's global number of its first rank, from 0")
	}
}

// ranksOf is the number of ranks that a spec itself says, 0 for none.
func ranksOf(w *model.EngineSpec) int {
	if w.Ranks == 0 {
		return len(w.RankURLs)
	}
	return w.Ranks
}

func (c *checker) addresses() {
	w := c.w
	switch {
	case w.URL == "" && len(w.RankURLs) == 0:
		c.say("URL", "it has no address", "set its url, or one address for each rank")
	case w.URL != "" && len(w.RankURLs) > 0:
		c.say("RankURLs", "it has one address for all ranks and one for each", "keep the one that the engine offers")
	case w.URL != "":
		if cause, next := badURL(w.URL); cause != "" {
			c.say("URL", cause, next)
		}
	case len(w.RankURLs) > MaxRanks:
		c.say("RankURLs", fmt.Sprintf("it has %d addresses of ranks", len(w.RankURLs)), fmt.Sprintf("name at most %d", MaxRanks))
	default:
		for r, u := range w.RankURLs {
			if cause, next := badURL(u); cause != "" {
				c.say("RankURLs", fmt.Sprintf("the address of rank %d is wrong: %s", r, cause), next)
				break
			}
			if first := slices.IndexFunc(w.RankURLs, func(v string) bool { return sameAddress(u, v) }); first < r {
				c.say("RankURLs", fmt.Sprintf("ranks %d and %d have the same address %s", first, r, u), "give each rank its own, or set url where one serves all")
				break
			}
		}
	}
	if w.MetricsURL != "" {
		if cause, next := badMetricsURL(w.MetricsURL); cause != "" {
			c.say("MetricsURL", "the address of its metrics is wrong: "+cause, next)
		}
	}
}

func (c *checker) steering() {
	w := c.w
	how, _ := steer.Resolve(w)
	perRank := len(w.RankURLs) > 0
	why := steer.Why(w.Kind, how)
	switch {
	case !slices.Contains(steer.Kinds(), w.Kind):
	case perRank && why != "" && how == model.SteerPort:
		c.say("RankURLs", fmt.Sprintf("%s %s", w.Kind, why), "set one url; separate servers are workers of their own")
	case why != "":
		c.say("Steering", fmt.Sprintf("it cannot be steered by %s: %s %s", how, w.Kind, why), "leave steer out to use what the engine offers")
	case perRank && how != model.SteerPort:
		c.say("Steering", fmt.Sprintf("it has an address for each rank and is to be steered by %s", how), "leave steer out, or set one url")
	case !perRank && how == model.SteerPort:
		c.say("Steering", "it is to be steered by port and has one address", "name the address of each rank")
	case w.RankNumbers != model.NumbersAuto && (how.EnginePicks() || how == model.SteerPort):
		c.say("RankNumbers", fmt.Sprintf("numbers of ranks mean nothing where a worker is steered by %s", how), "leave them out")
	}
	switch w.RankNumbers {
	case model.NumbersAuto, model.NumbersGlobal, model.NumbersLocal:
	default:
		c.say("RankNumbers", fmt.Sprintf("ranks cannot be numbered %q", w.RankNumbers), "use global or local")
	}
	if w.InstanceID != 0 && w.Kind != model.EngineDynamo {
		c.say("InstanceID", fmt.Sprintf("an instance id names a worker behind a Dynamo frontend, and this is %s", w.Kind), "leave it out")
	}
}

func (c *checker) rest() {
	w := c.w
	for _, f := range []struct {
		name string
		n    int
	}{
		{"MaxNumActiveRequests", w.MaxNumActiveRequests},
		{"MaxBatchedTokens", w.MaxBatchedTokens},
		{"KVBlocks", w.KVBlocks},
		{"BlockTokens", w.BlockTokens},
	} {
		if f.n < 0 || f.n > maxCapacity {
			c.say(f.name, fmt.Sprintf("its capacity cannot be %d", f.n), "use a number from 1, or leave it out to ask the engine")
		}
	}
	if len(w.Models) > maxModels {
		c.say("Models", fmt.Sprintf("it serves %d models", len(w.Models)), fmt.Sprintf("name at most %d", maxModels))
	}
	for i, m := range w.Models {
		if strings.TrimSpace(m) == "" || slices.Index(w.Models, m) < i {
			c.say("Models", fmt.Sprintf("model %d (%q) is blank or named twice", i+1, m), "name each model once")
			break
		}
	}
	if name := w.APIKeyEnv; name != "" && strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		c.say("APIKeyEnv", "the key's variable is no name of an environment variable", "name the variable, never the key itself")
	}
}
