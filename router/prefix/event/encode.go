package event

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// Form is how a msgpack event is written.
type Form uint8

// The two forms. Engines changed from the first to the second in 2026.
const (
	ArrayForm Form = iota // vLLM up to 0.23, SGLang before September 2026
	MapForm               // vLLM from 0.26, TensorRT-LLM's streaming publisher
)

// HashForm is how hashes are written.
type HashForm uint8

// The three forms of a hash.
const (
	UnsignedHash HashForm = iota
	SignedHash            // SGLang, TensorRT-LLM
	BytesHash             // vLLM with SHA-256: 32 bytes that end in the hash
)

// Encoder writes batches as engines do. The zero Encoder writes whole
// positional events with unsigned hashes.
type Encoder struct {
	Form Form
	Hash HashForm
	// Fields cuts positional events after so many fields, the tag not counted;
	// 0 writes them all. Engines of the past had fewer.
	Fields int
	// Extra adds fields to maps that no decoder knows.
	Extra bool
	// Shuffle, when set, writes a map's fields in an order drawn from it.
	Shuffle *rand.Rand
}

// AppendBatch appends a batch of events to p: the engine's time in seconds, the
// events, and the rank unless it is NoRank. Only Stored, Removed and Cleared
// have this form; other kinds are left out.
func (c *Encoder) AppendBatch(p []byte, seconds float64, rank int, events []Event) []byte {
	n := 0
	for i := range events {
		if k := events[i].Kind; k == Stored || k == Removed || k == Cleared {
			n++
		}
	}
	parts := uint32(3)
	if rank < 0 {
		parts = 2
	}
	p = msgp.AppendArrayHeader(p, parts)
	p = msgp.AppendFloat64(p, seconds)
	p = msgp.AppendArrayHeader(p, uint32(n))
	for i := range events {
		p = c.appendEvent(p, &events[i])
	}
	if rank >= 0 {
		p = msgp.AppendInt(p, rank)
	}
	return p
}

// column is one field of an event: its name, and how it is written.
type column struct {
	name  string
	write func(c *Encoder, p []byte, e *Event) []byte
}

func (c *Encoder) appendEvent(p []byte, e *Event) []byte {
	switch e.Kind {
	case Stored:
		return c.appendFields(p, tagStored, storedColumns(), e)
	case Removed:
		return c.appendFields(p, tagRemoved, removedColumns(), e)
	case Cleared:
		return c.appendFields(p, tagCleared, nil, e)
	}
	return p
}

func (c *Encoder) appendFields(p []byte, tag string, columns []column, e *Event) []byte {
	if c.Form == ArrayForm {
		if c.Fields > 0 {
			columns = columns[:min(c.Fields, len(columns))]
		}
		p = msgp.AppendArrayHeader(p, uint32(1+len(columns)))
		p = msgp.AppendString(p, tag)
		for _, f := range columns {
			p = f.write(c, p, e)
		}
		return p
	}
	all := append([]column{{"type", func(_ *Encoder, p []byte, _ *Event) []byte { return msgp.AppendString(p, tag) }}}, columns...)
	if e.Salt != "" && e.Kind == Stored {
		all = append(all, column{"cache_salt", func(_ *Encoder, p []byte, e *Event) []byte { return appendName(p, e.Salt) }})
	}
	if c.Extra {
		all = append(all, unknownColumns()...)
	}
	if c.Shuffle != nil {
		c.Shuffle.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	p = msgp.AppendMapHeader(p, uint32(len(all)))
	for _, f := range all {
		p = msgp.AppendString(p, f.name)
		p = f.write(c, p, e)
	}
	return p
}

func unknownColumns() []column {
	return []column{
		{"ownership", func(_ *Encoder, p []byte, _ *Event) []byte {
			return msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(p, 1), "owner"), "me")
		}},
		{"session_id", func(_ *Encoder, p []byte, _ *Event) []byte { return msgp.AppendString(p, "s-1") }},
		{"from_the_future", func(_ *Encoder, p []byte, _ *Event) []byte {
			return msgp.AppendBool(msgp.AppendFloat64(msgp.AppendArrayHeader(p, 2), 0.5), true)
		}},
	}
}

func storedColumns() []column {
	return []column{
		{"block_hashes", func(c *Encoder, p []byte, e *Event) []byte { return c.appendHashes(p, e.Hashes) }},
		{"parent_block_hash", func(c *Encoder, p []byte, e *Event) []byte {
			if !e.HasParent {
				return msgp.AppendNil(p)
			}
			return c.appendHash(p, e.Parent)
		}},
		{fieldTokens, appendTokens},
		{"block_size", func(_ *Encoder, p []byte, e *Event) []byte { return msgp.AppendInt32(p, e.BlockTokens) }},
		{"lora_id", func(_ *Encoder, p []byte, e *Event) []byte { return appendLoRAID(p, e.LoRA) }},
		{"medium", func(_ *Encoder, p []byte, e *Event) []byte { return msgp.AppendString(p, mediumOf(e.Tier)) }},
		{"lora_name", func(_ *Encoder, p []byte, e *Event) []byte {
			if strings.HasPrefix(e.LoRA, "#") {
				return msgp.AppendNil(p)
			}
			return appendName(p, e.LoRA)
		}},
		{"extra_keys", appendExtra},
		{"group_idx", appendGroup},
		{"kv_cache_spec_kind", appendSpec},
		{"kv_cache_spec_sliding_window", appendWindow},
	}
}

func removedColumns() []column {
	all := storedColumns()
	return []column{all[0], all[5], all[8], all[9], all[10]}
}

func appendLoRAID(p []byte, lora string) []byte {
	number, ok := strings.CutPrefix(lora, "#")
	if id, err := strconv.ParseUint(number, 10, 31); ok && err == nil {
		return msgp.AppendUint64(p, id)
	}
	return msgp.AppendNil(p)
}
