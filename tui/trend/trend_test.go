package trend

import (
	"fmt"
	"math"
	"testing"
	"time"

	"adpdeck/router/model"
)

func TestSeriesReadsAnyStretch(t *testing.T) {
	var s Series
	for i := range 3 * Kept {
		s.Add(float64(i))
		for _, c := range []struct{ n, back int }{{1, 0}, {5, 2}, {Kept, 0}, {Kept, Kept - 1}, {9, Kept}, {2 * Kept, 0}} {
			got := s.Last(c.n, c.back)
			want := max(0, min(c.n, min(i+1, Kept)-c.back))
			if len(got) != want {
				t.Fatalf("after %d, n %d back %d: %d samples, want %d", i, c.n, c.back, len(got), want)
			}
			for j, v := range got {
				if int(v) != i-c.back-len(got)+1+j {
					t.Fatalf("after %d, n %d back %d: %v", i, c.n, c.back, got)
				}
			}
		}
	}
}

func TestBookKeepsUnknownUnknown(t *testing.T) {
	b := NewBook()
	s := &model.State{Totals: model.Totals{Hit: model.Unknown(), Queued: 3}, Ranks: []model.Rank{
		{Target: model.Target{Worker: "w0"}, Tokens: 7, ReportedAt: time.Unix(1, 0)},
		{Target: model.Target{Worker: "w0", Rank: 1}},
	}}
	b.Sample(s)
	if got := b.Total(Hit, 5); len(got) != 1 || !math.IsNaN(got[0]) {
		t.Errorf("unknown hit became %v", got)
	}
	if got := b.Tokens(model.Target{Worker: "w0", Rank: 1}, 5); len(got) != 1 || !math.IsNaN(got[0]) {
		t.Errorf("a rank that never reported has %v", got)
	}
	b.Sample(&model.State{Ranks: s.Ranks[1:]})
	if got := fmt.Sprint(b.Tokens(model.Target{Worker: "w0"}, 5)); got != "[7 NaN]" {
		t.Errorf("a rank that left has %s", got)
	}
	for range Kept {
		b.Sample(&model.State{})
	}
	if len(b.tokens) != 0 {
		t.Errorf("%d series of ranks that are gone", len(b.tokens))
	}
	b.SetBack(Kept)
	if got := b.Total(Queued, 5); len(got) != 0 {
		t.Errorf("older than everything kept: %v", got)
	}
}

func TestSpanIsTheRoutersTime(t *testing.T) {
	for name, c := range map[string]struct {
		period time.Duration
		n      int
		want   time.Duration
	}{
		"live":             {time.Second, 30, 30 * time.Second},
		"live, not to the": {1040 * time.Millisecond, 30, 30 * time.Second},
		"eight times":      {8 * time.Second, 30, 4 * time.Minute},
		"a quarter":        {250 * time.Millisecond, 40, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBook()
			if got := b.Span(c.n); got != time.Duration(c.n)*time.Second {
				t.Errorf("without samples %v", got)
			}
			for i := range 2 * Kept {
				b.Sample(&model.State{At: time.Unix(0, 0).Add(time.Duration(i) * c.period)})
			}
			b.SetBack(Kept - 1)
			if got := b.Span(c.n); got != time.Duration(c.n)*time.Second {
				t.Errorf("at the oldest %v", got)
			}
			b.SetBack(3)
			if got := b.Span(c.n); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
