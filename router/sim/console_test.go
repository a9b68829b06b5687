package sim

import (
	"testing"
	"time"

	"adpdeck/router/model"
)

// watched is what an operator sees of the console's cluster over some minutes.
type watched struct {
	report  Report
	skew    float64 // busiest ÷ mean tokens of a worker, mean over seconds
	quiet   int     // seconds without a placement
	active  float64 // requests per rank, mean
	full    float64 // share of ranks at the hard cap
	apart   float64 // requests on the busiest rank less those on the idlest, mean
	longest int     // most turns of one conversation
	waiting int     // requests waiting at the end
}

func watch(t testing.TB, set model.Settings, from, to int) watched {
	t.Helper()
	s, _ := console(t, set)
	s.Use(s.router.(*scripted).Router)
	var w watched
	turns := map[model.ConvKey]int{}
	n, placed := 0.0, int64(0)
	for sec := 1; sec <= to; sec++ {
		if _, err := s.Advance(time.Duration(sec)*time.Second, 0); err != nil {
			t.Fatal(err)
		}
		if s.placed == placed {
			w.quiet++
		}
		placed = s.placed
		if turns[s.row.Conv] = s.row.Turn; s.row.Turn > w.longest {
			w.longest = s.row.Turn
		}
		if sec < from {
			continue
		}
		for _, k := range s.workers {
			most, sum, hi, lo := 0, 0, 0, 1<<30
			for _, r := range k.ranks {
				most, sum = max(most, r.tokens), sum+r.tokens
				hi, lo = max(hi, r.active()), min(lo, r.active())
				w.active += float64(r.active())
				if r.active() >= s.cfg.HardCap {
					w.full++
				}
			}
			w.apart += float64(hi - lo)
			w.skew += float64(most*len(k.ranks)) / float64(max(sum, 1))
			n++
		}
	}
	ranks := float64(DefaultConfig().Ranks)
	w.skew, w.apart, w.active, w.full = w.skew/n, w.apart/n, w.active/n/ranks, w.full/n/ranks
	w.report = s.Report(0)
	w.waiting = s.open
	return w
}

// TestTheConsoleIsWorthWatching holds the default cluster to what the console
// needs: something happens every second, ranks differ, nothing drowns, and β
// trades cache hits for balance.
func TestTheConsoleIsWorthWatching(t *testing.T) {
	at := func(beta float64) watched {
		set := DefaultSettings()
		set.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight = beta
		w := watch(t, set, 60, 900)
		t.Logf("β %2g: hit %.3f of %.3f, skew %.2f, ttft %.0f/%.0f ms, active %.1f of 16 (%.1f apart), full %.3f, wait %.2f, open %d",
			beta, w.report.PrefixHitRate, w.report.IdealHitRate, w.skew, w.report.TTFTMs.Mean, w.report.TTFTMs.P99,
			w.active, w.apart, w.full, w.report.StepWaitShare, w.waiting)
		return w
	}
	zero, one, eight := at(0), at(1), at(8)
	if one.quiet > 0 {
		t.Errorf("nothing was placed in %d of 900 seconds", one.quiet)
	}
	if one.skew < 1.3 || one.skew > 3 || one.apart < 3 {
		t.Errorf("ranks differ by %.2f in tokens and %.1f requests", one.skew, one.apart)
	}
	if one.active < 3 || one.full > .05 || one.report.TTFTMs.P99 > 3000 {
		t.Errorf("%.1f active, %.3f full, ttft p99 %.0f ms", one.active, one.full, one.report.TTFTMs.P99)
	}
	if eight.report.PrefixHitRate > one.report.PrefixHitRate-.03 || eight.skew > one.skew-.05 || zero.skew < one.skew {
		t.Errorf("β hardly matters: hit %.3f %.3f, skew %.2f %.2f %.2f", one.report.PrefixHitRate, eight.report.PrefixHitRate, zero.skew, one.skew, eight.skew)
	}
	if one.longest < 40 {
		t.Errorf("the longest conversation had %d turns", one.longest)
	}
}
