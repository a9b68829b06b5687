package scrape

import (
	"encoding/json"
	"unicode/utf8"
)

// Limits of a list of models.
const (
	MaxModels     = 1024
	MaxModelBytes = 16 << 10 // of one entry
)

// Model is one entry of /v1/models.
type Model struct {
	ID string
	// MaxTokens is max_model_len, prompt and answer together; 0: not said.
	MaxTokens int
	// Parent is the base model of an adapter, "" for none.
	Parent string
	// Raw is the entry as the engine sent it, for a merged list.
	Raw json.RawMessage
}

// Models reads /v1/models. Of entries with one id the first counts.
func Models(a Answer) ([]Model, Refusals, error) {
	var refused Refusals
	body, bad := a.open(formJSON)
	if bad != nil {
		return nil, refused, bad
	}
	var whole struct {
		Data json.RawMessage `json:"data"`
	}
	if err := decode(plain(body, &refused), &whole); err != nil {
		return nil, refused, err
	}
	if len(whole.Data) == 0 {
		return nil, refused, refuse(NoFigures, "an answer without data: is this an OpenAI-compatible server?")
	}
	var models []Model
	seen := map[string]bool{}
	err := rows(whole.Data, MaxListed, &refused, func(i int, raw json.RawMessage) {
		m, bad := oneModel(i, raw)
		switch {
		case bad != nil:
			refused.add(bad.Reason, "%s", bad.Detail)
		case seen[m.ID]:
		case len(models) == MaxModels:
			refused.add(TooMany, "more than %d models: %s is left out", MaxModels, quoted(m.ID))
		default:
			seen[m.ID] = true
			models = append(models, m)
		}
	})
	return models, refused, err
}

func oneModel(i int, raw json.RawMessage) (Model, *Refusal) {
	var row struct {
		ID     string     `json:"id"`
		Len    jsonNumber `json:"max_model_len"`
		Parent *string    `json:"parent"`
	}
	if len(raw) > MaxModelBytes {
		return Model{}, refuse(TooLarge, "entry %d has %d bytes, over the limit of %d", i, len(raw), MaxModelBytes)
	}
	if err := decode(raw, &row); err != nil {
		return Model{}, refuse(BadLine, "entry %d is no model", i)
	}
	if row.ID == "" || len(row.ID) > MaxNameBytes || !utf8.ValidString(row.ID) {
		return Model{}, refuse(BadLine, "entry %d has no id, or one over %d bytes", i, MaxNameBytes)
	}
	m := Model{ID: row.ID, MaxTokens: row.Len.whole(), Raw: raw}
	if row.Parent != nil {
		m.Parent = clip(*row.Parent)
	}
	return m, nil
}
