package scrape

import "encoding/json"

// Info is what an engine says of its set-up. Engines put their whole command
// line, keys included, into such an answer; only what is named here is read,
// and no refusal quotes any of it.
type Info struct {
	Advert
	// Version is the engine's, Model the name it serves; "" where not said.
	Version, Model string
	// Events is where its KV events are published, nil where it does not say.
	Events *EventsAt
}

// EventsAt is SGLang's description of its publishers: rank r has port Port + r.
type EventsAt struct {
	// Host may be a wildcard (*, 0.0.0.0, ::): the engine's own host then.
	Host  string
	Port  int
	Topic string
	// Ranks is how many publishers there are, 0 where not said.
	Ranks int
}

// sglangInfo is what is read of /server_info.
type sglangInfo struct {
	Version       string          `json:"version"`
	Served        string          `json:"served_model_name"`
	Path          string          `json:"model_path"`
	DPSize        jsonNumber      `json:"dp_size"`
	DPAttention   bool            `json:"enable_dp_attention"`
	PageSize      jsonNumber      `json:"page_size"`
	MaxRunning    jsonNumber      `json:"max_running_requests"`
	MaxTokens     jsonNumber      `json:"max_total_num_tokens"`
	InternalState json.RawMessage `json:"internal_states"`
	KVEvents      *struct {
		Publisher string     `json:"publisher"`
		Host      string     `json:"endpoint_host"`
		Port      jsonNumber `json:"endpoint_port_base"`
		Topic     string     `json:"topic"`
		Block     jsonNumber `json:"block_size"`
		DPSize    jsonNumber `json:"dp_size"`
	} `json:"kv_events"`
}

// SGLangInfo reads /server_info, or the older /get_server_info. The engine
// advertises the ranks 0 … dp_size-1. MaxActive is
// effective_max_running_requests_per_dp, else max_running_requests, which
// attention DP divides among its ranks. BlockTokens is the block size of the
// events where it is said, since a cache may have larger pages than its pool.
func SGLangInfo(a Answer) (Info, error) {
	var in sglangInfo
	if err := readInfo(a, &in); err != nil {
		return Info{}, err
	}
	dp := in.DPSize.whole()
	if dp == 0 && in.KVEvents != nil {
		dp = in.KVEvents.DPSize.whole()
	}
	if dp == 0 && in.PageSize.whole() == 0 && in.Version == "" {
		return Info{}, refuse(NoFigures, "an answer without dp_size, page_size and version: is this SGLang?")
	}
	if dp > MaxRanks {
		return Info{}, refuse(TooMany, "the engine says that it has %d ranks; %d is the limit", dp, MaxRanks)
	}
	i := Info{Version: clip(in.Version), Model: clip(in.Served)}
	if i.Model == "" {
		i.Model = clip(in.Path)
	}
	for r := range dp {
		i.Advertised = append(i.Advertised, r)
	}
	i.BlockTokens = in.PageSize.whole()
	if e := in.KVEvents; e != nil {
		if n := e.Block.whole(); n > 0 {
			i.BlockTokens = n
		}
		if port := e.Port.whole(); port > 0 && port < 1<<16 && (e.Publisher == "" || e.Publisher == "zmq") {
			i.Events = &EventsAt{Host: clip(e.Host), Port: port, Topic: clip(e.Topic), Ranks: e.DPSize.whole()}
		}
	}
	in.capacity(&i, dp)
	return i, nil
}

func (in *sglangInfo) capacity(i *Info, dp int) {
	tokens := 0
	// A list with an entry for each rank; anything else says nothing.
	_ = rows(in.InternalState, MaxListed, new(Refusals), func(_ int, raw json.RawMessage) {
		var s struct {
			MaxRunning jsonNumber `json:"effective_max_running_requests_per_dp"`
			Memory     struct {
				Tokens jsonNumber `json:"token_capacity"`
			} `json:"memory_usage"`
		}
		if decode(raw, &s) == nil {
			i.MaxActive = least(i.MaxActive, s.MaxRunning.whole())
			tokens = least(tokens, s.Memory.Tokens.whole())
		}
	})
	if i.MaxActive == 0 {
		i.MaxActive = in.MaxRunning.whole()
		if in.DPAttention && dp > 1 {
			i.MaxActive /= dp
		}
	}
	if tokens == 0 {
		tokens = in.MaxTokens.whole()
	}
	if i.BlockTokens > 0 {
		i.KVBlocks = tokens / i.BlockTokens
	}
}

// readInfo reads an object into in. NaN in a field that nobody asked for must
// not matter, so what plain notes is dropped.
func readInfo(a Answer, in any) error {
	body, bad := a.open(formJSON)
	if bad != nil {
		bad.Detail = cutExcerpt(a, bad)
		return bad
	}
	return decode(plain(body, new(Refusals)), in)
}

// cutExcerpt gives a refusal's words without any of the answer in them.
func cutExcerpt(a Answer, bad *Refusal) string {
	switch bad.Reason {
	case BadStatus:
		a.Body = nil
		_, again := a.open(formJSON)
		return again.Detail
	case ContentType:
		return "JSON was expected, but the answer is something else: are the kind and the address right?"
	}
	return bad.Detail
}

// MaxNameBytes is the longest name that is kept; longer ones are cut.
const MaxNameBytes = 512

func clip(s string) string { return s[:min(len(s), MaxNameBytes)] }
