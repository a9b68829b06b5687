package enginetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/model"
)

// The routes beside those of model.Route that SGLang has.
const (
	RouteGenerate model.Route = "generate" // SGLang's native /generate
	RouteMessages model.Route = "messages" // /v1/messages
)

// routes are all that Habits may name.
func routes() []model.Route {
	return []model.Route{model.RouteChat, model.RouteCompletions, model.RouteResponses, model.RouteEmbeddings, RouteGenerate, RouteMessages}
}

// choice is the rank that a request asked for.
type choice struct {
	rank   int // over all workers, or NoRank
	worker int // behind Dynamo, or NoRank
	by     string
}

// honours lists the channels over which a kind takes a rank on a route:
// vLLM's chat and completions read the header; SGLang 0.5.19 as measured in
// sglang#38729; trtllm-serve has none; a Dynamo frontend takes headers and nvext
// wherever it routes tokens.
func honours(kind model.EngineKind, r model.Route) []string {
	both, header, body := []string{"header", "body"}, []string{"header"}, []string{"body"}
	switch kind {
	case model.EngineVLLM:
		if r == model.RouteChat || r == model.RouteCompletions {
			return header
		}
	case model.EngineSGLang:
		switch r {
		case model.RouteChat, model.RouteCompletions:
			return both
		case RouteMessages:
			return header
		case RouteGenerate:
			return body
		}
	case model.EngineDynamo:
		if r != model.RouteEmbeddings {
			return both
		}
	}
	return nil
}

// choose reads the rank that a request asks for. bound is the rank whose own
// address took it, or NoRank.
func (e *Engine) choose(bound int, r model.Route, header http.Header, b *body) (choice, *apiError) {
	h := e.habits.Load()
	none := choice{rank: model.NoRank, worker: model.NoRank}
	channels, set := h.Honours[r]
	if !set {
		channels = honours(e.cfg.Kind, r)
	}
	if slices.Contains(h.IgnoreRank, r) || slices.Contains(h.IgnoreRank, "*") {
		channels = nil
	}
	var c choice
	var err *apiError
	if e.dyn != nil {
		c, err = e.chooseDynamo(channels, header, b)
	} else {
		c, err = e.chooseRank(bound, channels, header, b)
	}
	if err != nil {
		return none, err
	}
	if bound != model.NoRank && c.rank == model.NoRank {
		c.rank, c.by = bound, "port"
	}
	return c, nil
}

// chooseRank reads header and body as vLLM and SGLang do: the header wins.
func (e *Engine) chooseRank(bound int, channels []string, header http.Header, b *body) (choice, *apiError) {
	none := choice{rank: model.NoRank, worker: model.NoRank}
	if slices.Contains(channels, "header") {
		if text := strings.TrimSpace(header.Get("X-Data-Parallel-Rank")); text != "" {
			n, err := strconv.Atoi(text)
			switch {
			case err == nil:
				return e.number(bound, n, "header")
			case e.cfg.Kind == model.EngineSGLang:
				return none, badRequest("X-Data-Parallel-Rank", "Invalid X-Data-Parallel-Rank header: %q is not an integer", text)
			}
			return none, nil // vLLM says nothing
		}
	}
	if slices.Contains(channels, "body") {
		for _, f := range []struct {
			name string
			raw  json.RawMessage
		}{{"routed_dp_rank", b.RoutedDPRank}, {"data_parallel_rank", b.DataParallelRank}} {
			if len(f.raw) == 0 || string(f.raw) == "null" {
				continue
			}
			n, err := strconv.Atoi(string(f.raw))
			if err != nil {
				return none, badRequest(f.name, "%s: Input should be a valid integer", f.name)
			}
			return e.number(bound, n, "body")
		}
	}
	return none, nil
}

// number turns a rank as requests count it into one of this engine's.
func (e *Engine) number(bound, n int, by string) (choice, *apiError) {
	none := choice{rank: model.NoRank, worker: model.NoRank}
	first, count := 0, e.cfg.Ranks
	if e.cfg.Numbers == model.NumbersGlobal {
		first = e.cfg.StartRank
	}
	if bound != model.NoRank { // a server of one rank has no others
		if e.cfg.Numbers == model.NumbersGlobal {
			first += bound
		}
		count = 1
	}
	if n >= first && n < first+count {
		return choice{rank: n - first + max(bound, 0), worker: model.NoRank, by: by}, nil
	}
	if e.cfg.Kind == model.EngineSGLang && count == 1 && e.habits.Load().OutOfRange == "" {
		return none, nil // checked at the entry only where there are several
	}
	return none, e.outOfRange(n, first, count, false)
}

// outOfRange is what becomes of a rank that does not exist; nil: nothing.
func (e *Engine) outOfRange(n, first, count int, lenient bool) *apiError {
	how := e.habits.Load().OutOfRange
	if how == "" && lenient {
		how = "balance"
	}
	switch how {
	case "balance":
		return nil
	case "fail":
		return &apiError{status: http.StatusInternalServerError, kind: "Internal Server Error", msg: "list index out of range"}
	}
	name := "data_parallel_rank"
	if e.cfg.Kind == model.EngineSGLang {
		name = "routed_dp_rank"
	}
	return badRequest(name, "%s %d is out of range [%d, %d)", name, n, first, first+count)
}

// pick is where a request runs: on the rank that was asked for, or where the
// engine itself puts it. The engine's lock is held.
func (e *Engine) pick(j *job) *rank {
	if j.choice.rank != model.NoRank {
		return e.ranks[j.choice.rank]
	}
	switch e.cfg.Kind {
	case model.EngineSGLang: // round robin
		e.turn++
		return e.ranks[(e.turn-1)%len(e.ranks)]
	case model.EngineDynamo:
		return e.pickDynamo(j)
	}
	return leastLoaded(e.ranks)
}

// leastLoaded is vLLM's internal balance: waiting·4 + running, the first of
// equals.
func leastLoaded(ranks []*rank) *rank {
	return slices.MinFunc(ranks, func(a, b *rank) int {
		return len(a.waiting)*4 + len(a.running) - len(b.waiting)*4 - len(b.running)
	})
}

// conversation reads TensorRT-LLM's conversation id: body first, then the first
// header that is not blank, on chat and completions alike.
func (e *Engine) conversation(r model.Route, header http.Header, b *body) (string, *apiError) {
	if b.Conversation != nil {
		id := strings.TrimSpace(string(b.Conversation.ID))
		if id == "" {
			return "", badRequest("conversation_params", "conversation_params.conversation_id must not be blank")
		}
		return id, nil
	}
	if r != model.RouteChat && r != model.RouteCompletions || e.habits.Load().OldSchema {
		return "", nil
	}
	for _, name := range []string{
		"X-Claude-Code-Session-Id", "X-Claude-Session-Id", "X-Session-Id",
		"X-Correlation-Id", "X-Session-Affinity", "X-Multi-Turn-Session-Id",
	} {
		if id := strings.TrimSpace(header.Get(name)); id != "" {
			return id, nil
		}
	}
	return "", nil
}

// text is a JSON string, or a number taken as its digits.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
		return nil
	}
	if _, err := strconv.ParseInt(string(b), 10, 64); err != nil {
		return fmt.Errorf("%.40s is neither a string nor a whole number", b)
	}
	*t = text(b)
	return nil
}
