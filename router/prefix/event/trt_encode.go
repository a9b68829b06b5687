package event

import "strconv"

// AppendTRT appends e to p as TensorRT-LLM's serializer writes it, its id and
// rank from ID and Rank (NoRank: without attention DP).
func AppendTRT(p []byte, e *Event) []byte {
	p = append(p, `{"event_id":`...)
	p = strconv.AppendUint(p, e.ID, 10)
	p = append(p, `,"data":`...)
	p = appendTRTData(p, e)
	p = append(p, `,"window_size":`...)
	p = strconv.AppendInt(p, int64(e.Window), 10)
	if e.Group >= 0 {
		p = append(p, `,"layer_group_id":`...)
		p = strconv.AppendInt(p, int64(e.Group), 10)
	}
	if e.Rank >= 0 {
		p = append(p, `,"attention_dp_rank":`...)
		p = strconv.AppendInt(p, int64(e.Rank), 10)
	}
	return append(p, '}')
}

func appendTRTData(p []byte, e *Event) []byte {
	switch e.Kind {
	case Created:
		p = append(p, `{"type":"created","num_blocks_per_cache_level":`...)
		p = appendList(p, len(e.Levels), func(p []byte, i int) []byte { return strconv.AppendUint(p, e.Levels[i], 10) })
	case Stored:
		p = append(p, `{"type":"stored","parent_hash":`...)
		if e.HasParent {
			p = strconv.AppendUint(p, uint64(e.Parent), 10)
		} else {
			p = append(p, "null"...)
		}
		p = append(p, `,"blocks":`...)
		p = appendList(p, len(e.Hashes), func(p []byte, i int) []byte { return appendTRTBlock(p, e, i) })
	case Moved:
		p = append(p, `{"type":"updated","block_hash":`...)
		if len(e.Hashes) > 0 {
			p = strconv.AppendUint(p, uint64(e.Hashes[0]), 10)
		}
		p = append(p, `,"cache_level":{"type":"event_diff","new_value":`...)
		p = strconv.AppendUint(p, uint64(e.Tier), 10)
		p = append(p, `,"old_value":`...)
		p = strconv.AppendUint(p, uint64(e.From), 10)
		p = append(p, `},"priority":null`...)
	default:
		p = append(p, `{"type":"removed","block_hashes":`...)
		p = appendList(p, len(e.Hashes), func(p []byte, i int) []byte { return strconv.AppendUint(p, uint64(e.Hashes[i]), 10) })
	}
	return append(p, '}')
}

func appendTRTBlock(p []byte, e *Event, i int) []byte {
	p = append(p, `{"type":"stored_block","block_hash":`...)
	p = strconv.AppendUint(p, uint64(e.Hashes[i]), 10)
	p = append(p, `,"tokens":`...)
	from := min(i*int(e.BlockTokens), len(e.Tokens))
	tokens := e.Tokens[from:min(from+int(e.BlockTokens), len(e.Tokens))]
	p = appendList(p, len(tokens), func(p []byte, j int) []byte {
		p = append(p, `{"type":"unique_token","token_id":`...)
		p = strconv.AppendUint(p, uint64(tokens[j]), 10)
		return append(p, `,"token_extra_id":0}`...)
	})
	p = append(p, `,"cache_level":`...)
	p = strconv.AppendUint(p, uint64(e.Tier), 10)
	p = append(p, `,"priority":35,"mm_keys":[`...)
	first := true
	for _, m := range e.Media {
		if int(m.Block) != i {
			continue
		}
		if !first {
			p = append(p, ',')
		}
		first = false
		p = append(p, `{"type":"mm_key","hash":"`...)
		p = append(p, mediaKey(m.Hash)...)
		p = append(p, `","start_offset":`...)
		p = strconv.AppendInt(p, int64(m.Offset), 10)
		p = append(p, '}')
	}
	return append(p, `]}`...)
}

func appendList(p []byte, n int, element func(p []byte, i int) []byte) []byte {
	p = append(p, '[')
	for i := range n {
		if i > 0 {
			p = append(p, ',')
		}
		p = element(p, i)
	}
	return append(p, ']')
}
