package steer

import "adpdeck/router/model"

// Reads says whether an engine takes notice of a channel on a route.
type Reads string

// What is known of a channel.
const (
	Heeded  Reads = "yes"
	Ignored Reads = "no"
	Untold  Reads = "unknown" // no release was seen doing it, none denies it
)

// Row is what is known of one route of one kind of engine. A name is empty where
// the kind has no such channel at all; Reads is then Ignored.
type Row struct {
	Kind  model.EngineKind
	Route model.Route
	// Header and Body tell a rank by a header and by a field of the body.
	Header, Body         Reads
	HeaderName, BodyName string
	// Port is one address for each rank: heeded wherever an engine offers it.
	Port Reads
	// Conversation tells a stable id, by which the engine keeps a rank of its
	// own choice.
	Conversation     Reads
	ConversationName string
	// Source says where this was read or measured.
	Source string
}

// Names that steer. Header names are in the form that net/http keys them.
const (
	headerRank          = "X-Data-Parallel-Rank"
	headerDynamoRank    = "X-Dynamo-Dp-Rank"
	headerDynamoWorker  = "X-Dynamo-Worker-Instance-Id"
	headerDynamoSession = "X-Dynamo-Session-Id"
	headerSession       = "X-Session-Id"
	fieldRank           = "routed_dp_rank"
	fieldConversation   = "conversation_params"
	fieldDynamoRank     = "nvext.dp_rank"
	fieldDynamoWorker   = "nvext.backend_instance_id"
)

// Table is what is known of every (kind, route), kinds and routes in the order
// of the model. A channel that is Untold or Ignored may still be sent where it
// does no harm, so that a release that reads it is noticed.
func Table() []Row {
	var rows []Row
	for _, kind := range Kinds() {
		for _, route := range Routes() {
			rows = append(rows, RowOf(kind, route))
		}
	}
	return rows
}

// Kinds are the kinds of engine that can be steered.
func Kinds() []model.EngineKind {
	return []model.EngineKind{model.EngineVLLM, model.EngineSGLang, model.EngineTRTLLM, model.EngineDynamo}
}

// Routes are the routes that reach an engine.
func Routes() []model.Route {
	return []model.Route{model.RouteChat, model.RouteCompletions, model.RouteResponses, model.RouteEmbeddings}
}

// RowOf is the table's row for a kind and a route. A request that another gateway
// carries (RouteExternal) is described as a chat; a kind that is not known reads
// nothing.
func RowOf(kind model.EngineKind, route model.Route) Row {
	if route == model.RouteExternal {
		route = model.RouteChat
	}
	r := Row{Kind: kind, Route: route, Header: Ignored, Body: Ignored, Port: Ignored, Conversation: Ignored}
	text := route == model.RouteChat || route == model.RouteCompletions
	switch kind {
	case model.EngineVLLM:
		r.HeaderName, r.Port = headerRank, Heeded
		r.Header = first(text, Heeded, Ignored)
		r.Source = "vLLM's handlers of chat and completions read it; those of responses and pooling do not"
	case model.EngineSGLang:
		r.HeaderName, r.BodyName, r.Port = headerRank, fieldRank, Heeded
		r.Header, r.Body = first(text, Heeded, Untold), first(text, Heeded, Untold)
		if route == model.RouteResponses {
			r.Header, r.Body = Untold, Untold
		}
		r.Source = "sglang#19832; /v1/responses: sglang#38729 measured that v0.5.19 ignores all, newer handlers read both"
	case model.EngineTRTLLM:
		r.ConversationName = "X-Session-ID"
		r.Conversation = Untold
		if text {
			r.ConversationName, r.Conversation = "conversation_params, X-Session-ID", Heeded
		}
		r.Source = "trtllm-serve has no field for a rank; TensorRT-LLM#15452, #15572"
	case model.EngineDynamo:
		r.HeaderName, r.BodyName, r.ConversationName = headerDynamoRank, fieldDynamoRank, "x-dynamo-session-id"
		r.Header, r.Body, r.Conversation = first(text, Heeded, Untold), first(text, Heeded, Untold), first(text, Heeded, Untold)
		r.Source = "Dynamo's frontend reads its headers before nvext"
	}
	return r
}

func first(yes bool, a, b Reads) Reads {
	if yes {
		return a
	}
	return b
}

// Resolve fills in what a worker's spec leaves to be found: the channel that
// suits its kind and addresses, and the numbering that its engine expects.
//
// vLLM numbers ranks from 0 inside each server (vllm#32314), SGLang and Dynamo
// over all of a deployment.
func Resolve(spec *model.EngineSpec) (model.Steering, model.RankNumbers) {
	how, numbers := spec.Steering, spec.RankNumbers
	if how == model.SteerAuto {
		switch {
		case len(spec.RankURLs) > 0:
			how = model.SteerPort
		case spec.Kind == model.EngineTRTLLM:
			how = model.SteerConversation
		case spec.Kind == model.EngineSGLang:
			how = model.SteerHeaderBody
		default:
			how = model.SteerHeader
		}
	}
	if numbers == model.NumbersAuto {
		numbers = model.NumbersGlobal
		if spec.Kind == model.EngineVLLM {
			numbers = model.NumbersLocal
		}
	}
	return how, numbers
}

// Why says in words why a kind cannot be steered that way, empty where it can.
func Why(kind model.EngineKind, how model.Steering) string {
	switch how {
	case model.SteerAuto, model.SteerNone:
		return ""
	case model.SteerConversation:
		if kind == model.EngineVLLM || kind == model.EngineSGLang {
			return "keeps no conversation on a rank by itself"
		}
	case model.SteerPort:
		if kind == model.EngineDynamo || kind == model.EngineTRTLLM {
			return "has one address for all of its ranks"
		}
	case model.SteerHeader:
		if kind == model.EngineTRTLLM {
			return "reads no rank from a request"
		}
	case model.SteerBody, model.SteerHeaderBody:
		switch kind {
		case model.EngineTRTLLM:
			return "reads no rank from a request and refuses fields that it does not know"
		case model.EngineVLLM:
			return "reads a rank from the header only"
		}
	default:
		return "knows no such way"
	}
	return ""
}
