package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"adpdeck/router/model"
)

// mooncakeBlockTokens is the block size of the Mooncake traces.
const mooncakeBlockTokens = 512

// linkMinBlocks is the shortest prefix that links a row to an earlier one: one
// shared block is the system prompt that every row has.
const linkMinBlocks = 2

type mooncakeRow struct {
	Timestamp    *float64 `json:"timestamp"`
	InputLength  *int     `json:"input_length"`
	OutputLength *int     `json:"output_length"`
	HashIDs      []uint64 `json:"hash_ids"`
}

// readMooncake reads rows whose hash_ids name blocks of 512 tokens, the last
// one possibly partial, and links them into conversations.
func (b *builder) readMooncake(lr *lineReader) error {
	b.t.BlockTokens = mooncakeBlockTokens
	var r mooncakeRow
	err := b.each(lr, func(line []byte) string {
		r = mooncakeRow{HashIDs: r.HashIDs[:0]}
		if err := json.Unmarshal(line, &r); err != nil {
			return jsonWhy(err)
		}
		at, why := millis(r.Timestamp)
		if why == "" {
			why = tokens("input_length", r.InputLength)
		}
		if why == "" {
			why = tokens("output_length", r.OutputLength)
		}
		if why != "" {
			return why
		}
		want := (*r.InputLength + mooncakeBlockTokens - 1) / mooncakeBlockTokens
		if len(r.HashIDs) != want {
			return fmt.Sprintf("input_length %d needs %d hash_ids of %d tokens, not %d",
				*r.InputLength, want, mooncakeBlockTokens, len(r.HashIDs))
		}
		b.t.Rows = append(b.t.Rows, Row{
			At: at, PromptTokens: *r.InputLength, OutputTokens: *r.OutputLength,
			Blocks: b.chain(r.HashIDs), BlockTokens: mooncakeBlockTokens,
		})
		return ""
	})
	if err != nil {
		return err
	}
	b.arrange()
	b.t.Conversations = link(b.t.Rows)
	b.t.Notes = append(b.t.Notes, "conversations are linked by their blocks, as the file does not name them")
	return nil
}

// link gives every row a conversation and a turn: a row continues the latest
// earlier row whose blocks without the last one, at least linkMinBlocks, are a
// prefix of its own. It returns the number of conversations.
func link(rows []Row) int {
	// Blocks are chained, so the value of a prefix's last block names it whole.
	latest := make(map[uint64]int32, len(rows))
	of := make([]int32, len(rows)) // conversation of a row
	var turns []int
	for i := range rows {
		blocks := rows[i].Blocks
		parent := int32(-1)
		for k := len(blocks); k >= linkMinBlocks; k-- {
			if p, ok := latest[blocks[k-1]]; ok && p > parent {
				parent = p
			}
		}
		if parent >= 0 {
			of[i] = of[parent]
		} else {
			of[i] = int32(len(turns))
			turns = append(turns, 0)
		}
		turns[of[i]]++
		rows[i].Turn = turns[of[i]]
		if k := len(blocks) - 1; k >= linkMinBlocks {
			latest[blocks[k-1]] = int32(i)
		}
	}
	names := make([]string, len(turns))
	for c := range names {
		names[c] = convName(uint32(c))
	}
	for i := range rows {
		rows[i].Conv = model.ConvKey{ID: names[of[i]]}
	}
	return len(turns)
}

// convName makes a readable id of a number, another one for every number.
func convName(n uint32) string {
	// The finaliser of MurmurHash3, a bijection on 32-bit words.
	n ^= 0x8f2c91e0
	n ^= n >> 16
	n *= 0x85ebca6b
	n ^= n >> 13
	n *= 0xc2b2ae35
	n ^= n >> 16
	s := strconv.FormatUint(uint64(n), 16)
	return "conv-" + "00000000"[len(s):] + s
}

// jsonWhy says in one sentence what is wrong with a line of JSON.
func jsonWhy(err error) string {
	var typ *json.UnmarshalTypeError
	var syn *json.SyntaxError
	switch {
	case errors.As(err, &typ) && typ.Field != "":
		return fmt.Sprintf("%s cannot be %s", typ.Field, typ.Value)
	case errors.As(err, &typ):
		return "not a JSON object but " + typ.Value
	case errors.As(err, &syn):
		return fmt.Sprintf("not JSON after %d bytes: %s", syn.Offset, syn.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "not JSON: it ends too early"
	}
	return "not JSON: " + err.Error()
}
