package enginetest

import (
	"adpdeck/router/model"
)

// object is a JSON object.
type object = map[string]any

// usage is what OpenAI's routes say of an answer's tokens.
func (a *answer) usage() object {
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	u := object{"prompt_tokens": len(a.prompt), "completion_tokens": a.sent, "total_tokens": len(a.prompt) + a.sent}
	if h := a.e.habits.Load(); !h.NoCachedTokens && (a.cached > 0 || !h.OmitZeroCached) {
		u["prompt_tokens_details"] = object{"cached_tokens": a.cached}
	}
	return u
}

// reason is why the answer ended.
func (a *answer) reason() string {
	if a.natural {
		return "stop"
	}
	return "length"
}

// chatShape is /v1/chat/completions.
type chatShape struct{}

func (chatShape) chunk(a *answer, delta object, reason any) object {
	c := object{
		"id": a.id, "object": "chat.completion.chunk", "created": a.created, "model": a.model,
		"choices": []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": reason}},
	}
	return a.withUsage(c)
}

// withUsage adds what stream_options ask to have in every chunk, and Dynamo's
// extension.
func (a *answer) withUsage(c object) object {
	switch {
	case a.body.StreamOptions.IncludeUsage && a.body.StreamOptions.ContinuousUsage:
		c["usage"] = a.usage()
	case a.body.StreamOptions.IncludeUsage:
		c["usage"] = nil
	}
	if x := a.e.extension(a.body.NVExt, a.work); x != nil {
		c["nvext"] = x
	}
	return c
}

func (s chatShape) open(a *answer) []frame {
	return []frame{{data: s.chunk(a, object{"role": "assistant", "content": ""}, nil)}}
}

func (s chatShape) delta(a *answer, text string) []frame {
	return []frame{{data: s.chunk(a, object{"content": text}, nil)}}
}

func (s chatShape) end(a *answer) []frame {
	return a.close(s.chunk(a, object{}, a.reason()), "chat.completion.chunk")
}

// close ends a stream: the last chunk, the usage if it was asked for, [DONE].
func (a *answer) close(last object, kind string) []frame {
	out := []frame{{data: last}}
	if a.body.StreamOptions.IncludeUsage {
		c := object{"id": a.id, "object": kind, "created": a.created, "model": a.model, "choices": []object{}, "usage": a.usage()}
		if x := a.e.extension(a.body.NVExt, a.work); x != nil {
			c["nvext"] = x
		}
		out = append(out, frame{data: c})
	}
	return append(out, frame{data: "[DONE]"})
}

func (s chatShape) whole(a *answer) any {
	return a.wholeOf("chat.completion", object{
		"index": 0, "message": object{"role": "assistant", "content": a.text}, "logprobs": nil, "finish_reason": a.reason(),
	})
}

func (a *answer) wholeOf(kind string, choice object) object {
	o := object{"id": a.id, "object": kind, "created": a.created, "model": a.model, "choices": []object{choice}, "usage": a.usage()}
	if x := a.e.extension(a.body.NVExt, a.work); x != nil {
		o["nvext"] = x
	}
	return o
}

// textShape is /v1/completions.
type textShape struct{}

func (textShape) chunk(a *answer, text string, reason any) object {
	return a.withUsage(object{
		"id": a.id, "object": "text_completion", "created": a.created, "model": a.model,
		"choices": []object{{"index": 0, "text": text, "logprobs": nil, "finish_reason": reason}},
	})
}

func (textShape) open(*answer) []frame { return nil }

func (s textShape) delta(a *answer, text string) []frame {
	return []frame{{data: s.chunk(a, text, nil)}}
}

func (s textShape) end(a *answer) []frame {
	return a.close(s.chunk(a, "", a.reason()), "text_completion")
}

func (s textShape) whole(a *answer) any {
	return a.wholeOf("text_completion", object{"index": 0, "text": a.text, "logprobs": nil, "finish_reason": a.reason()})
}

// responseShape is /v1/responses.
type responseShape struct{}

func (responseShape) response(a *answer, status string, output []object) object {
	o := object{
		"id": a.id, "object": "response", "created_at": a.created, "status": status, "model": a.model, "output": output,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "parallel_tool_calls": true,
		"temperature": 1, "top_p": 1, "tool_choice": "auto", "tools": []object{}, "usage": nil,
	}
	if status == "in_progress" {
		return o
	}
	u := a.usage()
	o["usage"] = object{"input_tokens": u["prompt_tokens"], "output_tokens": u["completion_tokens"], "total_tokens": u["total_tokens"], "output_tokens_details": object{"reasoning_tokens": 0}}
	if d, ok := u["prompt_tokens_details"]; ok {
		o["usage"].(object)["input_tokens_details"] = d
	}
	if status == "incomplete" {
		o["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	if x := a.e.extension(a.body.NVExt, a.work); x != nil {
		o["nvext"] = x
	}
	return o
}

func (responseShape) item(a *answer, status string) object {
	content := []object{}
	if status != "in_progress" {
		content = append(content, object{"type": "output_text", "text": a.text, "annotations": []object{}})
	}
	return object{"id": "msg_" + a.id, "type": "message", "role": "assistant", "status": status, "content": content}
}

func (s responseShape) open(a *answer) []frame {
	r := s.response(a, "in_progress", []object{})
	return []frame{
		{"response.created", object{"type": "response.created", "sequence_number": 0, "response": r}},
		{"response.in_progress", object{"type": "response.in_progress", "sequence_number": 1, "response": r}},
		{"response.output_item.added", object{"type": "response.output_item.added", "sequence_number": 2, "output_index": 0, "item": s.item(a, "in_progress")}},
		{"response.content_part.added", object{
			"type": "response.content_part.added", "sequence_number": 3, "item_id": "msg_" + a.id, "output_index": 0, "content_index": 0,
			"part": object{"type": "output_text", "text": "", "annotations": []object{}},
		}},
	}
}

func (responseShape) delta(a *answer, text string) []frame {
	return []frame{{"response.output_text.delta", object{
		"type": "response.output_text.delta", "sequence_number": 3 + a.sent, "item_id": "msg_" + a.id, "output_index": 0, "content_index": 0, "delta": text,
	}}}
}

func (s responseShape) end(a *answer) []frame {
	n := 4 + a.sent
	item, status := s.item(a, "completed"), "completed"
	if !a.natural {
		status = "incomplete"
	}
	return []frame{
		{"response.output_text.done", object{"type": "response.output_text.done", "sequence_number": n, "item_id": "msg_" + a.id, "output_index": 0, "content_index": 0, "text": a.text}},
		{"response.content_part.done", object{
			"type": "response.content_part.done", "sequence_number": n + 1, "item_id": "msg_" + a.id, "output_index": 0, "content_index": 0,
			"part": object{"type": "output_text", "text": a.text, "annotations": []object{}},
		}},
		{"response.output_item.done", object{"type": "response.output_item.done", "sequence_number": n + 2, "output_index": 0, "item": item}},
		{"response." + status, object{"type": "response." + status, "sequence_number": n + 3, "response": s.response(a, status, []object{item})}},
	}
}

func (s responseShape) whole(a *answer) any {
	status := "completed"
	if !a.natural {
		status = "incomplete"
	}
	return s.response(a, status, []object{s.item(a, "completed")})
}

// routeShapes are the shapes of the generating routes.
func routeShapes() map[model.Route]shape {
	return map[model.Route]shape{
		model.RouteChat: chatShape{}, model.RouteCompletions: textShape{}, model.RouteResponses: responseShape{},
		RouteGenerate: generateShape{}, RouteMessages: messageShape{},
	}
}
