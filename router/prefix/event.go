package prefix

// Tier is a kind of storage in which an engine keeps KV-cache blocks.
type Tier uint8

// The tiers, fastest first. External and network storage counts as Disk.
const (
	Device Tier = iota
	Host
	Disk
	// Tiers is the number of tiers.
	Tiers = 3
)

// String names the tier: device, host, disk.
func (t Tier) String() string {
	switch t {
	case Device:
		return "device"
	case Host:
		return "host"
	case Disk:
		return "disk"
	}
	return "no such tier"
}

// External is an engine's own name of a block: opaque, chained in the engine's
// own way, never comparable with Local or Chain. Make one with ExternalUint.
type External uint64

// ExternalUint takes an engine's hash that came as an unsigned number.
func ExternalUint(v uint64) External { return External(v) }

// ownSeed keeps names that are made here apart from those that engines give.
const ownSeed = 0x6279746573

// Kind says what an event does.
type Kind uint8

// The kinds of event.
const (
	Stored  Kind = iota // blocks were added, a chain from Parent on
	Removed             // blocks were evicted from one tier
	Cleared             // the target holds nothing any more, in no tier
	Placed              // blocks told before came to one more tier, by name alone
	Moved               // blocks told before left tier From for Tier, by name alone
)

// Block is one stored block: the engine's name and our hash of its tokens.
type Block struct {
	External External
	Local    Local
}

// Event is one change of a target's cache, decoded. The index keeps no
// reference to its slices.
type Event struct {
	Kind Kind
	// Tier is where the blocks were stored or from where they were removed; From
	// is what blocks that Moved left behind.
	Tier, From Tier
	// Group is the KV-cache group of a hybrid model, 0 where there is one
	// only. It is part of a block's name: the same External in another group
	// is another owner. A block counts as held while any group holds it; pass
	// only the groups of full attention.
	Group uint32
	// Scope is the adapter and salt under which the External hashes are
	// unique, 0 where they cover both already, as vLLM's and SGLang's do. A
	// removal must carry the Scope of its store. It has no part in Local
	// hashes: those carry adapter and salt in their seed.
	Scope uint64
	// Parent is the block before the first of Blocks, where HasParent; without
	// one the first block begins a prompt.
	Parent    External
	HasParent bool
	// Blocks are what was Stored: each is the parent of the next.
	Blocks []Block
	// Hashes are what was Removed, Placed or Moved, in any order.
	Hashes []External
}

// Batch is what a target published at once, in order.
type Batch struct {
	// Seq numbers the batches of a target where Numbered. A batch whose number
	// is not above the last one applied is a replay: it changes nothing and is
	// counted. Restart forgets the last number.
	Seq      uint64
	Numbered bool
	Events   []Event
}

// Applied says what came of a batch, in blocks unless named otherwise.
type Applied struct {
	// Replayed says that the batch was seen before and changed nothing.
	Replayed bool
	Stored   int // stored now, duplicates included
	Removed  int // removed now, or one owner fewer
	Waiting  int // put aside because their parent is unknown
	Unknown  int // removals of a block that the target does not hold
	Placed   int // came to a tier by name alone
	Unplaced int // came by a name that stands for nothing, or found no room
	Refused  int // events (not blocks) that contradict themselves
}
