package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// errPieces says that a prompt cannot be tokenised in pieces.
var errPieces = errors.New("prompt does not divide")

// whole asks for the tokens of the whole prompt.
func (j *job) whole(ctx context.Context) ([]uint32, error) {
	if j.form.plain {
		return j.text(ctx, j.form.text, true)
	}
	return j.ask(ctx, j.source.Doc.Bytes())
}

// pieces continues the tokens of the first at bytes of text with those of the
// rest, and says where the next turn may go on. A chat without a known beginning
// is its whole, asked for unless given.
func (j *job) pieces(ctx context.Context, m *modelState, known []uint32, at int, whole []uint32) ([]uint32, head, error) {
	if j.form.plain {
		return j.textPieces(ctx, known, at)
	}
	return j.chatPieces(ctx, m, known, at, whole)
}

// textPieces divides a text at its last safe cut.
func (j *job) textPieces(ctx context.Context, known []uint32, at int) ([]uint32, head, error) {
	text := j.form.text
	cut := max(safeCut(text), at)
	if cut == 0 {
		return nil, head{}, errPieces
	}
	tokens := slices.Clone(known)
	if cut > at {
		more, err := j.text(ctx, text[at:cut], at == 0)
		if err != nil {
			return nil, head{}, err
		}
		tokens = append(tokens, more...)
	}
	end := len(tokens)
	if cut < len(text) {
		more, err := j.text(ctx, text[cut:], false)
		if err != nil {
			return nil, head{}, err
		}
		tokens = append(tokens, more...)
	}
	return tokens, j.r.memory.headOf(text, cut, end), nil
}

// text asks for the tokens of plain text; first says that it begins the prompt.
func (j *job) text(ctx context.Context, text []byte, first bool) ([]uint32, error) {
	special := first
	if v := j.source.Doc.Get("add_special_tokens"); v.Type == gjson.False {
		special = false
	}
	body, err := json.Marshal(struct {
		Model   string `json:"model,omitempty"`
		Prompt  string `json:"prompt"`
		Special bool   `json:"add_special_tokens"`
	}{j.source.Conv.Model, string(text), special})
	if err != nil {
		return nil, err
	}
	return j.askAs(ctx, model.RouteCompletions, body)
}

// opening is the message that stands for a chat's known beginning while the rest
// is tokenised: a user's, since an answer follows as a rule.
const opening = `{"role":"user","content":"."}`

// chatPieces asks for the messages that are new behind an opening, and takes the
// opening off again.
func (j *job) chatPieces(ctx context.Context, m *modelState, known []uint32, at int, whole []uint32) (tokens []uint32, hd head, err error) {
	f := &j.form
	if !j.divides() {
		return nil, hd, errPieces
	}
	b, err := j.baseOf(ctx, m)
	if err != nil {
		if errors.Is(err, errPieces) || errors.Is(err, ErrRefused) {
			m.compared(false) // this template takes no opening
		}
		return nil, hd, err
	}
	if at == 0 {
		if whole == nil {
			if whole, err = j.whole(ctx); err != nil {
				return nil, hd, err
			}
		}
		tokens = whole
	} else {
		i, ok := slices.BinarySearch(f.ends, at)
		if !ok {
			return nil, hd, errPieces
		}
		tail := b.prompt
		if fresh := f.messages[i+1:]; len(fresh) > 0 {
			if tail, err = j.ask(ctx, j.with("["+opening+","+strings.Join(fresh, ",")+"]", true)); err != nil {
				return nil, hd, err
			}
			if len(tail) < len(b.opening) || !slices.Equal(tail[:len(b.opening)], b.opening) {
				m.compared(false)
				return nil, hd, errPieces
			}
			tail = tail[len(b.opening):]
		}
		tokens = append(slices.Clone(known), tail...)
	}
	end := len(tokens) - len(b.prompt)
	if end < 0 || !slices.Equal(tokens[end:], b.prompt) {
		return tokens, head{}, nil // how the answer is asked for depends on the chat
	}
	return tokens, j.r.memory.headOf(f.text, len(f.text), end), nil
}

// divides reports that the chat ends where an answer is asked for, as it usually
// is.
func (j *job) divides() bool {
	f := &j.form
	if len(f.messages) == 0 || j.source.Doc.Get("add_generation_prompt").Exists() || j.source.Doc.Get("continue_final_message").Exists() {
		return false
	}
	switch gjson.Get(f.messages[len(f.messages)-1], "role").Str {
	case "user", "tool":
		return true
	}
	return false
}

// base is what a template makes of the opening alone: its tokens, and those that
// ask for the answer.
type base struct{ opening, prompt []uint32 }

// baseOf asks for it once.
func (j *job) baseOf(ctx context.Context, m *modelState) (base, error) {
	m.mu.Lock()
	known := m.base
	m.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	without, err := j.ask(ctx, j.with("["+opening+"]", false))
	if err != nil {
		return base{}, err
	}
	with, err := j.ask(ctx, j.with("["+opening+"]", true))
	if err != nil {
		return base{}, err
	}
	if len(with) < len(without) || !slices.Equal(with[:len(without)], without) {
		return base{}, errPieces
	}
	b := base{opening: without, prompt: with[len(without):]}
	m.mu.Lock()
	m.base = &b
	m.mu.Unlock()
	return b, nil
}

// with is the body with other messages and without tools, which belong to the
// beginning; answer says whether the answer is asked for.
func (j *job) with(messages string, answer bool) []byte {
	fields := []steer.Field{{Name: "messages", JSON: []byte(messages)}, {Name: "tools"}, {Name: "functions"}, {Name: "documents"}, {Name: "tool_choice"}}
	if !answer {
		fields = append(fields, steer.Field{Name: "add_generation_prompt", JSON: []byte("false")})
	}
	// The body was read as an object, which is all that could be refused.
	body, _ := steer.Edit(j.source.Doc.Bytes(), fields)
	return body
}

func (j *job) ask(ctx context.Context, body []byte) ([]uint32, error) {
	return j.askAs(ctx, j.source.Route, body)
}

func (j *job) askAs(ctx context.Context, route model.Route, body []byte) ([]uint32, error) {
	return j.r.opt.Tokenize(ctx, j.source.Conv.Model, route, body)
}
