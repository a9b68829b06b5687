package settings

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"adpdeck/router/model"
)

// The keys that adpdeck serve reads beside the router's settings.
const (
	keyWorkers = "workers"
	keyGateway = "gateway"
	keyFeed    = "feed"
)

// Bounds of what serve reads.
const (
	MaxWorkers     = 1024
	MaxRanks       = 4096  // of one worker
	MaxStringBytes = 4096  // of an address, a name, a header
	MaxStrings     = 4096  // in one list
	maxSecs        = 86400 // of any time-out
)

// DefaultServe is what a file that says nothing of serving means: no workers,
// the gateway and the feed on loopback.
func DefaultServe() model.ServeSpec {
	return model.ServeSpec{
		FeedListen: "127.0.0.1:8801",
		Gateway: model.GatewaySpec{
			Listen: "127.0.0.1:8800", RequestTimeoutSecs: 3600, QueueTimeoutSecs: 60, DrainSecs: 30,
			TenantFromKey: true, DecisionHeaders: true, Retry: true, Tokenize: TokenizeEngine,
		},
	}
}

// What a gateway's tokenize may say.
const (
	TokenizeEngine = "engine"
	TokenizeText   = "text"
	TokenizeNone   = "none"
)

// put stores one value; what it refuses is told at the value.
type put func(r *reader, e entry) error

// member is one key of a mapping that is not the router's settings.
type member struct {
	key string
	put put
}

// members reads a mapping key by key.
func (r *reader) members(n ast.Node, section, what string, list []member) error {
	entries, err := r.entries(n, section, what)
	if err != nil {
		return err
	}
	for _, e := range entries {
		i := slices.IndexFunc(list, func(m member) bool { return m.key == e.key })
		if i < 0 {
			names := make([]string, len(list))
			for k, m := range list {
				names[k] = m.key
			}
			return r.fail(e.at, "%s has no key %q; allowed are %s", strings.TrimRight(section, "0123456789/"), e.key, strings.Join(names, ", "))
		}
		if err := list[i].put(r, e); err != nil {
			return err
		}
	}
	return nil
}

// serving reads one of serve's own keys; false for any other.
func (r *reader) serving(e entry) (bool, error) {
	s := &r.doc.serve
	switch e.key {
	case keyWorkers:
		return true, r.workers(e)
	case keyGateway:
		return true, r.members(e.value, keyGateway, "a mapping of the gateway's keys", gatewayMembers(&s.Gateway))
	case keyFeed:
		return true, r.members(e.value, keyFeed, "a mapping with listen", []member{{"listen", text(&s.FeedListen)}})
	}
	return false, nil
}

func gatewayMembers(g *model.GatewaySpec) []member {
	return []member{
		{"listen", text(&g.Listen)},
		{"request_timeout_secs", secs(&g.RequestTimeoutSecs)},
		{"queue_timeout_secs", secs(&g.QueueTimeoutSecs)},
		{"drain_secs", secs(&g.DrainSecs)},
		{"tenant_header", text(&g.TenantHeader)},
		{"tenant_from_key", boolean(&g.TenantFromKey)},
		{"derive_conversation", boolean(&g.DeriveConversation)},
		{"decision_headers", boolean(&g.DecisionHeaders)},
		{"retry", boolean(&g.Retry)},
		{"tokenize", choice(&g.Tokenize, TokenizeEngine, TokenizeText, TokenizeNone)},
	}
}

// workers reads the list of workers.
func (r *reader) workers(e entry) error {
	seq, ok := e.value.(*ast.SequenceNode)
	if !ok {
		return r.fail(e.value.GetToken(), "workers: want a list, each with id, kind and url, not %s", describe(e.value))
	}
	if len(seq.Values) > MaxWorkers {
		return r.fail(e.at, "workers: %d entries; at most %d are read", len(seq.Values), MaxWorkers)
	}
	for i, n := range seq.Values {
		var w model.EngineSpec
		section := keyWorkers + "/" + strconv.Itoa(i)
		if err := r.members(n, section, "a mapping with id, kind and url", workerMembers(&w)); err != nil {
			return err
		}
		switch {
		case w.ID == "":
			return r.fail(n.GetToken(), "this worker has no id; give it a name that stays, pins and weights name it")
		case w.Kind == "":
			return r.fail(n.GetToken(), "worker %s has no kind; want one of %s", w.ID, strings.Join(kinds(), ", "))
		}
		r.doc.serve.Workers = append(r.doc.serve.Workers, w)
	}
	return nil
}

func kinds() []string {
	return []string{string(model.EngineVLLM), string(model.EngineSGLang), string(model.EngineTRTLLM), string(model.EngineDynamo)}
}

func workerMembers(w *model.EngineSpec) []member {
	return []member{
		{"id", text(&w.ID)},
		{"kind", choice(&w.Kind, model.EngineVLLM, model.EngineSGLang, model.EngineTRTLLM, model.EngineDynamo)},
		{"url", text(&w.URL)},
		{"rank_urls", texts(&w.RankURLs)},
		{"group", text(&w.Group)},
		{"start_rank", count(&w.StartRank, 1<<20)},
		{"ranks", count(&w.Ranks, MaxRanks)},
		{"steer", choice(&w.Steering, model.SteerHeader, model.SteerBody, model.SteerHeaderBody, model.SteerPort, model.SteerConversation, model.SteerNone)},
		{"rank_numbers", choice(&w.RankNumbers, model.NumbersGlobal, model.NumbersLocal)},
		{"instance_id", instance(&w.InstanceID)},
		{"events", func(r *reader, e entry) error {
			return r.members(e.value, keyWorkers+"/events", "a mapping with endpoint", eventMembers(&w.Events))
		}},
		{"metrics_url", text(&w.MetricsURL)},
		{"models", texts(&w.Models)},
		{"api_key_env", text(&w.APIKeyEnv)},
		{"max_num_active_requests", count(&w.MaxNumActiveRequests, math.MaxInt32)},
		{"max_num_batched_tokens", count(&w.MaxBatchedTokens, math.MaxInt32)},
		{"kv_blocks", count(&w.KVBlocks, math.MaxInt32)},
		{"block_tokens", count(&w.BlockTokens, 1<<16)},
	}
}

func eventMembers(s *model.EventSource) []member {
	return []member{
		{"transport", choice(&s.Transport, "zmq", "http", "nats", "none")},
		{"endpoint", text(&s.Endpoint)},
		{"rank_endpoints", texts(&s.RankEndpoints)},
		{"bind", text(&s.Bind)},
		{"loads", texts(&s.Loads)},
		{"replay", text(&s.Replay)},
		{"rank_replays", texts(&s.RankReplays)},
		{"topic", text(&s.Topic)},
	}
}

func text(p *string) put {
	return func(r *reader, e entry) error {
		v, err := r.word(e.key, e.value)
		if err == nil {
			*p = v
		}
		return err
	}
}

// word is a text of bounded length without control characters.
func (r *reader) word(key string, n ast.Node) (string, error) {
	v, ok := scalarText(n)
	switch {
	case !ok:
		hint := ""
		switch n.(type) {
		case *ast.MappingNode, *ast.MappingValueNode: // how the YAML reader takes a bare address in a [list]
			hint = "; put it in quotes"
		}
		return "", r.fail(n.GetToken(), "%s: want a text, not %s%s", key, describe(n), hint)
	case len(v) > MaxStringBytes:
		return "", r.fail(n.GetToken(), "%s has %d bytes; at most %d are read", key, len(v), MaxStringBytes)
	case strings.ContainsFunc(v, unprintable):
		return "", r.fail(n.GetToken(), "%s holds a control character", key)
	}
	return strings.TrimSpace(v), nil
}

func texts(p *[]string) put {
	return func(r *reader, e entry) error {
		seq, ok := e.value.(*ast.SequenceNode)
		if !ok {
			return r.fail(e.value.GetToken(), "%s: want a list of texts, not %s", e.key, describe(e.value))
		}
		if len(seq.Values) > MaxStrings {
			return r.fail(e.at, "%s has %d entries; at most %d are read", e.key, len(seq.Values), MaxStrings)
		}
		for _, n := range seq.Values {
			v, err := r.word(e.key, n)
			if err != nil {
				return err
			}
			*p = append(*p, v)
		}
		return nil
	}
}

func boolean(p *bool) put {
	return func(r *reader, e entry) error {
		return r.scalar(e, keyGateway, &field{kind: model.KindBool, setBool: func(v bool) { *p = v }})
	}
}

// count reads a whole number from 0 to most.
func count(p *int, most int) put {
	return func(r *reader, e entry) error {
		v := 0
		if err := r.scalar(e, keyWorkers, &field{kind: model.KindInt, setInt: func(n int) { v = n }}); err != nil {
			return err
		}
		if v < 0 || v > most {
			return r.fail(e.value.GetToken(), "%s is %d; want 0 to %d", e.key, v, most)
		}
		*p = v
		return nil
	}
}

// secs reads a time of more than 0 seconds, a day at most.
func secs(p *float64) put {
	return func(r *reader, e entry) error {
		v := 0.0
		if err := r.scalar(e, keyGateway, &field{kind: model.KindFloat, setFloat: func(n float64) { v = n }}); err != nil {
			return err
		}
		if !(v > 0 && v <= maxSecs) {
			return r.fail(e.value.GetToken(), "%s is %v; want seconds, more than 0 and at most %d", e.key, v, maxSecs)
		}
		*p = v
		return nil
	}
}

func choice[T ~string](p *T, options ...T) put {
	return func(r *reader, e entry) error {
		v, ok := scalarText(e.value)
		if !ok || !slices.Contains(options, T(v)) {
			names := make([]string, len(options))
			for i, o := range options {
				names[i] = string(o)
			}
			return r.fail(e.value.GetToken(), "%s is %s; want one of %s", e.key, describe(e.value), strings.Join(names, ", "))
		}
		*p = T(v)
		return nil
	}
}

// instance reads a Dynamo instance id: the whole range of a u64, which no
// float holds.
func instance(p *uint64) put {
	return func(r *reader, e entry) error {
		v, _ := scalarText(e.value)
		id, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return r.fail(e.value.GetToken(), "instance_id is %s; want a whole number from 0 to %d", describe(e.value), uint64(math.MaxUint64))
		}
		*p = id
		return nil
	}
}

// Serve is what the file says of serving. Workers that stand in it twice are
// the caller's to refuse, with all else that concerns several of them.
func (d *Document) Serve() model.ServeSpec {
	s := d.serve
	s.Workers = slices.Clone(s.Workers)
	return s
}
