package prompt

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"adpdeck/router/gateway/body"
)

// asChat is a request of /v1/responses as the chat that engines render it as: the
// instructions are the system's message, a text is the user's. Tokenisers are
// asked for chats alone. It reports false where more than that is in it: an
// earlier response, tools, pictures, reasoning.
func asChat(d *body.Doc) (*body.Doc, bool) {
	for _, name := range [...]string{
		"previous_response_id", "conversation", "prompt", "tools", "reasoning", "truncation", "chat_template", "chat_template_kwargs",
	} {
		if v := d.Get(name); v.Exists() && (name != "truncation" || v.Str != "disabled") {
			return nil, false
		}
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var chat struct {
		Model    string    `json:"model,omitempty"`
		Messages []message `json:"messages"`
	}
	chat.Model = d.Get("model").Str
	if v := d.Get("instructions"); v.Type == gjson.String && v.Str != "" {
		chat.Messages = append(chat.Messages, message{"system", v.Str})
	} else if v.Exists() && v.Type != gjson.String {
		return nil, false
	}
	plain := true
	switch in := d.Get("input"); {
	case in.Type == gjson.String:
		chat.Messages = append(chat.Messages, message{"user", in.Str})
	case in.IsArray():
		in.ForEach(func(_, item gjson.Result) bool {
			role, text, ok := textItem(item)
			plain = plain && ok
			chat.Messages = append(chat.Messages, message{role, text})
			return plain
		})
	default:
		return nil, false
	}
	raw, err := json.Marshal(&chat)
	if err != nil || !plain {
		return nil, false
	}
	doc, err := body.Parse(raw)
	return doc, err == nil
}

// textItem is an item of an input that is a message of text alone.
func textItem(item gjson.Result) (role, text string, ok bool) {
	if kind := item.Get("type"); !item.IsObject() || kind.Exists() && kind.Str != "message" {
		return "", "", false
	}
	content := item.Get("content")
	if content.IsArray() {
		parts := content.Array()
		if len(parts) != 1 || parts[0].Get("text").Type != gjson.String {
			return "", "", false
		}
		content = parts[0].Get("text")
	}
	role = item.Get("role").Str
	return role, content.Str, role != "" && content.Type == gjson.String
}
