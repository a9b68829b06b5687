package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"adpdeck/router/model"
)

// TestCtlGetIsNotMisread: a loss that is over is no state, a drain is seen on a rank
// that is down, and the history says what no longer holds.
func TestCtlGetIsNotMisread(t *testing.T) {
	s := &model.State{
		Workers: []model.Worker{
			{ID: "w0", Liveness: model.LiveUp, LivenessWhy: "no answer within 1s"},
			{ID: "w1", Liveness: model.LiveDown, LivenessWhy: "refused"},
		},
		Ranks: []model.Rank{
			{Target: model.Target{Worker: "w1"}, Availability: model.Draining, Down: true},
			{Target: model.Target{Worker: "w1", Rank: 1}, Availability: model.Ready, Down: true},
		},
		Revisions: []model.Revision{{Version: 3, What: "undo v2 (x)", Undoes: 2}, {Version: 2, What: "x\nv9 evil", Actor: "a\tb", UndoneBy: 3}},
		Totals:    model.Totals{Refused: model.Refused{Other: 7}},
	}
	lines := func(print func(io.Writer, *model.State)) []string {
		var out bytes.Buffer
		print(&out, s)
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	for name, c := range map[string]struct {
		print func(io.Writer, *model.State)
		line  int
		want  string
		lines int
	}{
		"up again":        {printWorkers, 1, "\t-", 3},
		"down":            {printWorkers, 2, "\trefused", 3},
		"down and drains": {printRanks, 1, "w1/0\tdown, drain\t", 3},
		"down alone":      {printRanks, 2, "w1/1\tdown\t", 3},
		"undone":          {printHistory, 2, `a\tb` + "\t" + `x\nv9 evil` + "\tv3\t", 3},
		"in force":        {printHistory, 1, "undo v2 (x)\t-\t", 3},
		"refused":         {printTotals, 10, "7 named no worker, rank or model that can be had", 11},
	} {
		got := lines(c.print)
		if len(got) != c.lines || !strings.Contains(got[c.line], c.want) || strings.HasSuffix(c.want, "-") && !strings.HasSuffix(got[c.line], c.want) {
			t.Errorf("%s: %d lines, %q, want %q in line %d", name, len(got), got, c.want, c.line)
		}
	}
}
