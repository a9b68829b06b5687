package engine

import (
	"fmt"
	"slices"
	"strings"

	"adpdeck/router/model"
)

// Transports of KV events.
const (
	transportZMQ  = "zmq"
	transportHTTP = "http"
	transportNATS = "nats"
	transportNone = "none"
)

// transportOf is where a worker's KV events come from: what its spec says, or
// what its kind offers. SGLang names its own endpoints when it is asked; vLLM
// does not.
func transportOf(w *model.EngineSpec) string {
	e := &w.Events
	switch {
	case e.Transport != "":
		return e.Transport
	case e.Endpoint != "" || len(e.RankEndpoints) > 0 || e.Bind != "" || len(e.Loads) > 0:
		if strings.HasPrefix(e.Endpoint, "nats://") || strings.HasPrefix(e.Endpoint, "tls://") {
			return transportNATS
		}
		return transportZMQ
	case w.Kind == model.EngineTRTLLM:
		return transportHTTP
	case w.Kind == model.EngineSGLang:
		return transportZMQ
	}
	return transportNone
}

func (c *checker) events() {
	w, e := c.w, &c.w.Events
	named := e.Endpoint != "" || len(e.RankEndpoints) > 0 || e.Bind != ""
	replays := e.Replay != "" || len(e.RankReplays) > 0
	switch t := transportOf(w); t {
	case transportZMQ:
		c.zmq(named, replays)
	case transportHTTP:
		switch {
		case w.Kind != model.EngineTRTLLM:
			c.say("Events", fmt.Sprintf("kv events over http are TensorRT-LLM's, and this is %s", w.Kind), "use zmq with an endpoint, or none")
		case named || replays:
			c.say("Events", "kv events over http come from its own address", "leave the endpoints out, or use zmq")
		}
	case transportNATS:
		switch {
		case w.Kind != model.EngineDynamo:
			c.say("Events", fmt.Sprintf("kv events over nats are Dynamo's, and this is %s", w.Kind), "use zmq with an endpoint, or none")
		case len(e.RankEndpoints) > 0 || replays || e.Bind != "":
			c.say("Events", "a nats server is one for all ranks and replays nothing", "set its endpoint only")
		case e.Topic == "" && len(e.Loads) == 0 || strings.ContainsAny(e.Topic, " \t\r\n"):
			c.say("Events", "kv events over nats need the subject", "set topic to namespace.NS.component.COMP.endpoint.EP.kv-events, without endpoint.EP for older releases")
		default:
			if cause, next := badNATS(e.Endpoint); cause != "" {
				c.say("Events", cause, next)
				return
			}
			c.loads()
		}
	case transportNone:
		if named || replays || len(e.Loads) > 0 {
			c.say("Events", "it has endpoints of kv events that are not to be read", "leave the endpoints or the transport out")
		}
	default:
		c.say("Events", fmt.Sprintf("kv events cannot come by %q", t), "use zmq, http, nats or none")
	}
}

func (c *checker) zmq(named, replays bool) {
	w, e := c.w, &c.w.Events
	switch {
	case e.Bind != "" && (e.Endpoint != "" || len(e.RankEndpoints) > 0):
		c.say("Events", "it has an endpoint to dial and one to listen at", "keep bind where its publishers connect, the other where they bind")
	case e.Bind != "" && w.Kind != model.EngineVLLM && w.Kind != model.EngineSGLang:
		c.say("Events", fmt.Sprintf("publishers of %s never connect, they bind", w.Kind), "set endpoint in place of bind")
	case !named && len(e.Loads) > 0:
		c.loads()
	case !named && replays:
		c.say("Events", "it can replay kv events and names no endpoint of them", "set the endpoint too")
	case !named && w.Kind == model.EngineSGLang: // it says where when it is asked
	case !named:
		c.say("Events", "kv events over zmq need an endpoint", "set it to tcp://HOST:PORT of rank 0")
	case e.Endpoint != "" && len(e.RankEndpoints) > 0:
		c.say("Events", "it has an endpoint to count up from and one for each rank", "keep one of the two")
	case e.Replay != "" && len(e.RankReplays) > 0:
		c.say("Events", "it has a replay endpoint to count up from and one for each rank", "keep one of the two")
	case w.Kind == model.EngineDynamo && replays:
		c.say("Events", "Dynamo's event plane replays nothing", "leave the replay endpoint out")
	case w.Kind == model.EngineDynamo && len(e.RankEndpoints) > 0:
		c.say("Events", "a Dynamo worker publishes the events of all its ranks in one place", "set endpoint only")
	default:
		c.bind()
		c.loads()
		c.endpoints(e.Endpoint, e.RankEndpoints, "endpoint")
		c.endpoints(e.Replay, e.RankReplays, "replay endpoint")
	}
}

// maxLoadPlaces bounds the places where the loads of one worker are published.
const maxLoadPlaces = 64

// loads checks where loads are published.
func (c *checker) loads() {
	w, list := c.w, c.w.Events.Loads
	nats := transportOf(w) == transportNATS
	switch n := ranksOf(w); {
	case len(list) == 0:
		return
	case w.Kind != model.EngineDynamo && w.Kind != model.EngineVLLM:
		c.say("Events", fmt.Sprintf("loads are published by Dynamo and by vllm under it, and this is %s", w.Kind), "leave loads out: they are asked for")
		return
	case w.Kind == model.EngineVLLM && len(list) > 1 && n > 0 && len(list) != n:
		c.say("Events", fmt.Sprintf("it has %d ranks and %d places of loads", n, len(list)), "name one for each rank, or only the first and ports count up")
		return
	case w.Kind == model.EngineDynamo && len(list) > maxLoadPlaces:
		c.say("Events", fmt.Sprintf("it has %d places of loads", len(list)), fmt.Sprintf("name at most %d", maxLoadPlaces))
		return
	}
	for i, at := range list {
		switch _, port, cause, next := splitEndpoint(at); {
		case nats && (at == "" || strings.ContainsAny(at, " \t\r\n")):
			c.say("Events", fmt.Sprintf("the subject of loads %q is none", at), "use namespace.NS.component.COMP.endpoint.EP.kv_metrics or …forward-pass-metrics")
		case !nats && cause != "":
			c.say("Events", fmt.Sprintf("its place of loads %q is wrong: %s", at, cause), next)
		case !nats && w.Kind == model.EngineVLLM && len(list) == 1 && port+lastOf(w) > 65535:
			c.say("Events", fmt.Sprintf("its place of loads %s counts up to port %d", at, port+lastOf(w)), "name one for each rank instead")
		case slices.Index(list, at) < i:
			c.say("Events", fmt.Sprintf("it has the place of loads %s twice", at), "name each once")
		default:
			continue
		}
		return
	}
}

// bind checks where this router is to listen.
func (c *checker) bind() {
	bind := c.w.Events.Bind
	if bind == "" {
		return
	}
	_, port, cause, next := splitBind(bind)
	switch {
	case cause != "":
		c.say("Events", fmt.Sprintf("its bind %q is wrong: %s", bind, cause), next)
	case port+lastOf(c.w) > 65535:
		c.say("Events", fmt.Sprintf("its bind %s counts up to port %d", bind, port+lastOf(c.w)), "use a lower port")
	}
}

// endpoints checks one base that is counted up, or a list by rank.
func (c *checker) endpoints(base string, list []string, what string) {
	w := c.w
	if n := ranksOf(w); len(list) > 0 && n > 0 && len(list) != n {
		c.say("Events", fmt.Sprintf("it has %d ranks and %d %ss", n, len(list), what), "name one for each rank, in their order")
		return
	}
	if base != "" {
		list = []string{base}
	}
	for i, addr := range list {
		host, port, cause, next := splitEndpoint(addr)
		if cause != "" {
			c.say("Events", fmt.Sprintf("its %s %q is wrong: %s", what, addr, cause), next)
			return
		}
		if last := port + lastOf(w); base != "" && w.Kind != model.EngineDynamo && last > 65535 {
			c.say("Events", fmt.Sprintf("its %s %s:%d counts up to port %d", what, host, port, last), "name one for each rank instead")
			return
		}
		if slices.Index(list, addr) < i {
			c.say("Events", fmt.Sprintf("two of its ranks have the %s %s", what, addr), "each rank publishes on a port of its own")
			return
		}
	}
}

// lastOf is the global number of a worker's last rank.
func lastOf(w *model.EngineSpec) int { return w.StartRank + max(ranksOf(w), 1) - 1 }
