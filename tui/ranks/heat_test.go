package ranks

import (
	"testing"

	"pgregory.net/rapid"

	"adpdeck/router/model"
	"adpdeck/tui/fixture"
)

// Every rank stands in exactly one row, in order, and there are never more rows
// than the map has room for.
func TestHeatGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ranks []*model.Rank
		for w := range rapid.IntRange(0, 40).Draw(t, "workers") {
			for r := range rapid.IntRange(1, 20).Draw(t, "ranks") {
				ranks = append(ranks, &model.Rank{Target: fixture.T("w"+string(rune('A'+w)), r)})
			}
		}
		rows, per := heatGroups(ranks)
		at := 0
		for _, row := range rows {
			if len(row) == 0 || len(row) > per {
				t.Fatalf("a row of %d, %d at most", len(row), per)
			}
			for _, r := range row {
				if r != ranks[at] {
					t.Fatalf("rank %v out of order", r.Target)
				}
				at++
			}
		}
		if at != len(ranks) || len(rows) > heatRows {
			t.Fatalf("%d of %d ranks in %d rows", at, len(ranks), len(rows))
		}
	})
}

func TestHeatLabels(t *testing.T) {
	row := func(ts ...model.Target) (r heatRow) {
		for _, x := range ts {
			r = append(r, &model.Rank{Target: x})
		}
		return r
	}
	for want, r := range map[string]heatRow{
		"w0/3": row(fixture.T("w0", 3)), "w0/4–7": row(fixture.T("w0", 4), fixture.T("w0", 7)), "w0/4–w1/3": row(fixture.T("w0", 4), fixture.T("w1", 3)),
	} {
		if got := r.label().String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A row is the fullest of its ranks at each moment; a rank that joined late adds
// to the newest moments only.
func TestHeatValues(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 200, 60)
	s := fixture.Normal()
	a, late := &s.Ranks[0], model.Rank{Target: fixture.T("late", 0), ReportedAt: s.At, Tokens: 900_000}
	s.Ranks = append(s.Ranks, late)
	f.Trends.Sample(s)
	own := f.Trends.Tokens(a.Target, 30)
	got := heatRow{&late, a}.values(f, 30)
	if len(got) != 30 || got[28] != own[28] || got[29] != 900_000 {
		t.Errorf("%v of %v", got, own)
	}
}
