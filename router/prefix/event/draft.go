package event

import (
	"bytes"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// draft is a msgpack event while its fields arrive, in whatever order. Byte
// slices point into the payload.
type draft struct {
	kind      Kind
	hasHashes bool
	hasTokens bool
	hasSize   bool
	hasParent bool
	bigram    bool

	parent Hash
	hashes []Hash
	tokens []uint32
	size   int64
	loraID int64
	group  int64
	window int64

	medium, lora, salt, spec, locality []byte
	extra, media                       []byte // raw lists, read when all else is known
}

func (d *Decoder) readHashes(b *Batch) (ok bool) {
	d.d.hashes, ok = d.w.hashes(b, "block_hashes")
	d.d.hasHashes = ok
	return ok
}

func (d *Decoder) readParent() (ok bool) {
	if d.w.isNil() {
		d.d.hasParent = false
		return true
	}
	d.d.parent, ok = d.w.hash("parent_block_hash")
	d.d.hasParent = ok
	return ok
}

func (d *Decoder) readTokens(b *Batch) (ok bool) {
	if d.w.isNil() {
		return true
	}
	d.d.tokens, d.d.bigram, ok = d.w.tokens(b)
	d.d.hasTokens = ok
	return ok
}

func (d *Decoder) readBlockSize() (ok bool) {
	if d.w.isNil() {
		return true
	}
	d.d.size, ok = d.w.count("block_size", MaxBlockTokens)
	d.d.hasSize = ok
	return ok
}

// readLoRAID reads the deprecated number. It counts only when no name comes.
func (d *Decoder) readLoRAID() (ok bool) {
	if t := d.w.next(); t != msgp.IntType && t != msgp.UintType {
		return d.w.skip()
	}
	u, negative, ok := d.w.bits("lora_id")
	if ok && !negative && u <= 1<<31 {
		d.d.loraID = int64(u)
	}
	return ok
}

func (d *Decoder) readMedium() (ok bool) {
	d.d.medium, ok = d.w.name("medium")
	return ok
}

func (d *Decoder) readGroup() (ok bool) {
	d.d.group, ok = d.w.count("group_idx", 1<<16)
	return ok
}

func (d *Decoder) readWindow() (ok bool) {
	d.d.window, ok = d.w.count("kv_cache_spec_sliding_window", 1<<31-1)
	return ok
}

// readRaw keeps a value for later; nil is nothing.
func (d *Decoder) readRaw(to *[]byte) bool {
	if d.w.isNil() {
		return true
	}
	at := d.w.b
	if !d.w.skip() {
		return false
	}
	*to = at[:len(at)-len(d.w.b)]
	return true
}

// readNameOrSalt reads the adapter's name, or the map that SGLang once sent in
// its place.
func (d *Decoder) readNameOrSalt() (ok bool) {
	if d.w.next() != msgp.MapType {
		d.d.lora, ok = d.w.name("lora_name")
		return ok
	}
	n, ok := d.w.dict("metadata")
	for i := 0; ok && i < n; i++ {
		var key []byte
		if key, ok = d.w.text("metadata"); !ok {
			break
		}
		switch string(key) {
		case "cache_salt":
			d.d.salt, ok = d.w.name("cache_salt")
		case "lora_name":
			d.d.lora, ok = d.w.name("lora_name")
		default:
			ok = d.w.skip()
		}
	}
	return ok
}

// finish checks the draft as a whole and makes it an event.
func (d *Decoder) finish(b *Batch, e *Event) bool {
	f := &d.d
	e.Kind = f.kind
	if f.kind == Cleared {
		return true
	}
	if !f.hasHashes {
		return d.w.fail(MissingField, "block_hashes", "")
	}
	var ok bool
	if e.Tier, ok = tierOf(f.medium); !ok {
		return d.w.fail(UnknownMedium, "medium", d.intern(f.medium))
	}
	if f.locality != nil && !bytes.EqualFold(f.locality, []byte("local")) {
		return d.w.fail(Remote, "locality", d.intern(f.locality))
	}
	e.Hashes, e.Group, e.Window, e.Spec = f.hashes, int32(f.group), int32(f.window), specOf(f.spec)
	if f.kind == Removed {
		return true
	}
	return d.finishStored(b, e)
}

func (d *Decoder) finishStored(b *Batch, e *Event) bool {
	f := &d.d
	e.HasParent, e.Parent = f.hasParent, f.parent
	e.Tokens, e.Bigram, e.BlockTokens = f.tokens, f.bigram, int32(f.size)
	if !d.checkChain(b, e) || !d.checkTokens(e) {
		return false
	}
	e.LoRA, e.Salt = d.intern(f.lora), d.intern(f.salt)
	if e.LoRA == "" && f.loraID > 0 {
		e.LoRA = d.numbered(f.loraID)
	}
	return d.keysOf(b, e)
}

// numbered names an adapter of which only the number is known, so that its
// blocks are never taken for the base model's.
func (d *Decoder) numbered(id int64) string {
	var buf [24]byte
	return d.intern(strconv.AppendInt(append(buf[:0], '#'), id, 10))
}

// checkChain refuses a chain that bites its own tail.
func (d *Decoder) checkChain(b *Batch, e *Event) bool {
	if e.HasParent {
		for _, h := range e.Hashes {
			if h == e.Parent {
				return d.w.fail(SelfReference, "parent_block_hash", "")
			}
		}
	}
	if b.repeats(e.Hashes) {
		return d.w.fail(RepeatedHash, "block_hashes", "")
	}
	return true
}

// checkTokens compares the number of tokens with the blocks they should fill,
// and cuts off what is beyond them. Stores of offloading tiers bring no tokens.
func (d *Decoder) checkTokens(e *Event) bool {
	if len(e.Tokens) == 0 {
		if e.Tier == Device && len(e.Hashes) > 0 {
			return d.w.fail(MissingField, fieldTokens, "")
		}
		return true
	}
	if e.BlockTokens <= 0 {
		return d.w.fail(MissingField, "block_size", "")
	}
	want := len(e.Hashes) * int(e.BlockTokens)
	if e.Bigram {
		want++
	}
	if len(e.Tokens) < want {
		d.w.bad = Refusal{Reason: TokenCount, Field: fieldTokens, Value: int64(len(e.Tokens)), Want: int64(want)}
		return false
	}
	e.Tokens = e.Tokens[:want:want]
	return true
}
