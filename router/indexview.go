package router

import (
	"slices"
	"sync"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
	"adpdeck/router/prefix/event"
)

// indexView is what screens see of the index. What feeds and index say is
// gathered without the router's lock; the windows are kept under it.
type indexView struct {
	mu       sync.Mutex        // guards what is gathered; taken before no other but a source's
	of       *seats            // whose ranks were seen
	seen     []model.IndexRank // ordered by target
	slots    []int32           // by place in seen
	totals   model.IndexTotals
	findings []model.Finding
	events   window // events by time
	counted  uint64
	attempt  time.Time
	at       time.Time
	any      bool

	// Under the router's lock.
	windows      []rankWindow // by slot
	told, agreed uint64       // since the start
	shared       shared
}

// gathered is one answer of gatherIndex, the caller's own.
type gathered struct {
	ranks    []model.IndexRank // ordered by target
	slots    []int32           // by place in ranks
	totals   model.IndexTotals
	findings []model.Finding
}

// refresh is how old what was gathered may be, in router time.
const refresh = 100 * time.Millisecond

// rankWindow is what one rank found and lost over the last minute.
type rankWindow struct {
	slots [12]rankSlot
}

type rankSlot struct {
	epoch                   int64
	prompt, cached, reached int64
	told, agreed            int64
	lost                    model.Lost
}

const rankSlotWidth = 5 * time.Second

func (w *rankWindow) at(now time.Duration) *rankSlot {
	epoch := int64(now / rankSlotWidth)
	s := &w.slots[epoch%int64(len(w.slots))]
	if s.epoch != epoch {
		*s = rankSlot{epoch: epoch}
	}
	return s
}

// into writes the window's sums into a row.
func (w *rankWindow) into(now time.Duration, row *model.IndexRank) {
	oldest := int64(now/rankSlotWidth) - int64(len(w.slots))
	var sum rankSlot
	for i := range w.slots {
		s := &w.slots[i]
		if s.epoch <= oldest || s.prompt == 0 {
			continue
		}
		sum.prompt, sum.cached, sum.reached = sum.prompt+s.prompt, sum.cached+s.cached, sum.reached+s.reached
		sum.told, sum.agreed = sum.told+s.told, sum.agreed+s.agreed
		l := &sum.lost
		l.Load, l.Cap, l.Pin, l.Filter = l.Load+s.lost.Load, l.Cap+s.lost.Cap, l.Pin+s.lost.Pin, l.Filter+s.lost.Filter
		l.Tie, l.Temperature, l.Mode = l.Tie+s.lost.Tie, l.Temperature+s.lost.Temperature, l.Mode+s.lost.Mode
	}
	row.Hit, row.Reachable, row.Agreed = share(sum.cached, sum.prompt), share(sum.reached, sum.prompt), share(sum.agreed, sum.told)
	row.Lost = sum.lost
}

func (v *indexView) init(r *Router) {
	if r.know.index == nil {
		return
	}
	v.events = newWindow(time.Second, 10)
	v.windows = make([]rankWindow, r.know.room)
}

// noteIndex counts a request whose first token came: what its rank found, what
// another held, and whether it was as predicted. It returns the tokens found where
// they say something of what was known of its rank, else -1.
func (r *Router) noteIndex(t *turn) (found int) {
	if !t.looked {
		return -1
	}
	s := r.view.windows[r.slot(t.ran)].at(r.elapsed())
	if t.unsaid {
		return -1 // the engine did not say what it found
	}
	s.prompt += int64(t.prompt)
	s.cached += int64(t.cached)
	s.reached += int64(min(max(t.known, t.cached), t.prompt))
	if t.ran != t.target || t.text {
		return -1 // nothing was predicted for where it ran, or only guessed
	}
	held := t.heldOn(t.target.Rank)
	s.told++
	r.view.told++
	if held == t.cached {
		s.agreed++
		r.view.agreed++
	}
	if t.known > held {
		s.lost.Add(t.lostTo, t.known-held)
	}
	return t.cached
}

// gatherIndex asks feeds and index what they know. It runs without the router's
// lock, since a feed may be busy with a batch. now does not force: what is
// younger than refresh is given again.
func (r *Router) gatherIndex(now time.Time, force bool) *gathered {
	v := &r.view
	if r.watched.Load() > 0 {
		r.lookForBlocks(now)
	}
	if r.know.index == nil {
		return &gathered{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	stands := v.attempt.Equal(now) // time does not go on, so nothing would come later
	v.attempt = now
	if !v.any || force || stands || v.of != r.know.seats.Load() || now.Sub(v.at) >= refresh {
		v.at, v.any = now, true
		r.collect(now)
	}
	return &gathered{ranks: slices.Clone(v.seen), slots: v.slots, totals: v.totals, findings: v.findings}
}

func (r *Router) collect(now time.Time) {
	v, k := &r.view, r.know
	g := k.guess.Load()
	var findings []model.Finding
	v.of = k.seats.Load()
	came := k.past.Load()
	v.seen, v.slots = v.seen[:0], make([]int32, 0, len(v.of.all))
	for _, s := range v.of.all {
		row := model.IndexRank{Target: s.target}
		came += s.came.Load()
		from := k.index
		if g.guesses(int(s.slot)) {
			from, row.Feed = g.index, model.FeedApproximate
			s.owed.Store(0)
			s.from.Store(0)
		} else {
			findings = r.describe(s, now, &row, findings)
		}
		if st, err := from.TargetStats(prefix.ID(s.slot)); err == nil && st.Target == s.target {
			row.Device, row.Host, row.Disk = st.Blocks[prefix.Device], st.Blocks[prefix.Host], st.Blocks[prefix.Disk]
			row.Waiting, row.Holes, row.Bytes = st.Waiting, st.Holes, st.Bytes
			row.Doubtful, row.Unplaced = st.Doubtful, st.Unplaced
		}
		v.seen, v.slots = append(v.seen, row), append(v.slots, s.slot)
	}
	v.findings = findings[:min(len(findings), model.MaxFindings)]
	slices.SortStableFunc(v.findings, func(a, b model.Finding) int { return a.Since.Compare(b.Since) })
	elapsed := max(now.Sub(r.start), 0)
	v.events.at(elapsed).count += max(0, int64(came-v.counted)) // a rank that leaves meanwhile may count a moment later
	v.counted = came
	v.totals = model.IndexTotals{EventsPerSec: model.Unknown()}
	if came > 0 {
		v.totals.EventsPerSec = model.Maybe(float64(v.events.sum(elapsed).count) / v.events.span(elapsed).Seconds())
	}
	addTotals(&v.totals, k.index.Stats())
	if g != nil && g.index != nil {
		addTotals(&v.totals, g.index.Stats())
	}
}

// IndexFigures returns the share of requests whose match was as predicted where
// they ran, since the start, and the distinct blocks that the index holds.
func (r *Router) IndexFigures() (agreed model.Maybe, blocks int) {
	r.mu.Lock()
	agreed = share(int64(r.view.agreed), int64(r.view.told))
	r.mu.Unlock()
	if r.know.index != nil {
		blocks = r.know.index.Stats().Blocks
	}
	return agreed, blocks
}

func addTotals(t *model.IndexTotals, s prefix.Stats) {
	t.Blocks, t.Owned, t.Bytes, t.Evicted = t.Blocks+s.Blocks, t.Owned+s.Owned, t.Bytes+s.Bytes, t.Evicted+s.Evicted
}

// describe asks the feed of a rank.
func (r *Router) describe(s *source, now time.Time, row *model.IndexRank, findings []model.Finding) []model.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(now)
	s.feed.Tick(s.now)
	s.noteDoubt()
	r.askReplay(s)
	st := s.feed.Stats()
	row.EventAt, row.Gaps, row.Restarts = s.feed.Heard(), st.Gaps, st.Restarts
	if seq, ok := s.feed.Sequence(); ok {
		row.Seq = seq
	}
	row.Feed = feedState(s.feed.State(s.now))
	refused := s.feed.Refused()
	row.Refused, row.LastError = s.refused, refused.LastFault()
	if s.bad != "" {
		row.LastError = s.bad
	}
	if s.replayErr != "" && row.Feed == model.FeedGap {
		row.LastError = "replay: " + s.replayErr
	}
	for _, reason := range event.Reasons() {
		if !reason.Expected() {
			row.Refused += refused.Count(reason)
		}
	}
	for _, f := range s.feed.Findings(s.now) {
		findings = append(findings, model.Finding{
			Code: f.Kind.String(), Target: row.Target, Since: f.Since, Message: f.Text, Next: f.Next,
		})
	}
	return findings
}

func feedState(s event.State) model.IndexFeed {
	switch s {
	case event.Live:
		return model.FeedLive
	case event.Gap:
		return model.FeedGap
	case event.Doubt:
		return model.FeedDoubt
	case event.Silent:
		return model.FeedSilent
	}
	return model.FeedNone
}

// indexRow is the row at a place of the gathered ones with its windows; ok is
// false when its rank has left since. The caller has the lock.
func (r *Router) indexRow(g *gathered, at int) (row model.IndexRank, ok bool) {
	row = g.ranks[at]
	w, there := r.byID[row.Target.Worker]
	if !there || row.Target.Rank >= len(r.workers[w].slots) || r.workers[w].slots[row.Target.Rank] != g.slots[at] {
		return row, false
	}
	r.view.windows[g.slots[at]].into(r.elapsed(), &row)
	return row, true
}

// putIndex writes what is known of caches into a snapshot.
func (r *Router) putIndex(s *model.State, g *gathered) {
	s.Findings = r.findings(g.findings)
	if r.know.index == nil {
		return
	}
	s.Index = make([]model.IndexRank, 0, len(g.ranks))
	for at := range g.ranks {
		if row, ok := r.indexRow(g, at); ok {
			s.Index = append(s.Index, row)
		}
	}
	g.totals.Shared = r.view.shared.top(r.start, r.elapsed(), r.know.blockTokens())
	s.IndexTotals = &g.totals
}

// takeIndex takes what differs from what was sent last.
func (s *Subscription) takeIndex(c *model.Change, g *gathered) bool {
	old := s.index // as sent, ordered by target like the new ones
	s.index, s.spareIndex = s.spareIndex[:0], s.index
	for at := range g.ranks {
		row, ok := s.r.indexRow(g, at)
		if !ok {
			continue
		}
		for len(old) > 0 && old[0].Target.Less(row.Target) {
			old = old[1:] // its rank has left, which RanksGone says
		}
		if len(old) == 0 || old[0].Target != row.Target || !sameIndex(&row, &old[0]) {
			c.Index = append(c.Index, row)
		}
		s.index = append(s.index, row)
	}
	if s.r.know.index != nil {
		t := g.totals
		t.Shared = s.r.view.shared.top(s.r.start, s.r.elapsed(), s.r.know.blockTokens())
		if !sameIndexTotals(&t, &s.indexTotals) {
			s.indexTotals, c.IndexTotals = t, &t
		}
	}
	if f := s.r.findings(g.findings); !slices.Equal(f, s.findings) {
		s.findings, c.Findings, c.FindingsChanged = f, f, true
	}
	return len(c.Index) > 0 || c.IndexTotals != nil || c.FindingsChanged
}

func sameIndex(a, b *model.IndexRank) bool {
	x, y := *a, *b
	x.Hit, x.Reachable, x.Agreed, y.Hit, y.Reachable, y.Agreed = 0, 0, 0, 0, 0, 0
	return x == y && same(a.Hit, b.Hit) && same(a.Reachable, b.Reachable) && same(a.Agreed, b.Agreed)
}

func sameIndexTotals(a, b *model.IndexTotals) bool {
	return a.Blocks == b.Blocks && a.Owned == b.Owned && a.Bytes == b.Bytes && a.Evicted == b.Evicted &&
		same(a.EventsPerSec, b.EventsPerSec) && slices.Equal(a.Shared, b.Shared)
}
