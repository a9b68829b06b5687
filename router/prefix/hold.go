package prefix

import (
	"math/bits"
	"sync/atomic"
)

// The hold word of a record says who holds the block. It changes in one
// atomic store, so a reader sees one state or the next.
//
//	63      40 39     38    37   36 35     …     0
//	| depth  |linked|twin | form  | payload       |
//
// form 0–2 is the number of targets named inline, 12 bits each, all on the
// device; form 3 is a row, of one bitset (device) or of three (device, host,
// disk) where the payload's top bit is set. Depth is the block's position in
// its prompt. A twin shares its chain hash with a record of another name or
// another parent.
const (
	depthShift = 40
	linkedBit  = 1 << 39
	twinBit    = 1 << 38
	formShift  = 36
	formMask   = 3 << formShift
	formRow    = 3 << formShift
	tieredBit  = 1 << 35
	holdMask   = 1<<38 - 1
	rowIndex   = 1<<32 - 1
	inlineMax  = 2
	idBits     = 12
	idMask     = 1<<idBits - 1
	// maxDepth is the longest prompt the index can follow, in blocks.
	maxDepth = 1<<24 - 1
)

func depthOf(w uint64) uint32 { return uint32(w >> depthShift) }

// holds reports whether the target holds the block in a tier up to level.
func (ix *Index) holds(w uint64, id ID, level Tier) bool {
	switch w & formMask {
	case 0:
		return false
	case 1 << formShift:
		return ID(w&idMask) == id
	case 2 << formShift:
		return ID(w&idMask) == id || ID(w>>idBits&idMask) == id
	}
	k, bit := int(id>>6), uint64(1)<<(id&63)
	i := uint32(w & rowIndex)
	if w&tieredBit == 0 {
		return ix.flat.at(i)[k]&bit != 0
	}
	row := ix.tiered.at(i)
	for l := 0; l <= int(level); l++ {
		if row[l*ix.words+k]&bit != 0 {
			return true
		}
	}
	return false
}

// holdsIn reports whether the target holds the block in exactly that tier.
func (ix *Index) holdsIn(w uint64, id ID, tier Tier) bool {
	if w&formMask == formRow && w&tieredBit != 0 {
		return ix.tiered.at(uint32(w & rowIndex))[int(tier)*ix.words+int(id>>6)]>>(id&63)&1 == 1
	}
	return tier == Device && ix.holds(w, id, Device)
}

// held reports whether anyone holds the block.
func held(w uint64) bool { return w&formMask != 0 }

// addHold writes the target into the record's word. It fails when a row is
// needed and a bound forbids one.
func (ix *Index) addHold(rec *record, id ID, tier Tier) bool {
	w := rec.hold
	rest := w &^ holdMask
	if form := w & formMask >> formShift; form < inlineMax && tier == Device {
		n := w&(1<<(idBits*inlineMax)-1) | uint64(id)<<(idBits*form)
		atomic.StoreUint64(&rec.hold, rest|(form+1)<<formShift|n)
		return true
	}
	if w&formMask != formRow || (tier != Device && w&tieredBit == 0) {
		var ok bool
		if w, ok = ix.toRow(rec, tier != Device); !ok {
			return false
		}
	}
	row := ix.rowOf(w)
	k := int(tier)*ix.words + int(id>>6)
	atomic.StoreUint64(&row[k], row[k]|1<<(id&63))
	return true
}

func (ix *Index) rowOf(w uint64) []uint64 {
	if w&tieredBit != 0 {
		return ix.tiered.at(uint32(w & rowIndex))
	}
	return ix.flat.at(uint32(w & rowIndex))
}

// toRow moves the holders into a row, wide enough for the lower tiers or not.
func (ix *Index) toRow(rec *record, wide bool) (uint64, bool) {
	slab, mark := &ix.flat, uint64(0)
	if wide {
		slab, mark = &ix.tiered, tieredBit
	}
	i, ok := ix.newRow(slab)
	if !ok {
		return 0, false
	}
	row := slab.at(i)
	w := rec.hold
	if w&formMask == formRow {
		for k, v := range ix.flat.at(uint32(w & rowIndex)) {
			atomic.StoreUint64(&row[k], v)
		}
		ix.flat.retire(uint32(w & rowIndex))
	} else {
		for n := w & formMask >> formShift; n > 0; n-- {
			id := w & idMask
			w >>= idBits
			atomic.StoreUint64(&row[id>>6], row[id>>6]|1<<(id&63))
		}
	}
	w = rec.hold&^holdMask | formRow | mark | uint64(i)
	atomic.StoreUint64(&rec.hold, w)
	return w, true
}

// dropHold takes the target out of the record's word, in one tier.
func (ix *Index) dropHold(rec *record, id ID, tier Tier) {
	w := rec.hold
	rest := w &^ holdMask
	switch w & formMask {
	case 0:
	case 1 << formShift:
		atomic.StoreUint64(&rec.hold, rest)
	case 2 << formShift:
		other := w >> idBits & idMask
		if ID(other) == id {
			other = w & idMask
		}
		atomic.StoreUint64(&rec.hold, rest|1<<formShift|other)
	default:
		row := ix.rowOf(w)
		k := int(tier)*ix.words + int(id>>6)
		atomic.StoreUint64(&row[k], row[k]&^(1<<(id&63)))
		ix.shrink(rec, row)
	}
}

// shrink gives a row back when what it says fits inline, with one to spare so
// that a holder that comes and goes does not move it each time.
func (ix *Index) shrink(rec *record, row []uint64) {
	n := 0
	for _, v := range row {
		n += bits.OnesCount64(v)
	}
	if n >= inlineMax {
		return
	}
	w := rec.hold
	inline := w &^ holdMask
	for k, v := range row {
		if v == 0 {
			continue
		}
		if k >= ix.words {
			return // a holder in a lower tier
		}
		inline |= 1<<formShift | uint64(k<<6+bits.TrailingZeros64(v))
	}
	atomic.StoreUint64(&rec.hold, inline)
	if w&tieredBit != 0 {
		ix.tiered.retire(uint32(w & rowIndex))
	} else {
		ix.flat.retire(uint32(w & rowIndex))
	}
}
