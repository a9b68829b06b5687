package scrape

import (
	"encoding/json"
	"slices"
	"strings"

	"adpdeck/router/model"
)

// State is what the answer to /health says.
type State struct {
	// Live says that the engine takes requests.
	Live bool
	// Why says in words why not, "" when it is.
	Why string
	// Instances are the ids of the workers behind a Dynamo frontend, rising.
	Instances []uint64
}

// Health reads the answer to /health, an error answer included. A good status
// is enough for vLLM, SGLang and TensorRT-LLM, unless a JSON body says
// otherwise. A Dynamo frontend answers 200 before it has a worker: its body
// must say healthy, and name an instance where it lists them.
func Health(kind model.EngineKind, a Answer) State {
	if kind == model.EngineDynamo {
		return dynamoHealth(a)
	}
	if len(a.Body) == 0 && (a.Status == 0 || a.Status/100 == 2) {
		return State{Live: true}
	}
	body, bad := a.open(formJSON)
	switch {
	case bad != nil && bad.Reason == Empty,
		bad != nil && bad.Reason == ContentType && sniffable(a.Body):
		return State{Live: true} // white space, or a word such as OK
	case bad != nil:
		return State{Why: bad.Detail}
	}
	var said struct {
		Status string `json:"status"`
	}
	if decode(body, &said) == nil && ill(said.Status) {
		return State{Why: "the engine says that it is " + quoted(said.Status)}
	}
	return State{Live: true}
}

// sniffable reports whether a body that is no JSON is a short word and no page
// of somebody else.
func sniffable(body []byte) bool {
	return len(body) <= 256 && !strings.Contains(string(body), "<")
}

func ill(status string) bool {
	switch strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(status)) {
	case "unhealthy", "notready", "notserving", "error", "failed", "down", "starting", "stopping", "unavailable":
		return true
	}
	return false
}

func dynamoHealth(a Answer) State {
	body, bad := a.open(formJSON)
	if bad != nil {
		return State{Why: bad.Detail}
	}
	var said struct {
		Status    string          `json:"status"`
		Message   string          `json:"message"`
		Instances json.RawMessage `json:"instances"`
	}
	if err := decode(body, &said); err != nil {
		return State{Why: err.Error()}
	}
	s := State{Instances: instances(said.Instances)}
	switch strings.ToLower(said.Status) {
	case "healthy", "ready", "live", "ok":
	case "":
		s.Why = "the frontend does not say how it is"
	default:
		s.Why = "the frontend says that it is " + quoted(said.Status)
		if said.Message != "" {
			s.Why += ": " + quoted(said.Message)
		}
	}
	if len(said.Instances) > 0 && string(said.Instances) != "null" && len(s.Instances) == 0 {
		if s.Why != "" {
			s.Why += "; "
		}
		s.Why += "no worker is registered with it"
	}
	s.Live = s.Why == ""
	return s
}

// instances reads the ids of a list of instances; of a list of anything else
// it gives none.
func instances(list json.RawMessage) []uint64 {
	var ids []uint64
	if len(list) == 0 || list[0] != '[' {
		return nil
	}
	_ = rows(list, MaxListed, new(Refusals), func(_ int, raw json.RawMessage) {
		var one struct {
			ID *uint64 `json:"instance_id"`
		}
		if json.Unmarshal(raw, &one) == nil && one.ID != nil {
			ids = append(ids, *one.ID)
		}
	})
	slices.Sort(ids)
	return slices.Compact(ids)
}
