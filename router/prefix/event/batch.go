package event

// Limits of one batch. They bound memory and time for input nobody vouches for;
// engines stay far below.
const (
	// MaxBatchBytes is the longest batch that is decoded, in bytes.
	MaxBatchBytes = 16 << 20
	// MaxHashes is how many blocks one event may name: a prompt of a million
	// tokens in blocks of 16.
	MaxHashes = 1 << 16
	// MaxBlockTokens is the largest block size that is believed, in tokens.
	MaxBlockTokens = 1 << 16
	// MaxNameBytes is the longest adapter name, salt or media key.
	MaxNameBytes = 512
	// MaxLevels is how many cache levels a Created event may list.
	MaxLevels = 16
)

// Batch is what one message held. Decoding into it again reuses its memory, so
// everything in it holds only until then; the strings stay.
type Batch struct {
	// Time is the engine's own clock in seconds, 0 if the batch had none.
	Time float64
	// Rank is the batch's data_parallel_rank as sent, or NoRank.
	Rank int32
	// Events are the usable events, in the order sent.
	Events []Event
	// Seen counts the events of the message, used or refused.
	Seen int
	// Refused counts the events that were left out, by reason.
	Refused Tally

	hashes []Hash
	tokens []uint32
	locals []uint64
	media  []Media
	seen   []Hash // to find repeated hashes
	quiet  int    // decodes in a row that needed little of the memory
}

// keep is how much of an arena a quiet batch holds on to, in elements.
const keep = 1 << 16

// Reset empties the batch for the next decode. Memory that an unusually large
// message left behind is let go after a while of small ones.
func (b *Batch) Reset() {
	used := max(len(b.hashes), len(b.tokens), len(b.locals), len(b.media), len(b.Events))
	held := max(cap(b.hashes), cap(b.tokens), cap(b.locals), cap(b.media), cap(b.Events), cap(b.seen))
	if held > keep && used < held/4 {
		b.quiet++
	} else {
		b.quiet = 0
	}
	if b.quiet >= 64 {
		*b = Batch{}
	}
	b.Time, b.Rank, b.Seen = 0, NoRank, 0
	clear(b.Events) // strings and slices of the last batch are let go
	b.Events = b.Events[:0]
	b.Refused.Reset()
	b.hashes, b.tokens = b.hashes[:0], b.tokens[:0]
	b.locals, b.media = b.locals[:0], b.media[:0]
}

// leastEventBytes is the shortest event that can be used: BlockRemoved of nothing.
const leastEventBytes = 15

// reserve makes room for n events at once. Growing step by step would leave more
// behind than the events take.
func (b *Batch) reserve(n int) {
	if n > cap(b.Events) {
		b.Events = append(make([]Event, 0, n), b.Events...)
	}
}

// add appends an empty event and returns it; drop takes it back.
func (b *Batch) add() *Event {
	n := len(b.Events)
	if n < cap(b.Events) {
		b.Events = b.Events[:n+1]
	} else {
		b.Events = append(b.Events, Event{})
	}
	e := &b.Events[n]
	e.reset()
	return e
}

func (b *Batch) drop() {
	b.Events[len(b.Events)-1] = Event{}
	b.Events = b.Events[:len(b.Events)-1]
}

// mark remembers how full the arenas are, so that a refused event gives back
// what it took.
type mark struct{ hashes, tokens, locals, media int }

func (b *Batch) mark() mark {
	return mark{len(b.hashes), len(b.tokens), len(b.locals), len(b.media)}
}

func (b *Batch) rewind(m mark) {
	b.hashes, b.tokens = b.hashes[:m.hashes], b.tokens[:m.tokens]
	b.locals, b.media = b.locals[:m.locals], b.media[:m.media]
}

// repeats reports whether a hash occurs twice in hs.
func (b *Batch) repeats(hs []Hash) bool {
	if len(hs) <= 48 {
		for i, h := range hs {
			for _, g := range hs[:i] {
				if g == h {
					return true
				}
			}
		}
		return false
	}
	return b.repeatsLarge(hs)
}
