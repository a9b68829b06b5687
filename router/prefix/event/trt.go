package event

// trtDraft is a TensorRT-LLM event while its fields arrive.
type trtDraft struct {
	kind      string
	window    int64
	rank      int64
	group     int64
	id        uint64
	parent    Hash
	hasParent bool
	hashes    []Hash // removed, or the one updated
	hasHashes bool
	levels    []uint64
	moved     bool
	from, to  uint64
}

// TRT decodes one of TensorRT-LLM's JSON events into b, whose memory it reuses:
//
//	{"event_id": 7, "window_size": 4096, "attention_dp_rank": 3, "layer_group_id": 0, "data":
//	  {"type": "created", "num_blocks_per_cache_level": [n…]}
//	| {"type": "stored",  "parent_hash": h|null, "blocks": [{"block_hash", "tokens": [{"token_id"}…], "cache_level", "mm_keys"}…]}
//	| {"type": "removed", "block_hashes": [h…]}
//	| {"type": "updated", "block_hash": h, "cache_level": {"old_value", "new_value"}|null, "priority": …}}
//
// A stored event whose blocks differ in tier or length gives several events, a
// new one at each change. A changed priority alone is Informal, and so is a
// change of level of which one side is null.
func (d *Decoder) TRT(raw []byte, b *Batch) error {
	b.Reset()
	b.Seen = 1
	if len(raw) > MaxBatchBytes {
		return d.refuseMessage(b, Refusal{Field: "length", Value: int64(len(raw)), Want: MaxBatchBytes})
	}
	s := scanner{b: raw}
	f := trtDraft{rank: NoRank, group: NoGroup}
	if !d.trtEvent(&s, &f, b) || !d.trtFinish(&s, &f, b) {
		b.Events = b.Events[:0]
		b.rewind(mark{})
		b.Refused.Add(s.bad)
		return nil
	}
	for i := range b.Events {
		e := &b.Events[i]
		e.ID, e.Rank, e.Window, e.Group = f.id, int32(f.rank), int32(f.window), int32(f.group)
	}
	b.Rank = int32(f.rank)
	return nil
}

func (d *Decoder) trtEvent(s *scanner, f *trtDraft, b *Batch) bool {
	return s.object("event", func(key []byte) (ok bool) {
		switch string(key) {
		case "event_id":
			f.id, _, ok = s.bits("event_id")
		case "window_size":
			f.window, ok = s.count("window_size", 1<<31-1)
		case "attention_dp_rank":
			if ok = s.isNull(); !ok {
				f.rank, ok = s.count("attention_dp_rank", 1<<20)
			}
		case "layer_group_id":
			if ok = s.isNull(); !ok {
				f.group, ok = s.count("layer_group_id", 1<<16)
			}
		case "data":
			ok = d.trtData(s, f, b)
		default:
			ok = s.skip()
		}
		return ok
	})
}

func (d *Decoder) trtData(s *scanner, f *trtDraft, b *Batch) bool {
	return s.object("data", func(key []byte) (ok bool) {
		switch string(key) {
		case "type":
			var kind []byte
			kind, ok = s.str("type")
			f.kind = d.intern(kind[:min(len(kind), 40)])
		case "parent_hash":
			if ok = s.isNull(); !ok {
				f.parent, ok = s.hash("parent_hash")
				f.hasParent = ok
			}
		case "blocks":
			f.hasHashes = true
			b.Events = b.Events[:0]
			ok = d.trtBlocks(s, b)
		case "block_hashes":
			f.hashes, ok = s.hashList("block_hashes", b)
			f.hasHashes = ok
		case "block_hash":
			var h Hash
			h, ok = s.hash("block_hash")
			b.hashes = append(b.hashes, h)
			f.hashes, f.hasHashes = b.hashes[len(b.hashes)-1:], ok
		case "cache_level":
			if ok = s.isNull(); !ok {
				ok = s.diff(f)
			}
		case "num_blocks_per_cache_level":
			ok = s.levelList(f, b)
		default:
			ok = s.skip()
		}
		return ok
	})
}

func (s *scanner) hashList(field string, b *Batch) ([]Hash, bool) {
	from := len(b.hashes)
	ok := s.list(field, func() bool {
		h, ok := s.hash(field)
		if ok && len(b.hashes)-from >= MaxHashes {
			return s.fail(TooLarge, field, "too many blocks")
		}
		b.hashes = append(b.hashes, h)
		return ok
	})
	return b.hashes[from:len(b.hashes):len(b.hashes)], ok
}

func (s *scanner) levelList(f *trtDraft, b *Batch) bool {
	b.locals = b.locals[:0]
	ok := s.list("num_blocks_per_cache_level", func() bool {
		u, _, ok := s.bits("num_blocks_per_cache_level")
		if ok && len(b.locals) >= MaxLevels {
			return s.fail(TooLarge, "num_blocks_per_cache_level", "too many levels")
		}
		b.locals = append(b.locals, u)
		return ok
	})
	f.levels = b.locals
	return ok
}

func (s *scanner) diff(f *trtDraft) bool {
	seen := 0
	ok := s.object("cache_level", func(key []byte) (ok bool) {
		switch string(key) {
		case "new_value":
			if ok = s.isNull(); !ok {
				f.to, _, ok = s.bits("new_value")
				seen++
			}
		case "old_value":
			if ok = s.isNull(); !ok {
				f.from, _, ok = s.bits("old_value")
				seen++
			}
		default:
			ok = s.skip()
		}
		return ok
	})
	f.moved = ok && seen >= 2 && levelOf(f.from) != levelOf(f.to)
	return ok
}

// trtFinish makes events of the draft. Those of a stored one are there already
// and lack only how they hang together.
func (d *Decoder) trtFinish(s *scanner, f *trtDraft, b *Batch) bool {
	if f.kind != "stored" {
		b.Events = b.Events[:0]
	}
	switch {
	case f.kind == "":
		return s.fail(MissingField, "type", "")
	case f.kind == "created":
		e := b.add()
		e.Kind, e.Levels = Created, f.levels
		return true
	case f.kind != "stored" && f.kind != "removed" && f.kind != "updated":
		return s.fail(UnknownTag, "type", f.kind)
	case !f.hasHashes:
		return s.fail(MissingField, "block_hash", "")
	}
	switch f.kind {
	case "removed":
		e := b.add()
		e.Kind, e.Hashes, e.AnyTier = Removed, f.hashes, true
		return true
	case "updated":
		if !f.moved {
			return s.fail(Informal, "updated", "no block changed its tier")
		}
		e := b.add()
		e.Kind, e.Hashes, e.From, e.Tier = Moved, f.hashes[:1:1], levelOf(f.from), levelOf(f.to)
		return true
	}
	if len(b.Events) == 0 {
		return s.fail(MissingField, "blocks", "")
	}
	return d.trtChain(s, f, b)
}
