package event

import (
	"bytes"

	"github.com/tinylib/msgp/msgp"
)

// saltPrefix marks an extra key that is a cache salt (Dynamo's mark).
const saltPrefix = "dynamo-cache-salt:"

// maxKeyDepth is how deep lists may nest inside one block's keys.
const maxKeyDepth = 4

// keysOf reads what else went into the blocks' hashes: media objects, and the
// salt where it travels as an extra key.
//
//	extra_keys      [per block: nil | [key…]]     key = string | bytes | number | [string, offset]
//	block_mm_infos  [per block: nil | {mm_objects: [{mm_hash, offsets}…]} | [entry…]]
//	mm_keys         the same, or [{hash, start_offset}…] for a block
//
// A plain string is the adapter's name (passed over), the marked or the known
// salt, or a media object if it has 64 hex digits. Any other string in a root
// block is taken for vLLM's cache_salt, which appears there and only there; two
// such contradict each other and the event is refused.
func (d *Decoder) keysOf(b *Batch, e *Event) bool {
	if d.d.extra == nil && d.d.media == nil {
		return true
	}
	from := len(b.media)
	rest := d.w.b
	ok := d.perBlock(d.d.extra, "extra_keys", b, e) && d.perBlock(d.d.media, "mm_keys", b, e)
	d.w.b = rest
	e.Media = b.media[from:len(b.media):len(b.media)]
	return ok
}

func (d *Decoder) perBlock(raw []byte, field string, b *Batch, e *Event) bool {
	if raw == nil {
		return true
	}
	d.w.b = raw
	n, ok := d.w.list(field)
	if !ok {
		return false
	}
	for i := range min(n, len(e.Hashes)) {
		if field == "extra_keys" {
			ok = d.extraOf(int32(i), b, e)
		} else {
			ok = d.mediaOf(int32(i), field, 0, b)
		}
		if !ok {
			return false
		}
	}
	return true
}

func (d *Decoder) extraOf(block int32, b *Batch, e *Event) bool {
	if d.w.isNil() {
		return true
	}
	if d.w.next() != msgp.ArrayType { // a single key without its list
		return d.extraKey(block, b, e)
	}
	n, ok := d.w.list("extra_keys")
	for i := 0; ok && i < n; i++ {
		ok = d.extraKey(block, b, e)
	}
	return ok
}

func (d *Decoder) extraKey(block int32, b *Batch, e *Event) bool {
	switch d.w.next() {
	case msgp.StrType:
		key, ok := d.w.text("extra_keys")
		return ok && d.stringKey(key, block, b, e)
	case msgp.IntType, msgp.UintType:
		u, _, ok := d.w.bits("extra_keys")
		if ok && (d.d.loraID == 0 || u != uint64(d.d.loraID)) {
			b.media = append(b.media, Media{Block: block, Offset: -1, Hash: u})
		}
		return ok
	}
	return d.mediaOf(block, "extra_keys", 0, b)
}

func (d *Decoder) stringKey(key []byte, block int32, b *Batch, e *Event) bool {
	if len(d.d.lora) > 0 && bytes.Equal(key, d.d.lora) {
		return true
	}
	salt, marked := bytes.CutPrefix(key, []byte(saltPrefix))
	root := block == 0 && !e.HasParent
	switch {
	case marked:
	case e.Salt != "" && string(key) == e.Salt:
		return true
	case root && !(len(key) == 64 && isHex(key)):
		salt = key
	default:
		b.media = append(b.media, Media{Block: block, Offset: -1, Hash: MediaHash(key)})
		return true
	}
	if len(salt) > MaxNameBytes {
		d.w.bad = Refusal{Reason: TooLarge, Field: "cache_salt", Value: int64(len(salt)), Want: MaxNameBytes}
		return false
	}
	if e.Salt != "" && string(salt) != e.Salt {
		return d.w.fail(AmbiguousNamespace, "cache_salt", "two different salts")
	}
	e.Salt = d.intern(salt)
	return true
}

// mediaOf reads one entry of media keys: an identity, a pair of identity and
// offset, a map, or a list of entries.
func (d *Decoder) mediaOf(block int32, field string, depth int, b *Batch) bool {
	if depth > maxKeyDepth {
		return d.w.fail(BadField, field, "lists nested too deep")
	}
	switch d.w.next() {
	case msgp.NilType:
		return d.w.isNil()
	case msgp.StrType, msgp.BinType, msgp.IntType, msgp.UintType:
		h, ok := d.identity(field)
		b.media = append(b.media, Media{Block: block, Offset: -1, Hash: h})
		return ok
	case msgp.MapType:
		return d.mediaMap(block, field, depth, b)
	}
	n, ok := d.w.list(field)
	if !ok {
		return false
	}
	if first := d.w.next(); n == 2 && (first == msgp.StrType || first == msgp.BinType) {
		return d.mediaPair(block, field, b)
	}
	for range n {
		if !d.mediaOf(block, field, depth+1, b) {
			return false
		}
	}
	return true
}

// mediaPair reads (identity, offset), or two identities.
func (d *Decoder) mediaPair(block int32, field string, b *Batch) bool {
	h, ok := d.identity(field)
	if !ok {
		return false
	}
	m := Media{Block: block, Offset: -1, Hash: h}
	if isNumber(d.w.next()) {
		u, _, ok := d.w.bits(field)
		m.Offset = int32(int64(u)) // vLLM's may be negative: the object began in an earlier block
		b.media = append(b.media, m)
		return ok
	}
	b.media = append(b.media, m)
	return d.mediaOf(block, field, maxKeyDepth, b)
}

func (d *Decoder) mediaMap(block int32, field string, depth int, b *Batch) bool {
	n, ok := d.w.dict(field)
	if !ok {
		return false
	}
	m, found := Media{Block: block, Offset: -1}, false
	for range n {
		key, ok := d.w.text(field)
		if !ok {
			return false
		}
		switch string(key) {
		case "mm_hash", "hash", "identifier":
			m.Hash, ok = d.identity(field)
			found = ok
		case "start_offset":
			var u uint64
			u, _, ok = d.w.bits(field)
			m.Offset = int32(int64(u))
		case "mm_objects":
			ok = d.mediaOf(block, field, depth+1, b)
		default:
			ok = d.w.skip()
		}
		if !ok {
			return false
		}
	}
	if found {
		b.media = append(b.media, m)
	}
	return true
}

func (d *Decoder) identity(field string) (uint64, bool) {
	if isNumber(d.w.next()) {
		u, _, ok := d.w.bits(field)
		return u, ok
	}
	s, ok := d.w.text(field)
	return MediaHash(s), ok
}
