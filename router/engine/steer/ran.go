package steer

import (
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"adpdeck/router/model"
)

// Evidence, as Ran names it.
const (
	EvidenceHeader = "header" // of the response
	EvidenceUsage  = "usage"  // in the response's body
)

// Report is what an answer says of where its request ran.
type Report struct {
	// Rank is inside the worker, or NoRank where the answer names a rank that the
	// worker does not have.
	Rank int
	// Instance is the worker's id behind a Dynamo frontend, 0 where the answer
	// names none. Elsewhere says that it is not the id of the worker asked.
	Instance  uint64
	Elsewhere bool
	Evidence  string
}

// Ran reads what the engine says of the rank that it used: response headers,
// then the body, the JSON of a whole answer or of one chunk of a stream. It
// reports false where the engine says nothing, as most do.
//
//	header  X-Data-Parallel-Rank or X-Dp-Rank         in the worker's numbering
//	dynamo  {"nvext":{"worker_id":{"decode_worker_id":u64,"decode_dp_rank":n}}}
//	sglang  {"meta_info":{"dp_rank":n}}
func Ran(spec *model.EngineSpec, h http.Header, body []byte) (Report, bool) {
	if how, _ := Resolve(spec); how == model.SteerPort {
		return Report{}, false // a server of one rank counts only itself
	}
	for _, name := range []string{headerDynamoRank, headerRank, "X-Dp-Rank"} {
		if n, err := strconv.Atoi(h.Get(name)); err == nil {
			return Report{Rank: inside(spec, n), Evidence: EvidenceHeader}, true
		}
	}
	if len(body) == 0 {
		return Report{}, false
	}
	switch spec.Kind {
	case model.EngineDynamo:
		return dynamoRan(spec, gjson.GetBytes(body, "nvext.worker_id"))
	case model.EngineSGLang:
		if n, ok := whole(gjson.GetBytes(body, "meta_info.dp_rank")); ok {
			return Report{Rank: inside(spec, int(min(n, maxRank+1))), Evidence: EvidenceUsage}, true
		}
	}
	return Report{}, false
}

func dynamoRan(spec *model.EngineSpec, said gjson.Result) (Report, bool) {
	rank, ok := whole(said.Get("decode_dp_rank"))
	id, named := whole(said.Get("decode_worker_id"))
	if !ok && !named {
		return Report{}, false
	}
	r := Report{Rank: model.NoRank, Evidence: EvidenceUsage, Instance: id}
	r.Elsewhere = named && spec.InstanceID != 0 && id != spec.InstanceID
	if ok && !r.Elsewhere {
		r.Rank = inside(spec, int(min(rank, maxRank+1)))
	}
	return r, ok || r.Elsewhere
}

// whole reads a number that is an unsigned integer, in full width.
func whole(v gjson.Result) (uint64, bool) {
	if v.Type != gjson.Number {
		return 0, false
	}
	n, err := strconv.ParseUint(v.Raw, 10, 64)
	return n, err == nil
}

// maxRank is far above any deployment: what lies beyond is no rank.
const maxRank = 1 << 20

// inside turns a rank in the worker's numbering into one inside the worker.
func inside(spec *model.EngineSpec, n int) int {
	if n > maxRank {
		return model.NoRank
	}
	if _, numbers := Resolve(spec); numbers == model.NumbersGlobal {
		n -= spec.StartRank
	}
	if n < 0 || spec.Ranks > 0 && n >= spec.Ranks {
		return model.NoRank
	}
	return n
}
