package engine

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"adpdeck/router/engine/plane"
	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
)

// Bounds of what published loads are kept of.
const (
	// loadFresh is the age up to which a published figure counts: engines that
	// have nothing to do send a heartbeat a second.
	loadFresh = 2500 * time.Millisecond
	// skewWindow is how long the least delay of a publisher is believed.
	skewWindow = 30 * time.Second
	// maxLoadWorkers bounds the workers, maxLoadClocks the publishers that are
	// told apart.
	maxLoadWorkers = 64
	maxLoadClocks  = 1024
)

// published are the loads of a worker as its event plane, or its engine, tells
// them. What comes is kept by worker and rank until it is old.
type published struct {
	mu      sync.Mutex // guards what follows
	workers map[string]map[int]*figures
	clocks  map[uint64]*skew
	last    time.Time // anything usable came
	bad     string    // what is wrong with what came
	badAt   time.Time
}

// figures are the newest of each figure of a rank, with the time it is of.
type figures struct {
	step, used, booked       plane.Load
	stepAt, usedAt, bookedAt time.Time
}

// skew estimates when a publisher's messages were sent by this machine's clock: the
// least difference of receipt and stamp within a window or two is the difference
// of the clocks. A message that was under way for longer is older than its
// receipt says, and must not pass for news.
type skew struct {
	began      time.Time // of the window
	least, was time.Duration
}

// sent is when a message that came at now was sent.
func (k *skew) sent(now, stamp time.Time) time.Time {
	d := now.Sub(stamp)
	switch age := now.Sub(k.began); {
	case k.began.IsZero() || age > 2*skewWindow:
		*k = skew{now, d, d}
	case age > skewWindow:
		*k = skew{now, d, k.least}
	}
	k.least = min(k.least, d)
	return stamp.Add(min(k.least, k.was))
}

// message takes one message of the event plane.
func (p *published) message(e *plane.Envelope, now time.Time) {
	read := plane.ActiveLoad
	switch e.Topic {
	case plane.TopicActiveLoad:
	case plane.TopicForwardPass:
		read = plane.ForwardPass
	default:
		return // a broker carries other topics too
	}
	l, err := read(e.Payload)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.refuse(fmt.Sprintf("what %s says is not used: %v", e.Topic, err), now)
		return
	}
	at := now
	if !e.PublishedAt.IsZero() {
		k := p.clocks[e.Publisher]
		if k == nil {
			if p.clocks == nil || len(p.clocks) == maxLoadClocks {
				p.clocks = map[uint64]*skew{}
			}
			k = &skew{}
			p.clocks[e.Publisher] = k
		}
		at = k.sent(now, e.PublishedAt)
	}
	p.keep(&l, e.Topic == plane.TopicForwardPass, at, now)
}

// step takes one step of an engine that publishes them itself.
func (p *published) step(payload []byte, now time.Time) {
	l, err := plane.ForwardPass(payload)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.refuse(fmt.Sprintf("its forward pass metrics are not used: %v", err), now)
		return
	}
	l.Worker = "" // whose address it is says it
	p.keep(&l, true, now, now)
}

func (p *published) refuse(words string, now time.Time) { p.bad, p.badAt = words, now }

func (p *published) keep(l *plane.Load, step bool, at, now time.Time) {
	ranks := p.workers[l.Worker]
	if ranks == nil {
		p.forget(now)
		if len(p.workers) >= maxLoadWorkers {
			p.refuse(fmt.Sprintf("more than %d workers publish there", maxLoadWorkers), now)
			return
		}
		if p.workers == nil {
			p.workers = map[string]map[int]*figures{}
		}
		ranks = map[int]*figures{}
		p.workers[l.Worker] = ranks
	}
	s := ranks[l.Rank]
	if s == nil {
		if len(ranks) >= MaxRanks {
			p.refuse(fmt.Sprintf("more than %d ranks publish there", MaxRanks), now)
			return
		}
		s = &figures{}
		ranks[l.Rank] = s
	}
	newer := func(have *plane.Load, since *time.Time) {
		if at.After(*since) || since.IsZero() {
			*have, *since = *l, at
		}
	}
	if step {
		newer(&s.step, &s.stepAt)
	}
	if l.KVUsedBlocks.Known() {
		newer(&s.used, &s.usedAt)
	}
	if l.BookedBlocks.Known() {
		newer(&s.booked, &s.bookedAt)
	}
	p.last = now
}

// forget lets go of workers that have been silent.
func (p *published) forget(now time.Time) {
	for id, ranks := range p.workers {
		for r, s := range ranks {
			if !fresh(s.stepAt, now) && !fresh(s.usedAt, now) && !fresh(s.bookedAt, now) {
				delete(ranks, r)
			}
		}
		if len(ranks) == 0 {
			delete(p.workers, id)
		}
	}
}

func fresh(at, now time.Time) bool { return !at.IsZero() && now.Sub(at) <= loadFresh }

// snapshot is what is known now of one worker, ranks in the engine's numbers: the
// oldest of its figures tells the time that it is of. An instance of 0 is whichever
// worker publishes, if it is only one. why says why there is nothing.
func (p *published) snapshot(instance uint64, now time.Time) (rows []scrape.Rank, at time.Time, source, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(now)
	ranks := p.workers[strconv.FormatUint(instance, 10)]
	if instance == 0 {
		if len(p.workers) > 1 {
			return nil, at, "", fmt.Sprintf("%d workers publish their loads there; name each as a worker with its instance id", len(p.workers))
		}
		for _, only := range p.workers {
			ranks = only
		}
	}
	steps, blocks := false, false
	for number, s := range ranks {
		r := scrape.Rank{RankReport: s.step.RankReport}
		oldest := func(t time.Time) {
			if at.IsZero() || t.Before(at) {
				at = t
			}
		}
		if fresh(s.stepAt, now) {
			steps = true
			oldest(s.stepAt)
		} else {
			u := model.Unknown()
			r.RankReport = model.RankReport{Running: u, Waiting: u, Tokens: u, PendingTokens: u, KVTotalBlocks: u, CacheHit: u}
		}
		r.Rank, r.KVUsedBlocks = number, model.Unknown()
		switch {
		case fresh(s.usedAt, now):
			r.KVUsedBlocks = s.used.KVUsedBlocks
			oldest(s.usedAt)
			blocks = true
		case fresh(s.bookedAt, now):
			r.KVUsedBlocks = s.booked.BookedBlocks
			oldest(s.bookedAt)
			blocks = true
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b scrape.Rank) int { return a.Rank - b.Rank })
	switch {
	case steps && blocks:
		source = "published: steps and kv blocks"
	case steps:
		source = "published: steps"
	case blocks:
		source = "published: kv blocks"
	case p.last.IsZero():
		why = "no loads have been published"
	case instance != 0 && len(p.workers) > 0:
		why = fmt.Sprintf("no loads of instance %d are published there", instance)
	default:
		why = fmt.Sprintf("no loads have been published for %v", now.Sub(p.last).Round(time.Second))
	}
	return rows, at, source, why
}

// trouble says what is wrong with what was published of late.
func (p *published) trouble(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.badAt.IsZero() || now.Sub(p.badAt) > 2*hearPeriod {
		return ""
	}
	return p.bad
}

// publishes reports whether loads come from an event plane or an engine's own
// publishers.
func (w *worker) publishes() bool { return len(w.spec.Events.Loads) > 0 }

// spoken puts what was published in the place of what a page says: of a Dynamo
// frontend's, which has no more than its own bookings, all; of vLLM's, what a step
// says of the ranks that have told theirs.
func (l *loader) spoken(page scrape.Page, why string) (scrape.Page, string) {
	w := l.w
	rows, at, source, silent := w.loads.snapshot(w.spec.InstanceID, w.f.o.Clock.Now())
	told := scrape.Page{Ranks: rows}
	told.Inside(w.spec.StartRank, w.view.Load().Ranks, model.NumbersGlobal)
	if w.spec.Kind == model.EngineDynamo {
		page.Ranks, page.Unranked = told.Ranks, false
		l.at, l.source = at, source
		if len(told.Ranks) == 0 && silent == "" {
			silent = "loads are published, but of no rank of this worker"
		}
		return page, silent
	}
	if why != "" || len(told.Ranks) == 0 {
		return page, why
	}
	for i := range told.Ranks {
		t := &told.Ranks[i]
		k := slices.IndexFunc(page.Ranks, func(r scrape.Rank) bool { return r.Rank == t.Rank })
		if k < 0 {
			page.Ranks = append(page.Ranks, *t)
			continue
		}
		r := &page.Ranks[k]
		r.Running, r.Waiting, r.Tokens, r.PendingTokens = t.Running, t.Waiting, t.Tokens, t.PendingTokens
	}
	page.Unranked = false
	l.at, l.source = at, source
	return page, ""
}
