package enginetest

// generateShape is SGLang's own /generate: every event of a stream repeats the
// text so far.
type generateShape struct{}

func (generateShape) object(a *answer, reason any) object {
	u := a.usage()
	meta := object{"id": a.id, "prompt_tokens": u["prompt_tokens"], "completion_tokens": u["completion_tokens"], "finish_reason": reason}
	if d, ok := u["prompt_tokens_details"].(object); ok {
		meta["cached_tokens"] = d["cached_tokens"]
	}
	return object{"text": a.text, "output_ids": a.ids, "meta_info": meta}
}

func (generateShape) open(*answer) []frame { return nil }

func (s generateShape) delta(a *answer, _ string) []frame { return []frame{{data: s.object(a, nil)}} }

func (s generateShape) end(a *answer) []frame {
	return []frame{{data: s.whole(a)}, {data: "[DONE]"}}
}

func (s generateShape) whole(a *answer) any {
	return s.object(a, object{"type": a.reason(), "length": a.sent})
}

// messageShape is /v1/messages, Anthropic's form.
type messageShape struct{}

func (messageShape) reason(a *answer) string {
	if a.natural {
		return "end_turn"
	}
	return "max_tokens"
}

func (messageShape) usage(a *answer) object {
	u := a.usage()
	o := object{"input_tokens": u["prompt_tokens"], "output_tokens": u["completion_tokens"]}
	if d, ok := u["prompt_tokens_details"].(object); ok {
		o["cache_read_input_tokens"] = d["cached_tokens"]
	}
	return o
}

func (s messageShape) message(a *answer, content []object, reason any) object {
	return object{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "usage": s.usage(a),
	}
}

func (s messageShape) open(a *answer) []frame {
	return []frame{
		{"message_start", object{"type": "message_start", "message": s.message(a, []object{}, nil)}},
		{"content_block_start", object{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}}},
	}
}

func (messageShape) delta(_ *answer, text string) []frame {
	return []frame{{"content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": text}}}}
}

func (s messageShape) end(a *answer) []frame {
	return []frame{
		{"content_block_stop", object{"type": "content_block_stop", "index": 0}},
		{"message_delta", object{"type": "message_delta", "delta": object{"stop_reason": s.reason(a), "stop_sequence": nil}, "usage": s.usage(a)}},
		{"message_stop", object{"type": "message_stop"}},
	}
}

func (s messageShape) whole(a *answer) any {
	return s.message(a, []object{{"type": "text", "text": a.text}}, s.reason(a))
}
