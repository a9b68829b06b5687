package enginetest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
)

// The toy vocabulary:
//
//	0 … 255        single bytes
//	256 … 511      special tokens, made by the chat template only
//	512 … vocab-1  pieces of two bytes and more, by hash
const (
	vocab        = 128_000
	firstPiece   = 512
	pieceBytes   = 8 // letters and digits of one piece, its leading space apart
	tokenBegin   = 256
	tokenStart   = 257
	tokenSep     = 258
	tokenEnd     = 259
	tokenMedia   = 260
	specialFirst = tokenBegin
)

// specials are the special tokens as /tokenize spells them.
func special(id uint32) string {
	return [...]string{"<|begin|>", "<|start|>", "<|sep|>", "<|end|>", "<|media|>"}[id-specialFirst]
}

// tokens is a tokenised prompt; strs is kept only for those who asked.
type tokens struct {
	ids  []uint32
	strs []string
	keep bool
	args map[string]json.RawMessage // of the chat template
}

func (t *tokens) add(id uint32, s string) {
	t.ids = append(t.ids, id)
	if t.keep {
		t.strs = append(t.strs, s)
	}
}

func (t *tokens) special(id uint32) { t.add(id, special(id)) }

// text appends a text: a piece is a run of at most eight letters or digits, with
// the space before it; every other byte stands alone. So what is tokenised in
// parts that begin with a space gives the tokens of the whole, which is what lets
// the answer of one turn be found in the cache by the next.
func (t *tokens) text(s string) {
	for i := 0; i < len(s); {
		j := i
		if s[j] == ' ' && j+1 < len(s) && wordByte(s[j+1]) {
			j++
		}
		if !wordByte(s[j]) {
			t.add(uint32(s[i]), s[i:i+1])
			i++
			continue
		}
		from := j
		for j < len(s) && j-from < pieceBytes && wordByte(s[j]) {
			j++
		}
		t.add(pieceID(s[i:j]), s[i:j])
		i = j
	}
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func pieceID(s string) uint32 {
	if len(s) == 1 {
		return uint32(s[0])
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return firstPiece + h.Sum32()%(vocab-firstPiece)
}

// Tokenize returns the ids that every fake engine gives a plain text.
func Tokenize(text string) []uint32 {
	var t tokens
	t.text(text)
	return t.ids
}

// message is one entry of a chat.
type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// chat appends a conversation through the chat template:
//
//	<|begin|> (<|start|> role <|sep|> content <|end|>)…  [<|start|>assistant<|sep|>]
//
// The template's arguments and then the tools come first, each as a message of
// their own.
func (t *tokens) chat(messages []message, tools json.RawMessage, prompt bool) error {
	t.special(tokenBegin)
	if len(t.args) > 0 {
		args, err := json.Marshal(t.args)
		if err != nil {
			return fmt.Errorf("chat_template_kwargs: %w", err)
		}
		t.open("arguments")
		t.text(string(args))
		t.special(tokenEnd)
	}
	if len(tools) > 0 && string(tools) != "null" {
		t.open("tools")
		t.text(string(tools))
		t.special(tokenEnd)
	}
	for i, m := range messages {
		t.open(m.Role)
		if err := t.content(m.Content); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		if len(m.ToolCalls) > 0 && string(m.ToolCalls) != "null" {
			t.text(string(m.ToolCalls))
		}
		t.special(tokenEnd)
	}
	if prompt {
		t.open("assistant")
	}
	return nil
}

func (t *tokens) open(role string) {
	t.special(tokenStart)
	t.text(role)
	t.special(tokenSep)
}

// content appends the content of a message: a string, nothing, or a list of
// parts, of which those that are no text become one media token and the tokens
// of their own JSON.
func (t *tokens) content(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		t.text(s)
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return fmt.Errorf("content must be a string or a list of parts")
	}
	for _, p := range parts {
		var part struct{ Type, Text string }
		if err := json.Unmarshal(p, &part); err != nil {
			return fmt.Errorf("a part of the content must be an object with a type")
		}
		if part.Type == "text" || strings.HasSuffix(part.Type, "_text") {
			t.text(part.Text)
			continue
		}
		t.special(tokenMedia)
		t.text(string(p))
	}
	return nil
}

// word is the text of a generated token: a space and four letters, so that it
// is exactly one piece.
func word(n uint64) string {
	const first, vowel = "bdfgklmnprstvwyz", "aeiou"
	b := [5]byte{' '}
	for i := 1; i < 5; i += 2 {
		b[i], b[i+1] = first[n%16], vowel[(n>>4)%5]
		n >>= 7
	}
	return string(b[:])
}
