package event

// RouterEvents decodes Dynamo's events, one object or a list of them, into b,
// whose memory it reuses:
//
//	{"worker_id": u64, "storage_tier": "device|host_pinned|disk|external"?, "event":
//	  {"event_id": u64, "dp_rank": u32?, "data":
//	    {"stored": {"parent_hash": h|null, "start_position": n?, "blocks": [{"block_hash": h, "tokens_hash": u64}…]}}
//	  | {"removed": {"block_hashes": [h…]}} | "cleared"}}
//
// A missing dp_rank is rank 0. The error wraps ErrMessage and says that the
// input is no such event or list.
func (d *Decoder) RouterEvents(data []byte, b *Batch) error {
	b.Reset()
	if len(data) > MaxBatchBytes {
		return d.refuseMessage(b, Refusal{Field: "length", Value: int64(len(data)), Want: MaxBatchBytes})
	}
	s := scanner{b: data}
	if s.peek() == '{' {
		d.routerMember(&s, b)
		return nil
	}
	if s.peek() != '[' {
		s.miss("events")
		return d.refuseMessage(b, s.bad)
	}
	if !s.list("events", func() bool { return d.routerMember(&s, b) }) && s.bad.Reason != 0 {
		s.bad.Index = max(0, b.Seen-1)
		b.Refused.Add(s.bad)
	}
	return nil
}

// routerMember reads one event of a list and resumes behind a bad one; false
// says that there is no behind.
func (d *Decoder) routerMember(s *scanner, b *Batch) bool {
	at, m := s.i, b.mark()
	b.Seen++
	if d.routerEvent(s, b, b.add()) {
		return true
	}
	s.bad.Index = b.Seen - 1
	b.Refused.Add(s.bad)
	b.drop()
	b.rewind(m)
	cut := s.bad.Reason == CutShort
	s.i = at
	if s.skip() {
		return true
	}
	if cut {
		s.bad = Refusal{}
	}
	return false
}

func (d *Decoder) routerEvent(s *scanner, b *Batch, e *Event) bool {
	e.Rank = 0
	ok := s.object("event", func(key []byte) (ok bool) {
		switch string(key) {
		case "worker_id":
			e.Worker, _, ok = s.bits("worker_id")
		case "storage_tier":
			if ok = s.isNull(); !ok {
				ok = d.routerTier(s, e)
			}
		case "event":
			ok = d.routerInner(s, b, e)
		default:
			ok = s.skip()
		}
		return ok
	})
	switch {
	case !ok:
		return false
	case e.Kind == 0:
		return s.fail(MissingField, "data", "")
	case e.Kind != Stored:
		return true
	case b.repeats(e.Hashes):
		return s.fail(RepeatedHash, "blocks", "")
	}
	for _, h := range e.Hashes {
		if e.HasParent && h == e.Parent {
			return s.fail(SelfReference, "parent_hash", "")
		}
	}
	return true
}

func (d *Decoder) routerTier(s *scanner, e *Event) bool {
	word, ok := s.str("storage_tier")
	if !ok {
		return false
	}
	if e.Tier, ok = tierOf(word); !ok {
		return s.fail(UnknownMedium, "storage_tier", d.intern(word[:min(len(word), 40)]))
	}
	return true
}

func (d *Decoder) routerInner(s *scanner, b *Batch, e *Event) bool {
	return s.object("event", func(key []byte) (ok bool) {
		switch string(key) {
		case "event_id":
			e.ID, _, ok = s.bits("event_id")
		case "dp_rank":
			var n int64
			if ok = s.isNull(); !ok {
				n, ok = s.count("dp_rank", 1<<20)
				e.Rank = int32(n)
			}
		case "data":
			ok = d.routerData(s, b, e)
		default:
			ok = s.skip()
		}
		return ok
	})
}

func (d *Decoder) routerData(s *scanner, b *Batch, e *Event) bool {
	if s.peek() == '"' {
		word, ok := s.str("data")
		if ok && string(word) != "cleared" {
			return s.fail(UnknownTag, "data", d.intern(word[:min(len(word), 40)]))
		}
		e.Kind = Cleared
		return ok
	}
	return s.object("data", func(key []byte) bool {
		switch string(key) {
		case "stored":
			e.Kind = Stored
			return d.routerStored(s, b, e)
		case "removed":
			e.Kind = Removed
			return s.object("removed", func(key []byte) (ok bool) {
				if string(key) != "block_hashes" {
					return s.skip()
				}
				e.Hashes, ok = s.hashList("block_hashes", b)
				return ok
			})
		case "cleared":
			e.Kind = Cleared
			return s.skip()
		}
		return s.fail(UnknownTag, "data", d.intern(key[:min(len(key), 40)]))
	})
}

func (d *Decoder) routerStored(s *scanner, b *Batch, e *Event) bool {
	hashes, locals := len(b.hashes), len(b.locals)
	return s.object("stored", func(key []byte) (ok bool) {
		switch string(key) {
		case "parent_hash":
			if ok = s.isNull(); !ok {
				e.Parent, ok = s.hash("parent_hash")
				e.HasParent = ok
			}
		case "start_position":
			if ok = s.isNull(); !ok {
				e.Position, ok = s.count("start_position", 1<<31-1)
			}
		case "blocks":
			b.hashes, b.locals = b.hashes[:hashes], b.locals[:locals]
			ok = s.list("blocks", func() bool { return s.routerBlock(b, len(b.hashes)-hashes) })
			e.Hashes = b.hashes[hashes:len(b.hashes):len(b.hashes)]
			e.Local = b.locals[locals:len(b.locals):len(b.locals)]
		default:
			ok = s.skip()
		}
		return ok
	})
}

func (s *scanner) routerBlock(b *Batch, before int) bool {
	var h Hash
	var local uint64
	var hasHash, hasLocal bool
	ok := s.object("blocks", func(key []byte) (ok bool) {
		switch string(key) {
		case "block_hash":
			h, ok = s.hash("block_hash")
			hasHash = ok
		case "tokens_hash":
			local, _, ok = s.bits("tokens_hash")
			hasLocal = ok
		default:
			ok = s.skip()
		}
		return ok
	})
	switch {
	case !ok:
		return false
	case !hasHash:
		return s.fail(MissingField, "block_hash", "")
	case !hasLocal:
		return s.fail(MissingField, "tokens_hash", "")
	case before >= MaxHashes:
		return s.fail(TooLarge, "blocks", "too many blocks")
	}
	b.hashes, b.locals = append(b.hashes, h), append(b.locals, local)
	return true
}
