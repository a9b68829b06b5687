package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"adpdeck/router/model"
)

// hashes are block hashes in JSON: unsigned, or signed with the same bits, as
// different clients write them. They are never read as floats.
type hashes []uint64

// UnmarshalJSON reads a list of whole numbers of 64 bits.
func (h *hashes) UnmarshalJSON(b []byte) error {
	var list []json.Number
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*h = make(hashes, 0, len(list)) // an empty list is not none
	for _, n := range list {
		if strings.HasPrefix(n.String(), "-") {
			v, err := strconv.ParseInt(n.String(), 10, 64)
			if err != nil {
				return fmt.Errorf("block hash %.30s is no whole number of 64 bits", n)
			}
			*h = append(*h, uint64(v))
			continue
		}
		v, err := strconv.ParseUint(n.String(), 10, 64)
		if err != nil {
			return fmt.Errorf("block hash %.30s is no whole number of 64 bits", n)
		}
		*h = append(*h, v)
	}
	return nil
}

// queryAsk is the body of /query and /query_by_hash, as Dynamo's indexer takes
// it. Fields that are not known are left alone, as there.
type queryAsk struct {
	TokenIDs    []uint32 `json:"token_ids"`
	BlockHashes hashes   `json:"block_hashes"`
	ModelName   string   `json:"model_name"`
	LoRAName    string   `json:"lora_name"`
	CacheSalt   string   `json:"cache_salt"`
}

// queryAnswer counts tokens; cpu counts those on the device too, disk all.
type queryAnswer struct {
	Scores      map[string]map[string]int `json:"scores"`
	Frequencies []int                     `json:"frequencies"` // not kept
	Instances   map[string]*queryInstance `json:"instances"`
}

type queryInstance struct {
	LongestMatched int            `json:"longest_matched"`
	GPU            int            `json:"gpu"`
	DP             map[string]int `json:"dp"`
	CPU            int            `json:"cpu"`
	Disk           int            `json:"disk"`
	// Approximate says that the figures are guessed from what was routed there.
	Approximate bool `json:"approximate,omitempty"`
}

// query answers /query and /query_by_hash: how much of a prompt each rank holds.
// It books nothing.
func (g *Gateway) query(w http.ResponseWriter, r *http.Request) {
	var ask queryAsk
	if err := g.decode(r.Context(), w, r, &ask, anyField); err != nil {
		refuse(w, problemOf(err))
		return
	}
	byHash := strings.HasSuffix(r.URL.Path, "_by_hash")
	switch {
	case byHash && (ask.LoRAName != "" || ask.CacheSalt != ""):
		refuse(w, refusal(http.StatusBadRequest, "bad_request", "block hashes carry adapter and salt already: give neither lora_name nor cache_salt"))
		return
	case byHash && ask.BlockHashes == nil:
		refuse(w, refusal(http.StatusBadRequest, "bad_prompt", "give block_hashes, or token_ids to /query"))
		return
	case !byHash && ask.TokenIDs == nil:
		refuse(w, refusal(http.StatusBadRequest, "bad_prompt", "give token_ids, or block_hashes to /query_by_hash"))
		return
	}
	block := g.router.BlockTokens()
	if block == 0 {
		refuse(w, refusal(http.StatusServiceUnavailable, "no_block_size", "no engine has named its block size yet: ask again when one has joined").after(1))
		return
	}
	if !byHash {
		ask.ModelName, ask.LoRAName = g.placed(ask.ModelName, ask.LoRAName)
	}
	req := &model.Request{Conv: model.ConvKey{Model: ask.ModelName}, LoRA: ask.LoRAName}
	if byHash {
		req.Locals, req.BlockTokens, req.PromptTokens = ask.BlockHashes, block, block*len(ask.BlockHashes)
	} else {
		p := g.prompts.ReadRaw(req.Conv, ask.TokenIDs, "", ask.LoRAName, ask.CacheSalt)
		p.Fill(req)
	}
	writeJSON(w, http.StatusOK, inDynamosForm(g.router.Matches(req)))
}

// inDynamosForm lists matches by instance and rank.
func inDynamosForm(matches []model.TargetMatch) *queryAnswer {
	a := &queryAnswer{Scores: map[string]map[string]int{}, Frequencies: []int{}, Instances: map[string]*queryInstance{}}
	for _, m := range matches {
		in := a.Instances[m.Target.Worker]
		if in == nil {
			in = &queryInstance{DP: map[string]int{}}
			a.Instances[m.Target.Worker] = in
			a.Scores[m.Target.Worker] = map[string]int{}
		}
		rank := strconv.Itoa(m.Target.Rank)
		all := m.Device + m.Host + m.Disk
		in.GPU, in.CPU, in.Disk = max(in.GPU, m.Device), max(in.CPU, m.Device+m.Host), max(in.Disk, all)
		in.LongestMatched = max(in.LongestMatched, all)
		in.DP[rank] = m.Device
		in.Approximate = in.Approximate || m.Approximate
		a.Scores[m.Target.Worker][rank] = all
	}
	return a
}
