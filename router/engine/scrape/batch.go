package scrape

import "adpdeck/router/prefix/event"

// Batch reads what a batch of KV events, as vLLM, SGLang and TensorRT-LLM
// publish it, advertises: the rank it names and the size of its blocks. It
// decodes the whole batch; once for each connection is enough.
func Batch(payload []byte) (Advert, error) {
	var a Advert
	var d event.Decoder
	var b event.Batch
	if err := d.Batch(payload, &b); err != nil {
		return a, refuse(BadBatch, "%v", err)
	}
	if b.Rank >= 0 && b.Rank <= MaxRank {
		a.Advertised = []int{int(b.Rank)}
	}
	for i := range b.Events {
		if e := &b.Events[i]; e.Kind == event.Stored {
			a.BlockTokens = least(a.BlockTokens, int(e.BlockTokens))
		}
	}
	return a, nil
}
