package feed

import (
	"cmp"
	"slices"
	"sort"

	"adpdeck/router/model"
)

// Merge returns the state that s becomes by ch; neither is written. Workers and
// ranks that have left go first, with what is listed of them. Objects are
// replaced by identity (worker id, target, conversation key, version, event
// id), every list keeps its order and its bound:
//
//	ranks, workers   by target, by name, at most 16,384 of each
//	index            by target, at most 16,384; findings are replaced, at most
//	                 model.MaxFindings
//	conversations    by last activity, newest first, at most model.MaxFeedConvs
//	revisions        newest first, at most model.MaxRevisions
//	events           newest first, at most model.MaxEvents
//
// Decisions and outcomes of ch are no part of a State. To merge many changes in
// turn use a Merger: it does not have to index the conversations each time.
func Merge(s *model.State, ch *model.Change) *model.State {
	var m Merger
	m.Reset(s)
	return m.Apply(ch)
}

// Merger merges changes one after another. Its cost per change is a copy of the
// pointers to the conversations and a search for each that changed. The states
// it returns are never written again. The zero value is empty; a Merger is not
// safe for concurrent use.
type Merger struct {
	state *model.State
	byKey map[model.ConvKey]*model.Conv
}

// Reset starts from s, which is not written. Lists that are out of order or too
// long are put right in a copy; of two conversations with one key the newer
// stays.
func (m *Merger) Reset(s *model.State) {
	next := *s
	next.Convs = m.index(s.Convs)
	next.Revisions = newestFirst(nil, s.Revisions, revisionID, model.MaxRevisions)
	next.Events = newestFirst(nil, s.Events, eventID, model.MaxEvents)
	next.Ranks = upsert(nil, s.Ranks, rankTarget, model.Target.Less)
	next.Index = upsert(nil, s.Index, indexTarget, model.Target.Less)
	next.Findings = s.Findings[:min(len(s.Findings), model.MaxFindings)]
	next.Workers = upsert(nil, s.Workers, workerTarget, model.Target.Less)
	m.state = &next
}

// State is the newest state, nil before Reset.
func (m *Merger) State() *model.State { return m.state }

// Apply merges ch and returns the new state.
func (m *Merger) Apply(ch *model.Change) *model.State {
	next := *m.state
	if !ch.At.IsZero() {
		next.At = ch.At
	}
	if ch.Version != 0 {
		next.Version = ch.Version
	}
	if ch.Settings != nil {
		next.Settings = *ch.Settings
	}
	if ch.Totals != nil {
		next.Totals = *ch.Totals
	}
	if ch.Source != nil {
		next.Source = *ch.Source
	}
	if len(ch.WorkersGone)+len(ch.RanksGone) > 0 {
		depart(&next, ch)
	}
	next.Workers = upsert(next.Workers, ch.Workers, workerTarget, model.Target.Less)
	next.Ranks = upsert(next.Ranks, ch.Ranks, rankTarget, model.Target.Less)
	next.Index = upsert(next.Index, ch.Index, indexTarget, model.Target.Less)
	if ch.IndexTotals != nil {
		next.IndexTotals = ch.IndexTotals
	}
	if ch.FindingsChanged {
		next.Findings = ch.Findings[:min(len(ch.Findings), model.MaxFindings)]
	}
	next.Revisions = newestFirst(next.Revisions, ch.Revisions, revisionID, model.MaxRevisions)
	next.Events = newestFirst(next.Events, ch.Events, eventID, model.MaxEvents)
	if len(ch.Convs)+len(ch.Gone) > 0 {
		next.Convs = m.mergeConvs(next.Convs, ch.Convs, ch.Gone)
	}
	m.state = &next
	return m.state
}

// depart takes away the workers that have left with their ranks, and the ranks
// that workers have lost.
func depart(s *model.State, ch *model.Change) {
	workers := make(map[string]bool, len(ch.WorkersGone))
	for _, id := range ch.WorkersGone {
		workers[id] = true
	}
	ranks := make(map[model.Target]bool, len(ch.RanksGone))
	for _, t := range ch.RanksGone {
		ranks[t] = true
	}
	left := func(t model.Target) bool { return workers[t.Worker] || ranks[t] }
	s.Workers = without(s.Workers, func(w *model.Worker) bool { return workers[w.ID] })
	s.Ranks = without(s.Ranks, func(r *model.Rank) bool { return left(r.Target) })
	s.Index = without(s.Index, func(r *model.IndexRank) bool { return left(r.Target) })
}

// without copies list but for what goes.
func without[T any](list []T, goes func(*T) bool) []T {
	kept := make([]T, 0, len(list))
	for i := range list {
		if !goes(&list[i]) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// index sorts convs, drops double keys and what exceeds the bound, and builds
// the map from key to conversation.
func (m *Merger) index(convs []*model.Conv) []*model.Conv {
	list := convs
	if !slices.IsSortedFunc(list, convOrder) {
		list = slices.SortedStableFunc(slices.Values(convs), convOrder)
	}
	m.byKey = make(map[model.ConvKey]*model.Conv, len(list))
	double := 0
	for _, c := range list {
		if _, held := m.byKey[c.Key]; held {
			double++
			continue
		}
		m.byKey[c.Key] = c
	}
	if double > 0 {
		list = slices.DeleteFunc(slices.Clone(list), func(c *model.Conv) bool { return m.byKey[c.Key] != c })
	}
	return m.bound(slices.Clip(list))
}

// mergeConvs returns a new list: old without gone and without what fresh
// replaces, with fresh put where its last activity belongs.
func (m *Merger) mergeConvs(old, fresh []*model.Conv, gone []model.ConvKey) []*model.Conv {
	out := make([]int, 0, len(fresh)+len(gone)) // positions in old that go
	forget := func(key model.ConvKey) {
		c, held := m.byKey[key]
		if !held {
			return
		}
		delete(m.byKey, key)
		if at, found := slices.BinarySearchFunc(old, c, convOrder); found && old[at] == c {
			out = append(out, at)
		}
	}
	for _, key := range gone {
		forget(key)
	}
	for _, c := range fresh {
		forget(c.Key)
		m.byKey[c.Key] = c
	}
	in := make([]*model.Conv, 0, len(fresh))
	for _, c := range fresh { // the last of several with one key wins
		if m.byKey[c.Key] == c {
			in = append(in, c)
		}
	}
	slices.SortFunc(in, convOrder)
	in = slices.Compact(in)
	slices.Sort(out)
	out = slices.Compact(out)
	return m.bound(weave(old, out, in))
}

// weave copies old in runs, leaves out the positions in out and puts in the
// elements of in; all three are ordered.
func weave(old []*model.Conv, out []int, in []*model.Conv) []*model.Conv {
	list := make([]*model.Conv, 0, len(old)-len(out)+len(in))
	from := 0
	copyTo := func(to int) {
		for len(out) > 0 && out[0] < to {
			list = append(list, old[from:out[0]]...)
			from, out = out[0]+1, out[1:]
		}
		if from < to {
			list = append(list, old[from:to]...)
			from = to
		}
	}
	for _, c := range in {
		at, _ := slices.BinarySearchFunc(old, c, convOrder)
		copyTo(at)
		list = append(list, c)
	}
	copyTo(len(old))
	return list
}

func (m *Merger) bound(list []*model.Conv) []*model.Conv {
	if len(list) <= model.MaxFeedConvs {
		return list
	}
	for _, c := range list[model.MaxFeedConvs:] {
		delete(m.byKey, c.Key)
	}
	return list[:model.MaxFeedConvs:model.MaxFeedConvs]
}

// convOrder is a total order over keys: newest activity first, then by key.
func convOrder(a, b *model.Conv) int {
	if c := b.LastAt.Compare(a.LastAt); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(a.Key.Tenant, b.Key.Tenant),
		cmp.Compare(a.Key.Model, b.Key.Model),
		cmp.Compare(a.Key.ID, b.Key.ID),
	)
}

func rankTarget(r *model.Rank) model.Target       { return r.Target }
func indexTarget(r *model.IndexRank) model.Target { return r.Target }
func workerTarget(w *model.Worker) model.Target   { return model.Target{Worker: w.ID} }
func revisionID(r *model.Revision) uint64         { return r.Version }
func eventID(e *model.Event) uint64               { return e.ID }

// maxTargets bounds the ranks, and the workers, of a state.
const maxTargets = 1 << 14

// upsert returns old with every element of fresh put in by key, in order.
// Changed elements usually come in the order of the list, so each search goes
// on from where the last one ended.
func upsert[T any, K comparable](old, fresh []T, key func(*T) K, less func(K, K) bool) []T {
	if len(fresh) == 0 {
		return old
	}
	list := slices.Clone(old)
	var places map[K]int // built when the order does not help
	from, added := 0, false
	for i := range fresh {
		k := key(&fresh[i])
		if from < len(list) && key(&list[from]) == k {
			list[from] = fresh[i]
			from++
			continue
		}
		if places == nil {
			places = make(map[K]int, len(list)+len(fresh)-i)
			for j := range list {
				places[key(&list[j])] = j
			}
		}
		at, held := places[k]
		switch {
		case held:
			list[at] = fresh[i]
		case len(list) >= maxTargets:
			continue
		default:
			at, added = len(list), true
			list, places[k] = append(list, fresh[i]), at
		}
		from = at + 1
	}
	if added {
		sort.SliceStable(list, func(a, b int) bool { return less(key(&list[a]), key(&list[b])) })
	}
	return list
}

// newestFirst returns old with fresh put in by id, the highest id first, cut to
// the bound.
func newestFirst[T any](old, fresh []T, id func(*T) uint64, bound int) []T {
	if len(fresh) == 0 {
		return old
	}
	list := make([]T, 0, len(old)+len(fresh))
	list = append(append(list, fresh...), old...)
	// Fresh stands before old, so the stable sort keeps it first and the double
	// that is dropped is the old one; of two in fresh the first stays.
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(id(&b), id(&a)) })
	list = slices.CompactFunc(list, func(a, b T) bool { return id(&a) == id(&b) })
	return slices.Clip(list[:min(len(list), bound)])
}
