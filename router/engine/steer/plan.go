package steer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/model"
)

// Channels, as a proof of steering names them.
const (
	ChannelNone         = "none" // nothing tells the rank: the engine picks it
	ChannelHeader       = "header"
	ChannelBody         = "body"
	ChannelHeaderBody   = "header+body"
	ChannelPort         = "port"
	ChannelConversation = "conversation" // the engine picks and is told the id
)

// DerivedPrefix begins the id of a conversation that no client named, made of how
// it begins. No client's id begins with it.
const DerivedPrefix = "derived:"

// Plan is what a request must carry for one choice of the router.
type Plan struct {
	// Strip names headers of the client that must not pass; they go before
	// Header is set. Names are canonical (http.CanonicalHeaderKey).
	Strip  []string
	Header http.Header
	// Body are fields to set in or take out of the body, for Edit.
	Body []Field
	// Channel is how the rank is told: one of the Channel constants.
	Channel string
}

// For says what a request for rank (inside the worker) must carry. With NoRank,
// or where the engine picks, it tells the conversation instead, unless that is
// empty. It is the only way by which an id of a conversation reaches an engine:
// conv is the one that the router knows it by, made unnameable for other tenants. The spec must have passed the check of its configuration.
//
// The error says that the worker has no such rank: nothing is sent elsewhere
// silently.
func For(spec *model.EngineSpec, rank int, route model.Route, conv string) (Plan, error) {
	if rank != model.NoRank && (rank < 0 || spec.Ranks > 0 && rank >= spec.Ranks) {
		return Plan{}, fmt.Errorf("steer to %s/%d: the worker has ranks 0 to %d; pin or route to one of them", spec.ID, rank, spec.Ranks-1)
	}
	how, numbers := Resolve(spec)
	if how == model.SteerPort && rank == model.NoRank {
		return Plan{}, fmt.Errorf("steer to %s: each of its ranks has its own address, and no rank was chosen; use a router_mode that chooses one", spec.ID)
	}
	p := Plan{Header: http.Header{}, Channel: ChannelNone}
	p.Strip = slices.Concat(rankHeaders(), conversationHeaders(spec.Kind))
	for _, name := range slices.Concat(rankFields(spec.Kind), conversationFields(spec.Kind)) {
		p.Body = append(p.Body, Field{Name: name})
	}
	if spec.Kind == model.EngineDynamo {
		p.dynamo(spec, how, route)
	}
	if how.EnginePicks() || rank == model.NoRank {
		p.converse(spec.Kind, how, route, conv)
		return p, nil
	}
	number := rank
	if numbers == model.NumbersGlobal {
		number += spec.StartRank
	}
	p.tell(RowOf(spec.Kind, route), how, strconv.Itoa(number))
	return p, nil
}

// tell puts the rank's number where the engine looks for it. A header that is
// not known does no harm anywhere; a field may be refused, so it goes only where
// it is known to be read.
func (p *Plan) tell(row Row, how model.Steering, number string) {
	header := row.HeaderName != "" && (how == model.SteerHeader || how == model.SteerHeaderBody)
	body := row.Body == Heeded && (how == model.SteerBody || how == model.SteerHeaderBody)
	if header {
		p.Header.Set(row.HeaderName, number)
	}
	if body {
		p.Body = set(p.Body, Field{Name: row.BodyName, JSON: []byte(number)})
	}
	switch {
	case how == model.SteerPort:
		p.Channel = ChannelPort
	case header && body:
		p.Channel = ChannelHeaderBody
	case header:
		p.Channel = ChannelHeader
	case body:
		p.Channel = ChannelBody
	}
}

// dynamo names the worker behind the frontend and asks for the report of where
// the request ran. Ids are decimal text or raw JSON: floats do not hold them.
func (p *Plan) dynamo(spec *model.EngineSpec, how model.Steering, route model.Route) {
	known := RowOf(spec.Kind, route).Body == Heeded
	if known {
		p.Body = append(p.Body, Field{Name: "nvext.extra_fields", JSON: []byte(`"worker_id"`), Add: true})
	}
	if spec.InstanceID == 0 {
		return
	}
	id := strconv.FormatUint(spec.InstanceID, 10)
	if how != model.SteerBody {
		p.Header.Set(headerDynamoWorker, id)
	}
	if known && (how == model.SteerBody || how == model.SteerHeaderBody) {
		p.Body = set(p.Body, Field{Name: fieldDynamoWorker, JSON: []byte(id)})
	}
}

// converse tells the engine that picks which conversation this is, in place of
// whatever ids the client sent. Where the engine is not to be held to
// conversations it is told only those that the client named itself, in a header:
// it may be of a release that does not know the field.
func (p *Plan) converse(kind model.EngineKind, how model.Steering, route model.Route, conv string) {
	if conv == "" || how != model.SteerConversation && strings.HasPrefix(conv, DerivedPrefix) {
		return
	}
	row := RowOf(kind, route)
	name := ""
	inBody := false
	switch kind {
	case model.EngineTRTLLM:
		name = headerSession
		if row.Conversation == Heeded && how == model.SteerConversation {
			inBody = true
			p.Body = set(p.Body, Field{Name: fieldConversation, JSON: conversationJSON(conv)})
		}
	case model.EngineDynamo:
		name = headerDynamoSession
	case model.EngineVLLM:
		name = headerSession
	default:
		return // it reads none
	}
	switch text := headerText(conv); {
	case text == conv:
		p.Header.Set(name, conv)
	case !inBody:
		p.Header.Set(name, text)
	}
	if how == model.SteerConversation {
		p.Channel = ChannelConversation
	}
}

// ConversationByHeader tells the conversation by its header alone, for a
// trtllm-serve older than the field conversation_params: it refuses requests with
// fields that it does not know.
func (p *Plan) ConversationByHeader(conv string) {
	for i := range p.Body {
		if p.Body[i].Name == fieldConversation {
			p.Body[i].JSON = nil
		}
	}
	if p.Channel == ChannelConversation {
		p.Header.Set(headerSession, headerText(conv))
	}
}

func conversationJSON(conv string) []byte {
	b, err := json.Marshal(map[string]string{"conversation_id": conv})
	if err != nil { // a map of strings always has a JSON form
		panic(err)
	}
	return b
}

// headerText is conv where a header can carry it unchanged, otherwise a digest:
// just as stable, and made of plain letters.
func headerText(conv string) string {
	clean := len(conv) <= 256 && conv[0] != ' ' && conv[len(conv)-1] != ' '
	for i := 0; clean && i < len(conv); i++ {
		clean = conv[i] >= ' ' && conv[i] < 0x7f
	}
	if clean {
		return conv
	}
	sum := sha256.Sum256([]byte(conv))
	return "adpdeck-" + hex.EncodeToString(sum[:16])
}

// rankHeaders are all headers by which a client could name a rank or a worker to
// one of the engines. They go whatever the kind: an engine may itself be a front.
func rankHeaders() []string {
	return []string{
		headerRank, headerDynamoRank, headerDynamoWorker,
		"X-Dynamo-Prefill-Dp-Rank", "X-Dynamo-Prefill-Instance-Id",
		"X-Dp-Rank", "X-Prefill-Dp-Rank", "X-Worker-Instance-Id", "X-Prefill-Instance-Id", // Dynamo's old names
	}
}

// rankFields are the same in the body.
func rankFields(kind model.EngineKind) []string {
	switch kind {
	case model.EngineSGLang:
		return []string{fieldRank, "data_parallel_rank"} // the second is the old name
	case model.EngineDynamo:
		return []string{
			fieldDynamoRank, fieldDynamoWorker, "nvext.prefill_dp_rank",
			"nvext.decode_dp_rank", "nvext.prefill_worker_id", "nvext.decode_worker_id",
		}
	}
	return nil
}

// conversationHeaders are the headers that an engine of the kind reads as the id
// of a conversation. What a client put there never passes: one tenant could name
// another's, and the engine would act on it against a rank.
func conversationHeaders(kind model.EngineKind) []string {
	switch kind {
	case model.EngineVLLM:
		return []string{headerSession} // in newer trees
	case model.EngineTRTLLM:
		return []string{
			"X-Claude-Code-Session-Id", "X-Claude-Session-Id", headerSession,
			"X-Correlation-Id", "X-Session-Affinity", "X-Multi-Turn-Session-Id",
			"X-Trtllm-Subagent-Affinity-Id", "X-Trtllm-Subagent-Affinity-Auth",
		}
	case model.EngineDynamo:
		return []string{
			headerDynamoSession, "X-Dynamo-Parent-Session-Id", "X-Dynamo-Session-Final",
			"X-Claude-Code-Session-Id", "X-Claude-Code-Agent-Id", "X-Claude-Code-Parent-Agent-Id",
			"Thread-Id", "X-Codex-Parent-Thread-Id", headerSession, "X-Parent-Session-Id",
		}
	}
	return nil
}

// conversationFields are the same in the body.
func conversationFields(kind model.EngineKind) []string {
	switch kind {
	case model.EngineVLLM:
		return []string{"session_id", "vllm_xargs.session_id"}
	case model.EngineTRTLLM: // the last three in newer trees, where nothing else names one
		return []string{fieldConversation, "prompt_cache_key", "client_metadata.thread_id", "client_metadata.session_id"}
	case model.EngineDynamo:
		// The context goes as a whole: without its session_id it would be refused.
		return []string{"nvext.session_control", "nvext.agent_context"}
	}
	return nil
}
