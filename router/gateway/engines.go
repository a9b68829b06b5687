package gateway

import (
	"context"
	"net/http"
	"net/url"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// Engines is what the front needs of the engines.
type Engines interface {
	// Upstream says where and how a request for t goes.
	Upstream(t model.Target, route model.Route, conv string) (Upstream, error)
	// Ran reads from an answer which rank of t's worker it came from; body is the
	// answer's JSON, or nil.
	Ran(t model.Target, h http.Header, body []byte) (rank int, evidence string, known bool)
	// Tokenize asks a worker's tokenizer for the tokens of a request body.
	Tokenize(ctx context.Context, worker string, route model.Route, body []byte) ([]int32, error)
	// Models is the merged answer of /v1/models.
	Models() []byte
	// Failed and Answered tell what was seen in passing: the engine could not be
	// reached or broke off, or it sent the head of an answer.
	Failed(t model.Target, err error)
	Answered(t model.Target)
}

// Upstream is where and how a request goes.
type Upstream struct {
	Base      *url.URL
	Header    http.Header   // to set
	Strip     []string      // headers of the client that do not pass
	Body      []steer.Field // changes of the body
	Channel   string        // how the rank is told, for the proof of steering
	Transport http.RoundTripper
}
