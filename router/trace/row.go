package trace

import (
	"fmt"
	"time"

	"adpdeck/router/model"
)

// Bounds of what is held of one file.
const (
	// MaxRows is the most rows that a trace may have.
	MaxRows = 2_000_000
	// MaxBlocks is the most blocks that the rows of a trace may have together.
	MaxBlocks = 100_000_000
	// MaxLineBytes is the longest line that is read; a longer one is a bad row.
	MaxLineBytes = 4 << 20
	// MaxNamedBadRows is how many bad rows are named; the others are counted.
	MaxNamedBadRows = 100
	// MaxTokens is the longest prompt or answer of a row that is believed.
	MaxTokens = 2 << 20
)

// Row is one request of a trace.
type Row struct {
	// At is the arrival, counted from the earliest row.
	At time.Duration
	// Conv names the conversation; keyless where the format knows none.
	Conv model.ConvKey
	// Turn counts the rows of the conversation from 1, 0 for a keyless row.
	Turn int
	// PromptTokens is the whole prompt, at least 1.
	PromptTokens int
	// OutputTokens is the length of the answer, at least 1.
	OutputTokens int
	// Blocks are the chained blocks of the prompt, first to last. The last may
	// be partly filled; FullBlocks leaves it out.
	Blocks []uint64
	// BlockTokens is how many tokens one block holds.
	BlockTokens int
}

// FullBlocks returns the blocks that the prompt fills completely, the only ones
// that a cache can give to another request.
func (r *Row) FullBlocks() []uint64 {
	return r.Blocks[:min(len(r.Blocks), r.PromptTokens/r.BlockTokens)]
}

// ProbeBlocks returns the blocks that a prefix probe looks for: the full blocks
// of all tokens but the last, since one token must be left to compute.
func (r *Row) ProbeBlocks() []uint64 {
	return r.Blocks[:min(len(r.Blocks), (r.PromptTokens-1)/r.BlockTokens)]
}

// Format is a file shape that the readers understand.
type Format string

// The formats.
const (
	FormatMooncake Format = "mooncake" // JSONL: timestamp, input_length, output_length, hash_ids
	FormatSessions Format = "sessions" // JSONL: session_id, turn, timestamp, input_chars, output_chars, hash_ids
	FormatAzure    Format = "azure"    // CSV: TIMESTAMP,ContextTokens,GeneratedTokens
)

// Trace is a file that has been read. Rows are ordered by arrival; rows that
// arrive together keep the order of the file.
type Trace struct {
	Name   string
	Format Format
	Rows   []Row
	// Conversations counts the distinct conversations, 0 for a keyless format.
	Conversations int
	// BlockTokens is the block size of every row.
	BlockTokens int
	Bad         BadRows
	// Notes says in plain sentences what the reader had to assume.
	Notes []string
}

// BadRow is a row that could not be used.
type BadRow struct {
	Line int    // counted from 1
	Why  string // in one sentence
}

// String writes the row as a person reads it: line 7: hash_ids is missing.
func (b BadRow) String() string { return fmt.Sprintf("line %d: %s", b.Line, b.Why) }

// BadRows counts the rows that could not be used and names the first of them.
type BadRows struct {
	Count int
	First []BadRow // at most MaxNamedBadRows
}

func (b *BadRows) add(line int, why string) {
	b.Count++
	if len(b.First) < MaxNamedBadRows {
		b.First = append(b.First, BadRow{Line: line, Why: why})
	}
}

// String sums the bad rows up in one sentence, empty when there are none.
func (b *BadRows) String() string {
	switch {
	case b.Count == 0:
		return ""
	case b.Count == 1:
		return "1 bad row was left out: " + b.First[0].String()
	default:
		return fmt.Sprintf("%d bad rows were left out, the first: %s", b.Count, b.First[0])
	}
}

// Player hands the rows of a trace out one by one.
type Player struct {
	t    *Trace
	next int
}

// Play returns a Player at the first row.
func (t *Trace) Play() *Player { return &Player{t: t} }

// Next fills row with the next row and reports whether there was one.
func (p *Player) Next(row *Row) bool {
	if p.next >= len(p.t.Rows) {
		return false
	}
	*row = p.t.Rows[p.next]
	p.next++
	return true
}

// Total is how many rows there are in all.
func (p *Player) Total() int { return len(p.t.Rows) }

// Chain returns the value of a block whose content is id and whose predecessor
// in the prompt has the value prev (0 for the first block). It never returns 0.
func Chain(prev, id uint64) uint64 {
	h := mix(prev*0x9e3779b97f4a7c15 ^ mix(id+0x632be59bd9b4e019))
	if h == 0 {
		return 1
	}
	return h
}

// mix is a bijection on 64-bit words that spreads every bit of its argument
// (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
