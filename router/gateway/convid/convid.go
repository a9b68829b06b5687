// Package convid finds out which conversation a request belongs to, and whose it
// is.
//
// A conversation's id is taken, in this order, from the body's
// conversation_params.conversation_id; from the headers that TensorRT-LLM reads,
// in its order; from Dynamo's and the agents' own; and from the fields in which
// agents name their thread. Values are trimmed, a blank one is none. What could
// mean two things is refused: one header with two different values, an id that is
// too long or not UTF-8. The raw bytes are the id; nothing else is made equal.
//
// OpenAI's prompt_cache_key is not read: applications give all their users the
// same one, and one conversation of everybody would go to one rank.
//
// Where a client sends no id, Derive makes one of how the conversation begins.
package convid

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"adpdeck/router/engine/steer"
	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
)

// ErrID is returned, wrapped with what is wrong, for an id or tenant that is
// refused.
var ErrID = errors.New("conversation")

// Source says where an id comes from.
type Source string

// The sources of an id.
const (
	None    Source = "none" // the request is keyless
	Body    Source = "body"
	Header  Source = "header"
	Derived Source = "derived"
)

// DerivedPrefix begins each id that Derive makes. A client's id that begins with
// it is refused, so that the two never meet.
const DerivedPrefix = steer.DerivedPrefix

// headers name the id, the first one that is not blank wins. The first six are
// TensorRT-LLM's, in its order; then Dynamo's and Codex's.
var headers = [...]string{
	"X-Claude-Code-Session-Id", "X-Claude-Session-Id", "X-Session-Id", "X-Correlation-Id", "X-Session-Affinity",
	"X-Multi-Turn-Session-Id", "X-Dynamo-Session-Id", "Thread-Id",
}

// fields name it where no header does.
var fields = [...]struct{ top, path string }{
	{"nvext", "agent_context.session_id"},
	{"client_metadata", "thread_id"},
	{"client_metadata", "session_id"},
	{"session_id", ""},
	{"vllm_xargs", "session_id"}, // vLLM's
}

// Read returns the id that the client sent, "" and None without one. The error
// wraps ErrID.
func Read(d *body.Doc, h http.Header) (string, Source, error) {
	id, err := inParams(d.Get("conversation_params"))
	if id != "" || err != nil {
		return id, Body, err
	}
	for _, name := range headers {
		if id, err = inHeader(h, name); id != "" || err != nil {
			return id, Header, err
		}
	}
	for _, f := range fields {
		v, where := d.Get(f.top), "the body's "+f.top
		if f.path != "" {
			if !v.IsObject() {
				continue
			}
			v, where = v.Get(f.path), where+"."+f.path
		}
		if v.Type != gjson.String {
			continue
		}
		if id, err = check(v.Str, where); id != "" || err != nil {
			return id, Body, err
		}
	}
	return "", None, nil
}

// inParams reads conversation_params as TensorRT-LLM does, but takes a blank id
// for none.
func inParams(params gjson.Result) (string, error) {
	const where = "the body's conversation_params.conversation_id"
	if !params.Exists() {
		return "", nil
	}
	if !params.IsObject() {
		return "", fmt.Errorf("%w: the body's conversation_params is not an object: send {\"conversation_id\": \"…\"}", ErrID)
	}
	id, err := "", error(nil)
	params.ForEach(func(key, value gjson.Result) bool {
		if key.Str != "conversation_id" {
			return true
		}
		var next string
		switch value.Type {
		case gjson.Null:
			return true
		case gjson.String:
			next = value.Str
		case gjson.Number:
			next = value.Raw // digit for digit: ids are longer than floats hold
		default:
			err = fmt.Errorf("%w: %s is neither text nor a number: send text", ErrID, where)
			return false
		}
		if next, err = check(next, where); err == nil && id != "" && next != id {
			err = fmt.Errorf("%w: %s is given twice, with different ids: give one", ErrID, where)
		}
		id = next
		return err == nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// inHeader reads a header, which may be sent more than once only with the same
// value.
func inHeader(h http.Header, name string) (string, error) {
	v, err := only(h, name)
	if err != nil {
		return "", err
	}
	return check(v, "the header "+name)
}

// only returns a header's value without the space around it, "" for a blank one.
func only(h http.Header, name string) (string, error) {
	one := ""
	for _, v := range h[name] {
		v = strings.TrimSpace(v)
		if v != "" && one != "" && v != one {
			return "", fmt.Errorf("%w: the header %s is sent more than once, with different values: send one", ErrID, name)
		}
		if v != "" {
			one = v
		}
	}
	return one, nil
}

// check trims an id and refuses one that cannot be a key. What it returns holds
// nothing of the body.
func check(id, where string) (string, error) {
	id = strings.TrimSpace(id)
	switch {
	case len(id) > model.MaxIDBytes:
		return "", fmt.Errorf("%w: %s has %d bytes: send an id of at most %d", ErrID, where, len(id), model.MaxIDBytes)
	case !utf8.ValidString(id):
		return "", fmt.Errorf("%w: %s is not UTF-8: send an id that is", ErrID, where)
	case strings.HasPrefix(id, DerivedPrefix):
		return "", fmt.Errorf("%w: %s begins with %q, which marks ids that adpdeck makes itself: choose another", ErrID, where, DerivedPrefix)
	}
	return strings.Clone(id), nil
}

// Tenant returns whose a request is: the value of the header of that name, or
// without a name and with fromKey a hash of the API key. "" is nobody's. The
// error wraps ErrID.
func Tenant(h http.Header, header string, fromKey bool) (string, error) {
	if header != "" {
		name := http.CanonicalHeaderKey(header)
		v, err := only(h, name)
		switch {
		case err != nil:
			return "", err
		case len(v) > model.MaxIDBytes:
			return "", fmt.Errorf("%w: the tenant in the header %s has %d bytes: send at most %d", ErrID, name, len(v), model.MaxIDBytes)
		case !utf8.ValidString(v):
			return "", fmt.Errorf("%w: the tenant in the header %s is not UTF-8: send one that is", ErrID, name)
		}
		return v, nil
	}
	if !fromKey {
		return "", nil
	}
	for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key"} {
		key, err := only(h, name)
		if err != nil {
			return "", err
		}
		if scheme, rest, ok := strings.Cut(key, " "); ok && name == "Authorization" && strings.EqualFold(scheme, "Bearer") {
			key = strings.TrimSpace(rest)
		}
		if key != "" {
			sum := sha256.Sum256([]byte(key))
			return "key-" + hex.EncodeToString(sum[:12]), nil
		}
	}
	return "", nil
}

// ForEngine is the id under which an engine that keeps conversations itself is
// told of one: the client's, or where there are tenants one that no other
// tenant's request can name. One that was derived keeps its mark.
func ForEngine(key model.ConvKey) string {
	if key.ID == "" || key.Tenant == "" {
		return key.ID
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s%s", len(key.Tenant), key.Tenant, key.ID)
	id := hex.EncodeToString(h.Sum(nil)[:16])
	if strings.HasPrefix(key.ID, DerivedPrefix) {
		return DerivedPrefix + id
	}
	return id
}
