package trace

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"adpdeck/router/model"
)

// The agent sessions file counts characters. English text and code come to
// about four characters a token with today's tokenisers, so a block of 256
// characters is taken as 64 tokens.
const (
	CharsPerToken      = 4
	sessionBlockTokens = 64
	sessionBlockChars  = sessionBlockTokens * CharsPerToken
)

// SessionGap is the time between the starts of two sessions of a file whose
// timestamps count from the start of each session.
const SessionGap = 10 * time.Second

type sessionRow struct {
	SessionID   *string  `json:"session_id"`
	Turn        *int     `json:"turn"`
	Timestamp   *float64 `json:"timestamp"`
	InputChars  *int     `json:"input_chars"`
	OutputChars *int     `json:"output_chars"`
	BlockChars  *int     `json:"block_chars"`
	HashIDs     []uint64 `json:"hash_ids"`
}

// check returns why the row cannot be used, or "".
func (r *sessionRow) check() string {
	switch {
	case r.SessionID == nil || *r.SessionID == "":
		return "session_id is missing"
	case len(*r.SessionID) > model.MaxIDBytes:
		return fmt.Sprintf("session_id is %d bytes long, at most %d", len(*r.SessionID), model.MaxIDBytes)
	case r.Turn == nil || *r.Turn < 1:
		return "turn is missing or below 1"
	case r.BlockChars == nil || *r.BlockChars != sessionBlockChars:
		return fmt.Sprintf("block_chars is missing or not %d", sessionBlockChars)
	}
	if why := tokens("input_chars", r.InputChars); why != "" {
		return why
	}
	if why := tokens("output_chars", r.OutputChars); why != "" {
		return why
	}
	if want := *r.InputChars / sessionBlockChars; len(r.HashIDs) != want {
		return fmt.Sprintf("input_chars %d needs %d hash_ids of %d characters, not %d",
			*r.InputChars, want, sessionBlockChars, len(r.HashIDs))
	}
	return ""
}

// readSessions reads rows that name their session and turn; hash_ids are of
// full blocks only.
func (b *builder) readSessions(lr *lineReader) error {
	b.t.BlockTokens = sessionBlockTokens
	starts := map[string]time.Duration{} // earliest timestamp by session
	var order []string
	var r sessionRow
	err := b.each(lr, func(line []byte) string {
		r = sessionRow{HashIDs: r.HashIDs[:0]}
		if err := json.Unmarshal(line, &r); err != nil {
			return jsonWhy(err)
		}
		at, why := millis(r.Timestamp)
		if why == "" {
			why = r.check()
		}
		if why != "" {
			return why
		}
		if start, ok := starts[*r.SessionID]; !ok {
			order = append(order, *r.SessionID)
			starts[*r.SessionID] = at
		} else {
			starts[*r.SessionID] = min(start, at)
		}
		b.t.Rows = append(b.t.Rows, Row{
			At: at, Conv: model.ConvKey{ID: *r.SessionID}, Turn: *r.Turn,
			PromptTokens: (*r.InputChars + CharsPerToken - 1) / CharsPerToken,
			OutputTokens: (*r.OutputChars + CharsPerToken - 1) / CharsPerToken,
			Blocks:       b.chain(r.HashIDs), BlockTokens: sessionBlockTokens,
		})
		return ""
	})
	if err != nil {
		return err
	}
	b.t.Conversations = len(order)
	b.t.Notes = append(b.t.Notes, fmt.Sprintf("%d characters are taken as one token", CharsPerToken))
	if len(order) > 1 && !slices.ContainsFunc(order, func(id string) bool { return starts[id] != 0 }) {
		b.stagger(order)
	}
	b.arrange()
	return nil
}

// stagger starts the sessions SessionGap apart, in the order of the file.
func (b *builder) stagger(order []string) {
	shift := make(map[string]time.Duration, len(order))
	for i, id := range order {
		shift[id] = time.Duration(i) * SessionGap
	}
	for i := range b.t.Rows {
		b.t.Rows[i].At += shift[b.t.Rows[i].Conv.ID]
	}
	b.t.Notes = append(b.t.Notes, fmt.Sprintf("timestamps count from the start of each session, so sessions are started %s apart", SessionGap))
}
