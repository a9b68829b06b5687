package engine

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

// drain fetches TensorRT-LLM's KV events. Each reading takes them away from
// every other reader, so there is one poller for each engine; what an answer
// loses on its way shows as a gap in the events' numbers.
func (w *worker) drain(ctx context.Context) {
	failed := 0
	for {
		if !w.hasTaker() {
			if !pause(ctx, w.f.o.spread(drainPeriod), nil) {
				return
			}
			continue
		}
		why := w.drainOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if failed++; why == "" {
			failed = 0
		}
		words := ""
		if failed >= failsToDie {
			words = "no kv events over http: " + why
		}
		w.finding(FindingEvents, model.Target{Worker: w.spec.ID, Rank: model.NoRank}, words,
			"start the engine with event_buffer_max_size above 0, or set the transport of its events to none")
		period := drainPeriod
		if failed > 0 {
			period = learnRetry
		}
		if !pause(ctx, w.f.o.spread(period), nil) {
			return
		}
	}
}

// hasTaker reports that events have somewhere to go: what is read before the sink
// has taken the worker in is lost, the first ones of its caches among them. Only
// where nothing else has told how many ranks there are, events are to tell it.
func (w *worker) hasTaker() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken || w.learnt.ranks == 0
}

func (w *worker) drainOnce(ctx context.Context) (why string) {
	a, err := w.fetch(ctx, under(w.doors[0].base, "/kv_cache_events"), []byte{}, event.MaxBatchBytes, drainTimeout)
	switch {
	case err != nil:
		return plain(err, drainTimeout)
	case a.status != http.StatusOK:
		return fmt.Sprintf("it answered %d", a.status)
	case len(a.body) > event.MaxBatchBytes:
		return fmt.Sprintf("its answer is longer than %d bytes", event.MaxBatchBytes)
	}
	list := gjson.ParseBytes(a.body)
	if !list.IsArray() {
		return "its answer is not a list"
	}
	var ranks []int
	empty := true
	list.ForEach(func(_, e gjson.Result) bool {
		empty = false
		if r := e.Get("attention_dp_rank"); r.Type == gjson.Number && r.Num >= 0 && r.Num <= scrape.MaxRank && !slices.Contains(ranks, int(r.Num)) {
			ranks = append(ranks, int(r.Num))
		}
		return true
	})
	if empty {
		return ""
	}
	w.f.sink.EventsJSON(w.spec.ID, a.body)
	if len(ranks) > 0 {
		slices.Sort(ranks)
		w.mu.Lock()
		changed := w.learnt.advert(fromEvents, &scrape.Advert{Advertised: ranks})
		if changed {
			w.settle()
		}
		w.mu.Unlock()
		if changed {
			nudge(w.poke)
		}
	}
	return ""
}
