package prompt

import (
	"encoding/binary"
	"math"

	"github.com/tidwall/gjson"

	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// form is a prompt as it stands in a body.
type form struct {
	// ids are the tokens where the client sent tokens, of the first prompt if there
	// are several.
	ids []uint32
	// text is the prompt's text: of a chat what its template would render, about,
	// so that a longer chat begins with it. Of several prompts it is the first.
	text []byte
	// messages are those of a chat, ends where each ends in text.
	messages []string
	ends     []int
	// plain is the prompt itself, where text is that and nothing else.
	plain bool
	// more counts the prompts beside the first, moreTokens their length, of texts
	// about.
	more, moreTokens int
	// beyond says that the engine makes more of it than its tokeniser would when
	// asked: pictures become tokens, documents and hints are rendered, a text is put
	// around a gap. What it tells would be taken for what is cached.
	beyond bool
	// truncated says that the engine may keep a part of it alone.
	truncated bool
}

// beyondTokeniser are the fields that change a prompt and that tokenisers are not
// asked with.
var beyondTokeniser = [...]string{"documents", "functions", "reasoning_effort", "mm_processor_kwargs", "suffix"}

// settings are the fields that change how a chat is rendered.
var settings = [...]string{
	"tools", "tool_choice", "documents", "chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message",
	"add_special_tokens", "reasoning_effort", "response_format", "functions",
}

// Separators that no text of a client's can forge in the raw JSON of a setting.
const (
	endMessage = 0x1e
	endField   = 0x1f
)

// formOf reads the prompt of a body.
func formOf(route model.Route, d *body.Doc) form {
	f := form{truncated: d.Get("truncate_prompt_tokens").Exists() || d.Get("truncation").Str == "auto"}
	for _, name := range beyondTokeniser {
		f.beyond = f.beyond || d.Get(name).Exists()
	}
	if d.Get("tool_choice").Str == "none" && d.Get("tools").Exists() {
		f.beyond = true // whether the tools are rendered then is the engine's choice
	}
	switch route {
	case model.RouteChat:
		f.settings(d)
		f.list(d.Get("messages"))
	case model.RouteResponses:
		// What came before is the engine's to know: the same words after something
		// else are another prompt.
		for _, name := range [...]string{"previous_response_id", "conversation", "prompt"} {
			f.setting(d, name)
		}
		f.settings(d)
		if in := d.Get("instructions"); in.Type == gjson.String {
			f.text = append(append(f.text, in.Str...), endMessage)
		}
		if in := d.Get("input"); in.Type == gjson.String {
			f.text = append(f.text, in.Str...)
		} else {
			f.list(in)
		}
		f.messages, f.ends = nil, nil // no tokeniser reads them
	case model.RouteCompletions:
		f.setting(d, "suffix")
		f.prompts(d.Get("prompt"))
	case model.RouteEmbeddings:
		f.prompts(d.Get("input"))
	}
	return f
}

func (f *form) settings(d *body.Doc) {
	for _, name := range settings {
		f.setting(d, name)
	}
}

func (f *form) setting(d *body.Doc, name string) {
	if v := d.Get(name); v.Exists() {
		f.text = append(append(append(append(f.text, name...), endField), v.Raw...), endMessage)
	}
}

// list reads a chat's messages.
func (f *form) list(v gjson.Result) {
	if !v.IsArray() {
		return
	}
	v.ForEach(func(_, m gjson.Result) bool {
		if m.IsObject() {
			m.ForEach(func(key, value gjson.Result) bool {
				f.field(key.Str, value)
				return true
			})
		} else {
			f.text = append(f.text, m.Raw...)
		}
		f.text = append(f.text, endMessage)
		f.messages, f.ends = append(f.messages, m.Raw), append(f.ends, len(f.text))
		return true
	})
}

// field adds one field of a message. Names of the usual ones are left out: a
// template renders them in a token or two.
func (f *form) field(name string, v gjson.Result) {
	switch {
	case name == "role":
		f.text = append(f.text, v.Str...)
	case name == "content" && v.Type == gjson.String:
		f.text = append(f.text, v.Str...)
	case name == "content" && v.IsArray():
		v.ForEach(func(_, part gjson.Result) bool {
			if text := part.Get("text"); text.Type == gjson.String {
				f.text = append(f.text, text.Str...)
			} else {
				// A picture's bytes are not its tokens: its sum stands for them.
				f.beyond = true
				f.text = binary.LittleEndian.AppendUint64(f.text, prefix.MediaHash(part.Raw))
			}
			f.text = append(f.text, endField)
			return true
		})
	default:
		f.text = append(append(append(f.text, name...), endField), v.Raw...)
	}
	f.text = append(f.text, endField)
}

// prompts reads a prompt of text, of tokens, or a list of either.
func (f *form) prompts(v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		f.text, f.plain = append(f.text, v.Str...), !f.beyond
		return
	case !v.IsArray():
		return
	}
	if ids, ok := tokens(v.Raw); ok {
		f.ids = ids
		return
	}
	n := 0
	v.ForEach(func(_, one gjson.Result) bool {
		if n++; n > 1 {
			f.more++
			if ids, ok := tokens(one.Raw); ok {
				f.moreTokens += len(ids)
			} else {
				f.moreTokens += guess(len(one.Raw))
			}
			return true
		}
		if one.Type == gjson.String {
			f.text, f.plain = append(f.text, one.Str...), !f.beyond
		} else {
			f.ids, _ = tokens(one.Raw)
		}
		return true
	})
}

// tokens reads a list of token ids; it reports false for any other list. raw is
// valid JSON.
func tokens(raw string) ([]uint32, bool) {
	if len(raw) < 2 || raw[0] != '[' {
		return nil, false
	}
	ids := make([]uint32, 0, len(raw)/5+1)
	n, digits := uint64(0), 0
	for i := 1; i < len(raw); i++ {
		switch c := raw[i]; {
		case c >= '0' && c <= '9':
			n = n*10 + uint64(c-'0')
			if digits++; n > math.MaxInt32 {
				return nil, false
			}
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		case c == ',' || c == ']':
			if digits == 0 {
				return nil, false // also the empty list: no prompt
			}
			ids = append(ids, uint32(n))
			n, digits = 0, 0
		default:
			return nil, false
		}
	}
	return ids, true
}

// pseudo packs text into what is hashed in place of tokens: four bytes each. The
// last one is filled up with zeros.
func pseudo(dst []uint32, text []byte) []uint32 {
	for len(text) >= 4 {
		dst = append(dst, binary.LittleEndian.Uint32(text))
		text = text[4:]
	}
	if len(text) > 0 {
		var last [4]byte
		copy(last[:], text)
		dst = append(dst, binary.LittleEndian.Uint32(last[:]))
	}
	return dst
}

// guess is how many tokens text has, about.
func guess(bytes int) int { return (bytes + 3) / 4 }

// safeCut is the last place in text, from its end at most 64 KiB back, where
// tokenisers begin anew: before a line's end that follows a letter. 0: none.
func safeCut(text []byte) int {
	for i := len(text) - 1; i > 0 && i > len(text)-(64<<10); i-- {
		if text[i] == '\n' && letter(text[i-1]) {
			return i
		}
	}
	return 0
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
