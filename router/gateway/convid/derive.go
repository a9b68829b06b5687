package convid

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/tidwall/gjson"

	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
)

// Derive makes an id of what stays the same while a conversation grows: all that
// comes before the first message of the user, which is the system prompt, and
// that message. Conversations that share a system prompt differ in the message;
// those that begin with the same one are one to it, and share their prefix.
//
// It returns "" where that cannot be told: other routes than chat and responses,
// a request without a message of the user, and one that continues a response
// which the engine keeps.
func Derive(d *body.Doc, route model.Route) string {
	list, extra := gjson.Result{}, gjson.Result{}
	switch route {
	case model.RouteChat:
		list = d.Get("messages")
	case model.RouteResponses:
		if d.Get("previous_response_id").Exists() || d.Get("conversation").Exists() {
			return ""
		}
		list, extra = d.Get("input"), d.Get("instructions")
	default:
		return ""
	}
	h := sha256.New()
	write(h, extra)
	found := false
	switch {
	case list.Type == gjson.String && route == model.RouteResponses:
		write(h, list)
		found = list.Str != ""
	case list.IsArray():
		list.ForEach(func(_, m gjson.Result) bool {
			role := m.Get("role")
			switch role.Str {
			case "system", "developer", "user":
				write(h, role)
				write(h, m.Get("content"))
				found = role.Str == "user"
			}
			return !found
		})
	}
	if !found {
		return ""
	}
	return DerivedPrefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// write adds a value to the hash: text as what it says, however it is escaped,
// anything else as it is written. Lengths keep neighbours apart.
func write(h hash.Hash, v gjson.Result) {
	text := v.Raw
	kind := byte('j')
	if v.Type == gjson.String {
		text, kind = v.Str, 's'
	}
	var head [9]byte
	head[0] = kind
	binary.LittleEndian.PutUint64(head[1:], uint64(len(text)))
	h.Write(head[:])
	h.Write([]byte(text))
}
