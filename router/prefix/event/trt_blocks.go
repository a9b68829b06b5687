package event

// trtBlock is one block of a stored event while its fields arrive.
type trtBlock struct {
	hash       Hash
	found      bool
	level      uint64
	tokens     int
	lora, salt string
}

// trtBlocks reads a stored event's blocks into one event for each run of equal
// tier and length.
func (d *Decoder) trtBlocks(s *scanner, b *Batch) bool {
	firstHash := len(b.hashes)
	var e *Event
	var tokensFrom, hashFrom, mediaFrom int
	return s.list("blocks", func() bool {
		tokens, media := len(b.tokens), len(b.media)
		var k trtBlock
		if !d.trtBlock(s, &k, b) {
			return false
		}
		switch {
		case !k.found:
			return s.fail(MissingField, "block_hash", "")
		case len(b.hashes)-firstHash >= MaxHashes:
			return s.fail(TooLarge, "blocks", "too many blocks")
		case k.tokens > MaxBlockTokens:
			return s.fail(TooLarge, "tokens", "too many tokens in a block")
		}
		b.hashes = append(b.hashes, k.hash)
		if e == nil || e.Tier != levelOf(k.level) || int(e.BlockTokens) != k.tokens {
			e = b.add()
			e.Kind, e.Tier, e.BlockTokens = Stored, levelOf(k.level), int32(k.tokens)
			e.LoRA, e.Salt = k.lora, k.salt
			tokensFrom, hashFrom, mediaFrom = tokens, len(b.hashes)-1, media
		} else if e.LoRA != k.lora || e.Salt != k.salt {
			return s.fail(AmbiguousNamespace, "blocks", "two adapters or salts in one chain")
		}
		for i := media; i < len(b.media); i++ {
			b.media[i].Block = int32(len(b.hashes) - 1 - hashFrom)
		}
		e.Hashes = b.hashes[hashFrom:len(b.hashes):len(b.hashes)]
		e.Tokens = b.tokens[tokensFrom:len(b.tokens):len(b.tokens)]
		e.Media = b.media[mediaFrom:len(b.media):len(b.media)]
		return true
	})
}

func (d *Decoder) trtBlock(s *scanner, k *trtBlock, b *Batch) bool {
	from := len(b.tokens)
	ok := s.object("block", func(key []byte) (ok bool) {
		switch string(key) {
		case "block_hash":
			k.hash, ok = s.hash("block_hash")
			k.found = ok
		case "tokens":
			b.tokens = b.tokens[:from]
			ok = s.list("tokens", func() bool { return d.trtToken(s, b) })
		case "cache_level":
			k.level, _, ok = s.bits("cache_level")
		case "mm_keys":
			ok = s.isNull() || s.list("mm_keys", func() bool { return s.mediaKey(b) })
		case "lora_id", "lora_name":
			k.lora, ok = d.nameOf(s, string(key))
		case "cache_salt", "cache_salt_id":
			k.salt, ok = d.nameOf(s, string(key))
		default:
			ok = s.skip()
		}
		return ok
	})
	k.tokens = len(b.tokens) - from
	return ok
}

// trtToken reads a token: an object, or the id alone. An extra id other than 0
// (a prompt-tuning table, a picture's hash) makes the block another one, as
// media does.
func (d *Decoder) trtToken(s *scanner, b *Batch) bool {
	var id, extra uint64
	found := false
	if c := s.peek(); c >= '0' && c <= '9' {
		n, ok := s.count("token_id", 1<<32-1)
		b.tokens = append(b.tokens, uint32(n))
		return ok
	}
	ok := s.object("tokens", func(key []byte) (ok bool) {
		switch string(key) {
		case "token_id":
			var n int64
			n, ok = s.count("token_id", 1<<32-1)
			id, found = uint64(n), ok
		case "token_extra_id":
			if ok = s.isNull(); !ok {
				extra, _, ok = s.bits("token_extra_id")
			}
		default:
			ok = s.skip()
		}
		return ok
	})
	if ok && !found {
		return s.fail(MissingField, "token_id", "")
	}
	if n := len(b.media); extra != 0 && (n == 0 || b.media[n-1].Hash != extra) {
		b.media = append(b.media, Media{Offset: -1, Hash: extra})
	}
	b.tokens = append(b.tokens, uint32(id))
	return ok
}

func (s *scanner) mediaKey(b *Batch) bool {
	m, found := Media{Offset: -1}, false
	ok := s.object("mm_keys", func(key []byte) (ok bool) {
		switch string(key) {
		case "hash":
			var text []byte
			if s.peek() == '"' {
				text, ok = s.str("hash")
				m.Hash = MediaHash(text)
			} else {
				m.Hash, _, ok = s.bits("hash")
			}
			found = ok
		case "start_offset":
			var u uint64
			u, _, ok = s.bits("start_offset")
			m.Offset = int32(int64(u))
		default:
			ok = s.skip()
		}
		return ok
	})
	if ok && !found {
		return s.fail(MissingField, "mm_keys", "")
	}
	b.media = append(b.media, m)
	return ok
}

// nameOf reads an adapter or a salt, by name or by number; 0 and null are none.
func (d *Decoder) nameOf(s *scanner, field string) (string, bool) {
	if s.isNull() {
		return "", true
	}
	if s.peek() != '"' {
		n, ok := s.count(field, 1<<63-1)
		if !ok || n == 0 {
			return "", ok
		}
		return d.numbered(n), true
	}
	text, ok := s.str(field)
	if ok && len(text) > MaxNameBytes {
		s.bad = Refusal{Reason: TooLarge, Field: field, Value: int64(len(text)), Want: MaxNameBytes}
		return "", false
	}
	return d.intern(text), ok
}

// trtChain links a stored event's runs: each continues the one before it.
func (d *Decoder) trtChain(s *scanner, f *trtDraft, b *Batch) bool {
	parent, hasParent := f.parent, f.hasParent
	from := len(b.hashes)
	for i := range b.Events {
		e := &b.Events[i]
		b.hashes = append(b.hashes, e.Hashes...) // all of them, to look for repeats
		e.Parent, e.HasParent = parent, hasParent
		parent, hasParent = e.Hashes[len(e.Hashes)-1], true
	}
	all := b.hashes[from:]
	for _, h := range all {
		if f.hasParent && h == f.parent {
			return s.fail(SelfReference, "parent_hash", "")
		}
	}
	if b.repeats(all) {
		return s.fail(RepeatedHash, "blocks", "")
	}
	return true
}
