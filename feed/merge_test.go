package feed

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"adpdeck/router/model"
)

// TestMergeProperty compares the merger with one that goes over everything, on
// random states and changes: same conversations in the same order, nothing that
// was published written again.
func TestMergeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(1_000, 0)
		key := rapid.Custom(func(t *rapid.T) model.ConvKey {
			return model.ConvKey{
				Tenant: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tenant"),
				ID:     fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "id")),
			}
		})
		conv := rapid.Custom(func(t *rapid.T) *model.Conv {
			return &model.Conv{
				Key:    key.Draw(t, "key"),
				LastAt: at.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "last")) * time.Second),
				Turns:  rapid.IntRange(0, 99).Draw(t, "turns"),
			}
		})
		rank := rapid.Custom(func(t *rapid.T) model.Rank {
			return model.Rank{
				Target: model.Target{Worker: rapid.SampledFrom([]string{"w0", "w2", "w10"}).Draw(t, "worker"), Rank: rapid.IntRange(0, 3).Draw(t, "rank")},
				Tokens: rapid.IntRange(0, 99).Draw(t, "tokens"),
			}
		})
		start := &model.State{
			Convs: rapid.SliceOf(conv).Draw(t, "convs"),
			Ranks: rapid.SliceOfDistinct(rank, func(r model.Rank) model.Target { return r.Target }).Draw(t, "ranks"),
		}
		var m Merger
		m.Reset(start)
		want := slowState(start)
		same(t, "reset", m.State(), want)
		for i := range rapid.IntRange(1, 8).Draw(t, "changes") {
			before := m.State()
			copied := deepCopy(before)
			ch := &model.Change{
				Version: uint64(i + 2),
				Convs:   rapid.SliceOf(conv).Draw(t, "changed"),
				Gone:    rapid.SliceOf(key).Draw(t, "gone"),
				Ranks:   rapid.SliceOf(rank).Draw(t, "changed ranks"),

				WorkersGone: rapid.SliceOfN(rapid.SampledFrom([]string{"w0", "w2", "w10"}), 0, 1).Draw(t, "workers gone"),
			}
			for _, r := range rapid.SliceOfN(rank, 0, 2).Draw(t, "ranks gone") {
				ch.RanksGone = append(ch.RanksGone, r.Target)
			}
			for _, r := range ch.Ranks {
				ch.Workers = append(ch.Workers, model.Worker{ID: r.Target.Worker, Waiting: r.Tokens})
				ch.Index = append(ch.Index, model.IndexRank{Target: r.Target, Device: r.Tokens})
			}
			if n := len(before.Convs); n > 0 && rapid.Bool().Draw(t, "same pointer again") {
				c := before.Convs[rapid.IntRange(0, n-1).Draw(t, "which")]
				ch.Convs = append(ch.Convs, c, c)
			}
			want = slowMerge(want, ch)
			same(t, fmt.Sprintf("change %d", i), m.Apply(ch), want)
			same(t, "Merge", Merge(before, ch), want)
			same(t, "published state was written", before, copied)
		}
	})
}

func deepCopy(s *model.State) *model.State {
	c := *s
	c.Convs = slices.Clone(s.Convs)
	for i, p := range c.Convs {
		v := *p
		c.Convs[i] = &v
	}
	c.Ranks, c.Workers, c.Index = slices.Clone(s.Ranks), slices.Clone(s.Workers), slices.Clone(s.Index)
	return &c
}

func same(t *rapid.T, what string, got, want *model.State) {
	t.Helper()
	if d := cmp.Diff(want.Convs, got.Convs, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s: conversations (-want +got):\n%s", what, d)
	}
	if d := cmp.Diff(want.Ranks, got.Ranks, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s: ranks (-want +got):\n%s", what, d)
	}
	if d := cmp.Diff(want.Workers, got.Workers, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s: workers (-want +got):\n%s", what, d)
	}
	if d := cmp.Diff(want.Index, got.Index, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s: index (-want +got):\n%s", what, d)
	}
}

func slowState(s *model.State) *model.State {
	list := slices.Clone(s.Convs)
	slices.SortStableFunc(list, convOrder)
	held := map[model.ConvKey]bool{}
	var out model.State
	for _, c := range list {
		if !held[c.Key] {
			held[c.Key] = true
			out.Convs = append(out.Convs, c)
		}
	}
	out.Ranks = slices.Clone(s.Ranks)
	slices.SortFunc(out.Ranks, rankOrder)
	return &out
}

func slowMerge(s *model.State, ch *model.Change) *model.State {
	byKey := map[model.ConvKey]*model.Conv{}
	for _, c := range s.Convs {
		byKey[c.Key] = c
	}
	for _, k := range ch.Gone {
		delete(byKey, k)
	}
	for _, c := range ch.Convs {
		byKey[c.Key] = c
	}
	var out model.State
	for _, c := range byKey {
		out.Convs = append(out.Convs, c)
	}
	slices.SortFunc(out.Convs, convOrder)
	left := func(t model.Target) bool {
		return slices.Contains(ch.WorkersGone, t.Worker) || slices.Contains(ch.RanksGone, t)
	}
	out.Ranks = slowRows(s.Ranks, ch.Ranks, rankTarget, left)
	out.Index = slowRows(s.Index, ch.Index, indexTarget, left)
	out.Workers = slowRows(s.Workers, ch.Workers, workerTarget, func(t model.Target) bool { return slices.Contains(ch.WorkersGone, t.Worker) })
	return &out
}

func slowRows[T any](old, fresh []T, target func(*T) model.Target, left func(model.Target) bool) (out []T) {
	rows := map[model.Target]T{}
	for i := range old {
		if t := target(&old[i]); !left(t) {
			rows[t] = old[i]
		}
	}
	for i := range fresh {
		rows[target(&fresh[i])] = fresh[i]
	}
	for _, r := range rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b T) int { return target(&a).Compare(target(&b)) })
	return out
}

func rankOrder(a, b model.Rank) int {
	switch {
	case a.Target.Less(b.Target):
		return -1
	case b.Target.Less(a.Target):
		return 1
	}
	return 0
}

func TestMergeHistory(t *testing.T) {
	s := &model.State{
		Version:   2,
		Revisions: []model.Revision{{Version: 2, What: "β"}, {Version: 1}},
		Events:    []model.Event{{ID: 1}, {ID: 2}}, // out of order: put right
	}
	got := Merge(s, &model.Change{
		Version:   3,
		Revisions: []model.Revision{{Version: 3, Undoes: 2}, {Version: 2, What: "β", UndoneBy: 3}},
		Events:    []model.Event{{ID: 3}},
	})
	wantRevs := []model.Revision{{Version: 3, Undoes: 2}, {Version: 2, What: "β", UndoneBy: 3}, {Version: 1}}
	if d := cmp.Diff(wantRevs, got.Revisions); d != "" {
		t.Errorf("revisions (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]model.Event{{ID: 3}, {ID: 2}, {ID: 1}}, got.Events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if got.Version != 3 || s.Version != 2 {
		t.Errorf("version %d, before %d; want 3 and 2", got.Version, s.Version)
	}
}

func TestMergeBounds(t *testing.T) {
	s := bigState(model.MaxFeedConvs, 0)
	newest := &model.Conv{Key: model.ConvKey{ID: "new"}, LastAt: s.At.Add(time.Second)}
	oldest := &model.Conv{Key: model.ConvKey{ID: "old"}, LastAt: s.At.Add(-1e6 * time.Hour)}
	var events []model.Event
	for i := range 2 * model.MaxEvents {
		events = append(events, model.Event{ID: uint64(i + 1)})
	}
	got := Merge(s, &model.Change{Convs: []*model.Conv{oldest, newest}, Events: events})
	if len(got.Convs) != model.MaxFeedConvs || got.Convs[0] != newest || slices.Contains(got.Convs, oldest) {
		t.Errorf("%d conversations, first %v", len(got.Convs), got.Convs[0].Key)
	}
	if len(got.Events) != model.MaxEvents || got.Events[0].ID != 2*model.MaxEvents {
		t.Errorf("%d events, first %d", len(got.Events), got.Events[0].ID)
	}
}

// bigState has n conversations a second apart, newest first, and ranks ranks.
func bigState(n, ranks int) *model.State {
	s := &model.State{At: time.Unix(1_800_000_000, 0).UTC(), Version: 1}
	for i := range n {
		at := s.At.Add(-time.Duration(i) * time.Second)
		s.Convs = append(s.Convs, &model.Conv{
			Key:   model.ConvKey{Tenant: "tenant-a", Model: "m", ID: fmt.Sprintf("conv-%08x-41aa", i)},
			Bound: model.Target{Worker: "w0", Rank: 1}, Last: model.Target{Worker: "w0", Rank: 1}, Pin: model.PinAuto,
			FirstAt: at, LastAt: at, Turns: 7, PromptTokens: 6144, CachedTokens: 5120, Honoured: 7,
		})
	}
	for i := range ranks {
		s.Ranks = append(s.Ranks, model.Rank{
			Target: model.Target{Worker: fmt.Sprintf("w%d", i/8), Rank: i % 8}, Availability: model.Ready, Weight: 1,
			ReportedAt: s.At, Active: 12, MaxActive: 16, Tokens: 48123, PendingTokens: 2310, KVUsedBlocks: 12345,
			KVTotalBlocks: 20000, InFlight: 13, Hit: 0.9123, Reachable: 0.9331, Pins: 121, Requests: 88120,
		})
	}
	return s
}

func BenchmarkMerge(b *testing.B) {
	for _, n := range []int{100, model.MaxFeedConvs} {
		b.Run(fmt.Sprintf("convs=%d/changed=64", n), func(b *testing.B) {
			s := bigState(n, 64)
			var m Merger
			m.Reset(s)
			at := s.At
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at = at.Add(100 * time.Millisecond)
				ch := &model.Change{At: at, Ranks: s.Ranks, Totals: &s.Totals}
				for k := range 64 {
					c := *s.Convs[(i*64+k)*7919%n]
					c.LastAt = at
					ch.Convs = append(ch.Convs, &c)
				}
				m.Apply(ch)
			}
		})
	}
}
