package event

import "github.com/tinylib/msgp/msgp"

// The tags of msgpack events.
const (
	tagStored  = "BlockStored"
	tagRemoved = "BlockRemoved"
	tagCleared = "AllBlocksCleared"
)

// mapping reads an event of map form: fields by name, in any order, with any
// others between them. The tag may come last.
func (d *Decoder) mapping(b *Batch) bool {
	n, ok := d.w.dict("event")
	if !ok {
		return false
	}
	tagged := false
	for range n {
		var key []byte
		if t := d.w.next(); t != msgp.StrType && t != msgp.BinType && t != msgp.InvalidType {
			if !d.drain(2) { // a field whose key is no name
				return false
			}
			continue
		}
		if key, ok = d.w.text("a field's name"); !ok {
			return false
		}
		if string(key) == "type" {
			tagged = true
			ok = d.readTag()
		} else {
			ok = d.field(b, key)
		}
		if !ok {
			return false
		}
	}
	if !tagged {
		return d.w.fail(MissingField, "type", "")
	}
	return true
}

func (d *Decoder) readTag() bool {
	tag, ok := d.w.text("type")
	if !ok {
		return false
	}
	switch string(tag) {
	case tagStored:
		d.d.kind = Stored
	case tagRemoved:
		d.d.kind = Removed
	case tagCleared:
		d.d.kind = Cleared
	default:
		return d.unknownTag(tag)
	}
	return true
}

// field reads one named field. Those of other projects' dialects are passed
// over: session_id, ownership, remaining_copy_counts, …
func (d *Decoder) field(b *Batch, key []byte) bool {
	switch string(key) {
	case "block_hashes":
		return d.readHashes(b)
	case "parent_block_hash":
		return d.readParent()
	case fieldTokens:
		return d.readTokens(b)
	case "block_size":
		return d.readBlockSize()
	case "lora_id":
		return d.readLoRAID()
	case "lora_name":
		return d.readNameOrSalt()
	case "medium":
		return d.readMedium()
	case "extra_keys":
		return d.readRaw(&d.d.extra)
	case "block_mm_infos", "mm_keys":
		return d.readRaw(&d.d.media)
	case "group_idx":
		return d.w.isNil() || d.readGroup()
	case "kv_cache_spec_sliding_window":
		return d.w.isNil() || d.readWindow()
	}
	var ok bool
	switch string(key) {
	case "kv_cache_spec_kind":
		d.d.spec, ok = d.w.name("kv_cache_spec_kind")
	case "locality":
		d.d.locality, ok = d.w.name("locality")
	case "cache_salt":
		d.d.salt, ok = d.w.name("cache_salt")
	default:
		ok = d.w.skip()
	}
	return ok
}
