package gateway

import (
	"context"
	"net/http"

	"adpdeck/router/engine"
	"adpdeck/router/model"
)

// Engines is what the front needs of the engines: *engine.Fleet has it.
type Engines interface {
	// Upstream says where and how a request for t goes.
	Upstream(t model.Target, route model.Route, conv string) (engine.Upstream, error)
	// Ran reads from an answer to a request for t where it came from, which may be
	// another worker behind the same frontend; body is the answer's JSON, or nil.
	Ran(t model.Target, h http.Header, body []byte) (ran model.Target, evidence string, known bool)
	// Tokenize asks a worker's tokenizer for the tokens of a request body.
	Tokenize(ctx context.Context, worker string, route model.Route, body []byte) (engine.TokenList, error)
	// Models is the merged answer of /v1/models.
	Models() []byte
	// Workers are those that are served, with what is known of each; Health says
	// which of their ranks answer, in the same order.
	Workers() []model.EngineSpec
	Health() []engine.WorkerHealth
	// Adapters are the LoRA adapters that are known to be ones.
	Adapters() []engine.Adapter
	// Failed and Answered tell what was seen in passing: the engine could not be
	// reached or broke off, or it sent the head of an answer.
	Failed(t model.Target, err error)
	Answered(t model.Target)
}
