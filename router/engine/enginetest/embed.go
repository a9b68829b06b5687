package enginetest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"

	"adpdeck/router/model"
)

// maxInputs is how many texts one embeddings request may hold.
const maxInputs = 2048

// embed answers /v1/embeddings: each text runs as a prompt without an answer.
func (e *Engine) embed(bound int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, bad := e.readBody(w, r)
		if bad != nil {
			e.fail(w, bad)
			return
		}
		var inputs []json.RawMessage
		if json.Unmarshal(b.Input, &inputs) != nil || len(inputs) == 0 || inputs[0][0] != '"' && inputs[0][0] != '[' {
			inputs = []json.RawMessage{b.Input} // a text, or token ids
		}
		if len(inputs) > maxInputs {
			e.fail(w, badRequest("input", "%d inputs: at most %d", len(inputs), maxInputs))
			return
		}
		var works []*answer
		defer func() {
			for _, a := range works {
				e.leave(a.work)
			}
		}()
		for _, in := range inputs {
			b.Input = in
			j, bad := e.job(model.RouteEmbeddings, bound, r, b)
			if bad == nil {
				var a *answer
				if a, bad = e.start(j, b); bad == nil {
					works = append(works, a)
					continue
				}
			}
			e.fail(w, bad)
			return
		}
		e.embedded(w, r, b, works)
	}
}

func (e *Engine) embedded(w http.ResponseWriter, r *http.Request, b *body, works []*answer) {
	size := 16
	if b.Dimensions != nil && *b.Dimensions > 0 && *b.Dimensions <= 4096 {
		size = *b.Dimensions
	}
	data, tokens := []object{}, 0
	for i, a := range works {
		for {
			n, err := e.next(r.Context(), a.work)
			if err != nil {
				e.broken(w, r, err)
				return
			}
			if n.ended {
				break
			}
		}
		tokens += len(a.prompt)
		var v any = vector(a.seed, size)
		if b.EncodingFormat == "base64" {
			var raw []byte
			for _, f := range vector(a.seed, size) {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
			}
			v = base64.StdEncoding.EncodeToString(raw)
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": v})
	}
	a := works[0]
	e.headers(w, r, a)
	for _, done := range works {
		e.leave(done.work)
	}
	writeJSON(w, http.StatusOK, object{
		"id": a.id, "object": "list", "created": a.created, "model": a.model, "data": data,
		"usage": object{"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0},
	})
}

// vector is a unit vector that the prompt alone decides.
func vector(seed uint64, size int) []float32 {
	v, sum := make([]float32, size), 0.0
	for i := range v {
		f := float64(int64(mix(seed+uint64(i))))/(1<<63) + 1e-9
		v[i], sum = float32(f), sum+f*f
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
