package event

import "slices"

// filter drops what is no part of the prefix cache that the index keeps, and
// adds what the events leave out. It belongs to one publisher.
//
//   - Hybrid models: only full, MLA and sink-full attention holds prefixes. The
//     group number that comes with such a kind is learned; until then group 0 is
//     taken on trust.
//   - TensorRT-LLM: only the widest attention window counts, and full blocks.
//   - Salt: vLLM names it at a chain's root only; children inherit it.
type filter struct {
	format Format
	block  int32 // tokens per block, 0 = not checked

	group   int32 // learned main group, or NoGroup
	trusted bool  // events of group 0 were taken before the group was known
	window  int32 // widest window so far
	taken   bool  // events of that window were taken

	salts    recent // hash → place in saltText + 1
	saltText []string
	partial  recent
}

// Limits of what a filter remembers of one publisher.
const (
	maxSalted  = 1 << 16 // blocks with a salt, in each of two generations
	maxPartial = 1 << 13 // partial blocks, in each of two generations
	maxSalts   = 1 << 12 // distinct salts
)

func newFilter(format Format, blockTokens int) filter {
	return filter{
		format: format, block: int32(blockTokens), group: NoGroup,
		salts: recent{limit: maxSalted}, partial: recent{limit: maxPartial},
	}
}

// apply filters b in place and counts what it drops in b.Refused.
func (f *filter) apply(b *Batch) {
	kept := 0
	for i := 0; i < len(b.Events); i++ {
		e := b.Events[i]
		why, wipe := f.judge(&e)
		if why.Reason != 0 {
			why.Index = i
			b.Refused.Add(why)
			continue
		}
		if wipe {
			clearing := Event{Kind: Cleared, Synthetic: true, Rank: b.Rank, Group: NoGroup, Position: -1}
			if kept == i {
				b.Events = slices.Insert(b.Events, i, clearing)
				i++
			} else {
				b.Events[kept] = clearing
			}
			kept++
		}
		b.Events[kept] = e
		kept++
	}
	clear(b.Events[kept:])
	b.Events = b.Events[:kept]
}

// judge says why an event is dropped; wipe says that what was taken before it
// was of the wrong kind and must go first.
func (f *filter) judge(e *Event) (why Refusal, wipe bool) {
	if e.Kind == Cleared {
		return Refusal{}, false
	}
	if f.format == TRTJSON {
		why, wipe = f.judgeWindow(e)
	} else {
		why, wipe = f.judgeGroup(e)
	}
	if why.Reason != 0 {
		return why, false
	}
	switch e.Kind {
	case Created:
		return Refusal{Reason: Informal, Field: "created"}, wipe
	case Removed, Moved:
		return f.judgeRemoved(e), wipe
	}
	if why = f.judgeBlocks(e); why.Reason != 0 {
		return why, wipe
	}
	return f.inherit(e), wipe
}

func (f *filter) judgeGroup(e *Event) (Refusal, bool) {
	switch {
	case e.Spec == SpecOther:
		return Refusal{Reason: OtherAttention, Field: "kv_cache_spec_kind"}, false
	case e.Spec == SpecUnknown:
		return Refusal{Reason: UnknownSpec, Field: "kv_cache_spec_kind"}, false
	case e.Group == NoGroup:
		return Refusal{}, false
	case f.group != NoGroup && e.Group != f.group:
		return Refusal{Reason: OtherGroup, Field: "group_idx", Value: int64(e.Group)}, false
	case f.group != NoGroup:
		return Refusal{}, false
	case e.Spec == SpecMain:
		wipe := f.trusted && e.Group != 0
		f.group, f.trusted = e.Group, false
		return Refusal{}, wipe
	case e.Group == 0:
		f.trusted = true
		return Refusal{}, false
	}
	return Refusal{Reason: UnlearnedGroup, Field: "group_idx", Value: int64(e.Group)}, false
}

func (f *filter) judgeWindow(e *Event) (Refusal, bool) {
	wipe := false
	switch {
	case e.Window <= 0:
		return Refusal{}, false
	case e.Window > f.window:
		wipe = f.taken
		f.window, f.taken = e.Window, false
	case e.Window < f.window:
		return Refusal{Reason: OtherWindow, Field: "window_size", Value: int64(e.Window), Want: int64(f.window)}, false
	}
	f.taken = f.taken || e.Kind == Stored
	return Refusal{}, wipe
}

// judgeRemoved takes the removals of partial blocks out: they were never
// handed on.
func (f *filter) judgeRemoved(e *Event) Refusal {
	if f.partial.empty() || len(e.Hashes) == 0 {
		return Refusal{}
	}
	kept := e.Hashes[:0]
	for _, h := range e.Hashes {
		if _, ok := f.partial.get(h); !ok {
			kept = append(kept, h)
		}
	}
	e.Hashes = kept
	if len(kept) == 0 {
		return Refusal{Reason: PartialBlock, Field: "block_hashes"}
	}
	return Refusal{}
}

func (f *filter) judgeBlocks(e *Event) Refusal {
	if f.block == 0 || e.BlockTokens == f.block || len(e.Tokens) == 0 && f.format != TRTJSON || e.Local != nil {
		return Refusal{}
	}
	wrong := Refusal{Reason: BlockSize, Field: "block_size", Value: int64(e.BlockTokens), Want: int64(f.block)}
	if f.format != TRTJSON || e.BlockTokens > f.block || len(e.Hashes) > 1 {
		return wrong
	}
	if e.HasParent {
		if _, ok := f.partial.get(e.Parent); ok { // a partial block has no children
			f.partial.put(e.Hashes[0], 1)
			return wrong
		}
	}
	f.partial.put(e.Hashes[0], 1)
	return Refusal{Reason: PartialBlock, Field: "tokens", Value: int64(e.BlockTokens), Want: int64(f.block)}
}

// inherit gives a chain its root's salt.
func (f *filter) inherit(e *Event) Refusal {
	if e.HasParent && !f.salts.empty() {
		if at, ok := f.salts.get(e.Parent); ok {
			salt := f.saltText[at]
			if e.Salt != "" && e.Salt != salt {
				return Refusal{Reason: AmbiguousNamespace, Field: "cache_salt", Got: "another salt than its parent's"}
			}
			e.Salt = salt
		}
	}
	if e.Salt == "" {
		return Refusal{}
	}
	at := slices.Index(f.saltText, e.Salt)
	if at < 0 {
		if len(f.saltText) >= maxSalts {
			f.saltText, f.salts = nil, recent{limit: maxSalted}
		}
		at = len(f.saltText)
		f.saltText = append(f.saltText, e.Salt)
	}
	for _, h := range e.Hashes {
		f.salts.put(h, uint32(at))
	}
	return Refusal{}
}

// recent remembers the newest hashes, between limit and twice as many: when
// the young generation is full it becomes the old one, and the old one goes.
// Engines' hashes cover content and salt, so what is remembered never gets
// wrong, only forgotten.
type recent struct {
	limit      int
	young, old map[Hash]uint32
}

func (r *recent) empty() bool { return len(r.young) == 0 && len(r.old) == 0 }

func (r *recent) get(h Hash) (uint32, bool) {
	if v, ok := r.young[h]; ok {
		return v, true
	}
	v, ok := r.old[h]
	if ok {
		r.put(h, v) // still in use
	}
	return v, ok
}

func (r *recent) put(h Hash, v uint32) {
	if len(r.young) >= r.limit {
		r.young, r.old = nil, r.young
	}
	if r.young == nil {
		r.young = make(map[Hash]uint32)
	}
	r.young[h] = v
}
