package event

// Hash names a block in the engine's own terms. It is opaque: two engines may
// give the same tokens different hashes. The three forms on the wire meet here:
// unsigned integers as they are, signed ones reinterpreted, byte strings as
// their last 8 bytes, big-endian (as llm-d does).
type Hash uint64

// Kind says what happened to blocks.
type Kind uint8

// The kinds of event. Moved and Created come from TensorRT-LLM's JSON only,
// Doubted and Settled from a Feed only.
const (
	// Stored: the rank now holds Hashes, a chain that continues Parent.
	Stored Kind = iota + 1
	// Removed: one owner of each of Hashes is gone from Tier.
	Removed
	// Cleared: the rank holds nothing any more, in no tier.
	Cleared
	// Moved: Hashes left tier From for Tier.
	Moved
	// Created: a cache of Window tokens came to be, with Levels blocks.
	Created
	// Doubted: batches of the rank were lost. What it held before may be gone.
	Doubted
	// Settled: what was not told anew since Doubted must not count any more.
	Settled
)

// String names the kind.
func (k Kind) String() string {
	return nameOf([]string{"none", "stored", "removed", "cleared", "moved", "created", "doubted", "settled"}, int(k))
}

// Tier is where a block lies.
type Tier uint8

// The storage tiers, nearest first.
const (
	Device   Tier = iota // GPU memory
	Host                 // CPU memory, pinned or not
	Disk                 // local storage
	External             // a store that several workers share
)

// String names the tier.
func (t Tier) String() string {
	return nameOf([]string{"device", "host", "disk", "external"}, int(t))
}

// Spec is the kind of attention whose cache an event speaks of (vLLM's
// kv_cache_spec_kind). Only the main kinds hold whole prefixes.
type Spec uint8

// The attention kinds.
const (
	SpecUnsaid  Spec = iota // the event does not say
	SpecMain                // full, MLA or sink-full attention
	SpecOther               // sliding window, chunked, Mamba, cross attention …
	SpecUnknown             // a word this package does not know
)

// NoRank and NoGroup stand for a rank or a KV-cache group that an event does
// not name.
const (
	NoRank  = -1
	NoGroup = -1
)

// Media is an image, a sound or another object whose placeholder tokens lie in
// a block.
type Media struct {
	Block  int32  // index into the event's Hashes
	Offset int32  // first placeholder's offset as the engine says, -1 if unsaid
	Hash   uint64 // identity of the object, see MediaHash
}

// Event is one event, whatever it was encoded as. Its slices belong to the
// [Batch] and hold until the batch is decoded into again.
type Event struct {
	Kind Kind
	Tier Tier
	From Tier // Moved: the tier left behind
	Spec Spec
	// HasParent says that Parent holds; without it the chain starts at a root.
	HasParent bool
	// Bigram says that each block also covers the first token of the next, as
	// in Eagle drafts: Tokens are then one longer.
	Bigram bool
	// AnyTier marks a Removed that does not name its tier: the block is gone from
	// whichever tier held it.
	AnyTier bool
	// Restart marks a Cleared that stands for a new engine process.
	Restart bool
	// Synthetic marks an event that no engine sent: a wipe on a restart or on
	// learning the attention group late, a doubt and its end.
	Synthetic bool

	Rank        int32 // router's rank inside the worker; NoRank before a Feed set it
	Group       int32 // KV-cache group of a hybrid model, or NoGroup
	Window      int32 // attention window in tokens, 0 if unsaid
	BlockTokens int32 // tokens per block as the engine says, 0 if unsaid

	Parent Hash
	Hashes []Hash
	// Tokens are the blocks' token ids, BlockTokens for each hash. Empty in a
	// store by an offloading tier, which names blocks by hash only (see ByName).
	Tokens []uint32
	// Local are the router's own hashes when the event brings them (Dynamo's
	// tokens_hash), one for each of Hashes.
	Local []uint64
	// Levels are a Created event's blocks per cache level.
	Levels []uint64
	Media  []Media

	// LoRA is the adapter's name, "" for the base model. An engine that sends
	// only a number gives "#7".
	LoRA string
	// Salt separates caches of equal tokens, "" for none.
	Salt string

	ID       uint64 // event_id, in JSON events
	Worker   uint64 // worker_id, in Dynamo's events
	Position int64  // start_position in blocks, in Dynamo's events; -1 if unsaid
}

// ByName reports whether a Stored event names blocks without saying what they
// hold, as an offloading tier does: that was told when another tier stored
// them, and means nothing if it was not.
func (e *Event) ByName() bool {
	return e.Kind == Stored && len(e.Tokens) == 0 && len(e.Local) == 0
}

// reset makes e an event that says nothing.
func (e *Event) reset() {
	*e = Event{Rank: NoRank, Group: NoGroup, Position: -1}
}

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}
