package workers

import "adpdeck/tui/view"

// Export is every worker that passes the filter, in the order shown.
func (v *View) Export(f *view.Frame) view.Table {
	v.update(f)
	t := view.Table{Name: "workers", Columns: []string{
		"worker", "engine", "address", "steering", "global_rank", "liveness", "liveness_at", "liveness_why", "joined_at", "restarts", "ranks", "ready",
		"draining", "drain_open", "drain_pins", "active", "places", "tokens", "ttft_ms_p50", "ttft_ms_p99", "asked", "honoured", "ignored",
		"max_active", "kv_blocks", "block_tokens", "models", "requests_feed", "requests_at", "metrics_feed", "metrics_at", "kv_events_feed",
		"kv_events_at", "finding", "next",
	}}
	for _, e := range v.list.Rows() {
		row := []any{
			e.ID, e.Engine, e.Address, string(e.Steering), e.GlobalRank, stateWord(e), e.LivenessAt, e.LivenessWhy, e.JoinedAt, e.Restarts,
			max(e.Ranks, len(e.ranks)), e.ready, e.draining, e.left.Open, e.left.Pins, e.whole(e.active), nil, e.whole(e.tokens),
			measured(e.TTFTMsP50), measured(e.TTFTMsP99), e.asked, e.honoured, e.ignored, some(e.MaxActive), some(e.KVBlocks), some(e.BlockTokens),
			modelWords(e), nil, nil, nil, nil, nil, nil, nil, nil,
		}
		if !e.placesUnknown && !e.partly() {
			row[16] = e.places
		}
		for i, name := range feedNames() {
			if x := e.feed(name); x != nil {
				row[27+2*i], row[28+2*i] = string(x.State), x.At
			}
		}
		if len(e.findings) > 0 {
			row[33], row[34] = e.findings[0].Message, e.findings[0].Next
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// some is a figure of which 0 means that it is not known.
func some(n int) any {
	if n <= 0 {
		return nil
	}
	return n
}
