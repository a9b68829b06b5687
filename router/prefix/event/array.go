package event

import "github.com/tinylib/msgp/msgp"

// array reads an event of positional form. Every length that a release ever
// sent is legal, since trailing fields may be missing:
//
//	BlockStored       1 block_hashes   2 parent_block_hash   3 token_ids   4 block_size   5 lora_id
//	                  6 medium   7 lora_name, or SGLang's {cache_salt}   8 extra_keys   9… tail
//	BlockRemoved      1 block_hashes   2 medium   3… tail
//	AllBlocksCleared
func (d *Decoder) array(b *Batch) bool {
	n, ok := d.w.list("event")
	if !ok {
		return false
	}
	if n == 0 {
		return d.w.fail(NotAnEvent, "", "an empty list")
	}
	tag, ok := d.w.text("the event's tag")
	if !ok {
		return false
	}
	fields := n - 1
	switch string(tag) {
	case tagStored:
		d.d.kind = Stored
		return d.storedFields(b, fields)
	case tagRemoved:
		d.d.kind = Removed
		return d.removedFields(b, fields)
	case tagCleared:
		d.d.kind = Cleared
		return d.drain(fields)
	}
	return d.unknownTag(tag)
}

func (d *Decoder) unknownTag(tag []byte) bool {
	if len(tag) > 40 {
		tag = tag[:40]
	}
	return d.w.fail(UnknownTag, "type", d.intern(tag))
}

// drain passes over n values.
func (d *Decoder) drain(n int) bool {
	for range n {
		if !d.w.skip() {
			return false
		}
	}
	return true
}

func (d *Decoder) storedFields(b *Batch, fields int) bool {
	if fields < 4 {
		return d.w.fail(MissingField, "block_size", "")
	}
	for i := 1; i <= min(fields, 8); i++ {
		var ok bool
		switch i {
		case 1:
			ok = d.readHashes(b)
		case 2:
			ok = d.readParent()
		case 3:
			ok = d.readTokens(b)
		case 4:
			ok = d.readBlockSize()
		case 5:
			ok = d.readLoRAID()
		case 6:
			ok = d.readMedium()
		case 7:
			ok = d.readNameOrSalt()
		case 8:
			ok = d.readRaw(&d.d.extra)
		}
		if !ok {
			return false
		}
	}
	return d.tail(fields - 8)
}

func (d *Decoder) removedFields(b *Batch, fields int) bool {
	if fields < 1 {
		return d.w.fail(MissingField, "block_hashes", "")
	}
	if !d.readHashes(b) {
		return false
	}
	if fields >= 2 && !d.readMedium() {
		return false
	}
	return d.tail(fields - 2)
}

// tail reads what newer engines append. Its fields are told apart by type,
// since releases left some out: the first whole number is the group, the second
// the window; a string is the attention kind, or the locality; a list holds
// media. A nil in first place is the group's, unless a number follows it.
func (d *Decoder) tail(n int) bool {
	group, window := false, false
	for i := range n {
		ok := true
		switch d.w.next() {
		case msgp.NilType:
			d.w.isNil()
			if i == 0 && !isNumber(d.w.next()) {
				group = true
			}
		case msgp.IntType, msgp.UintType:
			switch {
			case !group:
				group = true
				ok = d.readGroup()
			case !window:
				window = true
				ok = d.readWindow()
			default:
				ok = d.w.skip()
			}
		case msgp.StrType, msgp.BinType:
			ok = d.tailWord()
		case msgp.ArrayType:
			if d.d.kind == Removed { // a downstream tree's remaining_copy_counts
				ok = d.w.skip()
			} else {
				ok = d.readRaw(&d.d.media)
			}
		default:
			ok = d.w.skip()
		}
		if !ok {
			return false
		}
	}
	return true
}

func isNumber(t msgp.Type) bool { return t == msgp.IntType || t == msgp.UintType }

func (d *Decoder) tailWord() bool {
	word, ok := d.w.name("kv_cache_spec_kind")
	if !ok {
		return false
	}
	switch {
	case d.d.spec == nil && !isLocality(word):
		d.d.spec = word
	case d.d.locality == nil:
		d.d.locality = word
	}
	return true
}
