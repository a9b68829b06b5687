package engine

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
)

// load asks for the ranks' loads again and again, one question under way at a
// time: TensorRT-LLM's answer empties what it answers from, so a second asker
// would steal.
func (w *worker) load(ctx context.Context) {
	l := loader{w: w}
	for {
		sent, ranks := w.f.o.Clock.Now(), w.view.Load().Ranks
		l.at, l.source = time.Time{}, ""
		page, why := l.read(ctx)
		if ctx.Err() != nil {
			return
		}
		if w.publishes() {
			page, why = l.spoken(page, why)
			if !l.at.IsZero() && l.at.Before(sent) {
				sent = l.at
			}
		}
		if why != "" {
			w.f.sink.Unobserved(w.spec.ID, cut(why))
		} else {
			w.took(&page)
			w.refused(&page)
			// A total is a rank's only where that was known to be the only one.
			if now := w.view.Load().Ranks; now > 0 && (!page.Unranked || now == ranks) {
				w.f.sink.LoadsFrom(w.spec.ID, l.source)
				w.f.sink.Observe(w.spec.ID, sent, page.Reports())
			}
		}
		if !pause(ctx, w.f.o.spread(loadPeriod), nil) {
			return
		}
	}
}

// loader reads loads the way in which its engine offers them.
type loader struct {
	w *worker
	// way is which of SGLang's pages answers; newer releases have the first.
	way  int
	rows bool // TensorRT-LLM has reported iterations
	// at and source are of what was published, zero where nothing was.
	at     time.Time
	source string
}

// read returns one page with ranks inside the worker, or why there is none.
func (l *loader) read(ctx context.Context) (scrape.Page, string) {
	w := l.w
	base := w.doors[0].base
	switch w.spec.Kind {
	case model.EngineSGLang:
		return l.sglang(ctx, base)
	case model.EngineTRTLLM:
		return l.trtllm(ctx, base)
	case model.EngineDynamo:
		return l.dynamo(ctx, base)
	}
	return l.vllm(ctx, base)
}

// ask fetches a page of loads; the address that the settings name for them
// replaces every other.
func (l *loader) ask(ctx context.Context, base, path string, timeout time.Duration) (scrape.Answer, string) {
	w := l.w
	address := under(base, path)
	if w.spec.MetricsURL != "" {
		address = w.spec.MetricsURL
	}
	a, err := w.fetch(ctx, address, nil, scrape.MaxPageBytes, timeout)
	if err != nil {
		return scrape.Answer{}, plain(err, timeout)
	}
	return a.read(), ""
}

func (l *loader) vllm(ctx context.Context, base string) (scrape.Page, string) {
	w := l.w
	if len(w.doors) > 1 && w.spec.MetricsURL == "" {
		return l.ports(ctx, scrape.VLLM)
	}
	a, why := l.ask(ctx, base, "/metrics", loadTimeout)
	if why != "" {
		return scrape.Page{}, why
	}
	return l.inside(scrape.VLLM(a))
}

// ports reads one page from each rank's own address. A rank whose page cannot
// be had is missing from the whole; only if all are there is no page.
func (l *loader) ports(ctx context.Context, read func(scrape.Answer) (scrape.Page, error)) (whole scrape.Page, why string) {
	w := l.w
	pages := make([]scrape.Page, len(w.doors))
	whys := make([]string, len(w.doors))
	var wg sync.WaitGroup
	for i, d := range w.doors {
		wg.Go(func() {
			a, why := l.ask(ctx, d.base, "/metrics", loadTimeout)
			if why == "" {
				var err error
				if pages[i], err = read(a); err != nil {
					why = err.Error()
				}
			}
			pages[i].Inside(w.spec.StartRank+i, 1, model.NumbersAuto)
			whys[i] = why
		})
	}
	wg.Wait()
	any := false
	for i := range pages {
		p := &pages[i]
		if whys[i] != "" {
			why = fmt.Sprintf("rank %d: %s", i, whys[i])
			continue
		}
		any = true
		w.process(i, p.Started)
		for k := range p.Ranks {
			p.Ranks[k].Rank = i
			whole.Ranks = append(whole.Ranks, p.Ranks[k])
		}
		whole.Advertised = append(whole.Advertised, i)
		whole.BlockTokens = least(whole.BlockTokens, p.BlockTokens)
		whole.KVBlocks = least(whole.KVBlocks, p.KVBlocks)
		whole.MaxActive = least(whole.MaxActive, p.MaxActive)
		whole.MaxBatchedTokens = least(whole.MaxBatchedTokens, p.MaxBatchedTokens)
	}
	if any {
		why = ""
	}
	return whole, why
}

// least is the smaller of two sizes, 0 standing for not said.
func least(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// sglang reads /v1/loads, or the older /get_load, or the metrics, whichever is
// there.
func (l *loader) sglang(ctx context.Context, base string) (scrape.Page, string) {
	w := l.w
	if len(w.doors) > 1 && w.spec.MetricsURL == "" {
		return l.ports(ctx, func(a scrape.Answer) (scrape.Page, error) { return scrape.SGLangMetrics(a, w.pageTokens()) })
	}
	ways := []struct {
		path string
		read func(scrape.Answer, int) (scrape.Page, error)
	}{
		{"/v1/loads", scrape.SGLangLoads},
		{"/get_load", scrape.SGLangLoads},
		{"/metrics", scrape.SGLangMetrics},
	}
	if w.spec.MetricsURL != "" {
		ways = ways[2:]
	}
	first := ""
	for range ways {
		way := ways[l.way%len(ways)]
		a, why := l.ask(ctx, base, way.path, loadTimeout)
		if why != "" {
			return scrape.Page{}, why
		}
		if a.Status != http.StatusNotFound && a.Status != http.StatusMethodNotAllowed {
			return l.inside(way.read(a, w.pageTokens()))
		}
		if first == "" {
			first = fmt.Sprintf("%s answered %d", way.path, a.Status)
		}
		l.way++
	}
	return scrape.Page{}, first + ", and neither /v1/loads, /get_load nor /metrics is there"
}

func (l *loader) trtllm(ctx context.Context, base string) (scrape.Page, string) {
	a, why := l.ask(ctx, base, "/metrics", drainTimeout)
	if why != "" {
		return scrape.Page{}, why
	}
	p, why := l.inside(scrape.TRTRows(a, l.w.view.Load().Ranks))
	if why == "" && len(p.Ranks) == 0 && !l.rows {
		why = "it has reported no iteration yet; if that stays so under load, set enable_iter_perf_stats: true"
	}
	l.rows = l.rows || len(p.Ranks) > 0
	return p, why
}

func (l *loader) dynamo(ctx context.Context, base string) (scrape.Page, string) {
	w := l.w
	a, why := l.ask(ctx, base, "/metrics", loadTimeout)
	if why != "" {
		return scrape.Page{}, why
	}
	d, err := scrape.Dynamo(a)
	if err != nil {
		return scrape.Page{}, err.Error()
	}
	of := d.Worker(w.spec.InstanceID)
	switch {
	case of != nil:
	case w.spec.InstanceID != 0:
		return scrape.Page{}, fmt.Sprintf("the frontend's metrics do not name instance %d", w.spec.InstanceID)
	case len(d.Workers) == 1:
		of = &d.Workers[0]
	case len(d.Workers) == 0:
		return scrape.Page{}, "the frontend's metrics name no worker"
	default:
		return scrape.Page{}, fmt.Sprintf("the frontend has %d workers; name each as a worker with its instance id", len(d.Workers))
	}
	if len(d.Models) == 1 {
		for _, m := range d.Models {
			of.BlockTokens = least(of.BlockTokens, m.BlockTokens)
			of.KVBlocks = least(of.KVBlocks, m.KVBlocks)
			of.MaxActive = least(of.MaxActive, m.MaxActive)
			of.MaxBatchedTokens = least(of.MaxBatchedTokens, m.MaxBatchedTokens)
		}
	}
	return l.inside(of.Page, nil)
}

// inside turns a page's ranks into those inside the worker.
func (l *loader) inside(p scrape.Page, err error) (scrape.Page, string) {
	if err != nil {
		return p, err.Error()
	}
	w := l.w
	ranks := w.view.Load().Ranks
	count := w.spec.Ranks
	if p.Unranked {
		count = ranks // a page that names no rank is of one, unless more are known of
	}
	p.Inside(w.spec.StartRank, count, model.NumbersAuto)
	w.process(model.NoRank, p.Started)
	if len(p.Ranks) == 0 && p.Refused.Count > 0 && ranks > 0 {
		return p, p.Refused.List[0].Detail
	}
	return p, ""
}

// pageTokens is the engine's block size as far as it is known.
func (w *worker) pageTokens() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.learnt.blockTokens
}
