package workers

import (
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/view"
)

// entry is one worker with what its ranks carry together.
type entry struct {
	*model.Worker
	ranks    []*model.Rank
	findings []*model.Finding // of the worker and its ranks

	// ready ranks take new work; draining ones do not, and left is what keeps
	// them from being empty.
	ready, draining int
	left            view.Left
	// reported ranks are those of which active and tokens are sums; places is the
	// sum of their hard caps, placesUnknown that one of them is not known.
	reported, active, tokens, places int
	placesUnknown                    bool
	// busiest is the reported rank with the most tokens, mean their mean.
	busiest *model.Rank
	mean    float64
	// The proofs of all routes together.
	asked, honoured, ignored uint64
}

// gather makes the rows of a state.
func gather(s *model.State) []*entry {
	entries := make([]entry, len(s.Workers))
	rows := make([]*entry, len(entries))
	at := make(map[string]*entry, len(entries))
	for i := range entries {
		e := &entries[i]
		e.Worker = &s.Workers[i]
		e.ranks = make([]*model.Rank, 0, min(max(e.Ranks, 0), len(s.Ranks)))
		for _, p := range e.Proofs {
			e.asked, e.honoured, e.ignored = e.asked+p.Asked, e.honoured+p.Honoured, e.ignored+p.Ignored
		}
		rows[i] = e
		at[e.ID] = e
	}
	for i := range s.Ranks {
		if e := at[s.Ranks[i].Target.Worker]; e != nil {
			e.add(&s.Ranks[i])
		}
	}
	for i := range s.Findings {
		if e := at[s.Findings[i].Target.Worker]; e != nil {
			e.findings = append(e.findings, &s.Findings[i])
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.draining > 0 && e.draining == len(e.ranks) {
			e.left = e.left.OnWorker(s, e.ID)
		}
		if e.reported > 0 {
			e.mean = float64(e.tokens) / float64(e.reported)
		}
	}
	return rows
}

// add counts one rank of the worker.
func (e *entry) add(r *model.Rank) {
	e.ranks = append(e.ranks, r)
	switch {
	case r.Availability == model.Draining:
		e.draining++
		e.left = e.left.Add(view.LeftOn(r))
	case r.Weight > 0 && e.Liveness != model.LiveDown:
		e.ready++
	}
	if r.ReportedAt.IsZero() {
		return
	}
	e.reported++
	e.active, e.tokens, e.places = e.active+r.Active, e.tokens+r.Tokens, e.places+max(0, r.MaxActive)
	e.placesUnknown = e.placesUnknown || r.MaxActive <= 0
	if e.busiest == nil || r.Tokens > e.busiest.Tokens {
		e.busiest = r
	}
}

// simulated reports that no engine is behind the worker.
func (e *entry) simulated() bool { return e.Address == "" && e.Liveness == model.LiveUnknown }

// partly reports that some of the ranks have not reported.
func (e *entry) partly() bool { return e.reported < max(len(e.ranks), e.Ranks) }

// whole is a sum over all ranks, unknown where one has not reported.
func (e *entry) whole(sum int) float64 {
	if e.reported == 0 || e.partly() {
		return float64(model.Unknown())
	}
	return float64(sum)
}

// honouredShare is honoured of what was proven, unknown before the first proof.
func (e *entry) honouredShare() float64 {
	if e.honoured+e.ignored == 0 {
		return float64(model.Unknown())
	}
	return float64(e.honoured) / float64(e.honoured+e.ignored)
}

// measured is a time to the first token; a router that does not tell it sends
// nothing, which reads as 0 and is none.
func measured(m model.Maybe) float64 {
	if !m.Known() || m <= 0 {
		return float64(model.Unknown())
	}
	return float64(m)
}

// feed is the worker's feed of a name, nil where it has none.
func (e *entry) feed(name string) *model.WorkerFeed {
	for i := range e.Feeds {
		if e.Feeds[i].Name == name {
			return &e.Feeds[i]
		}
	}
	return nil
}

// worst is the feed in the worst state, nil where all are whole or guessed.
func (e *entry) worst() *model.WorkerFeed {
	var worst *model.WorkerFeed
	for i := range e.Feeds {
		if x := &e.Feeds[i]; badness(x.State) > 0 && (worst == nil || badness(x.State) > badness(worst.State)) {
			worst = x
		}
	}
	return worst
}

// badness orders the states of a feed; 0 is nothing to worry about.
func badness(s model.IndexFeed) int {
	switch s {
	case model.FeedLive, model.FeedApproximate:
		return 0
	case model.FeedNone:
		return 1
	case model.FeedGap, model.FeedDoubt:
		return 3
	case model.FeedStale:
		return 4
	case model.FeedSilent:
		return 5
	}
	return 2
}

// since is how long ago t was, 0 where it is not known.
func since(now, t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(0, now.Sub(t))
}
