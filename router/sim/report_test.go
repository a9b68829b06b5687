package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/trace"
)

func TestQuantiles(t *testing.T) {
	var s samples
	if q := s.quantiles(); q.Mean.Known() || q.P99.Known() {
		t.Errorf("of nothing: %+v", q)
	}
	for i := 200; i > 0; i-- {
		s.add(float64(i))
	}
	if q := s.quantiles(); q != (Quantiles{Mean: 100.5, P50: 100, P90: 180, P99: 198}) {
		t.Errorf("of 1 to 200: %+v", q)
	}
	one := samples{}
	one.add(7)
	if q := one.quantiles(); q != (Quantiles{7, 7, 7, 7}) {
		t.Errorf("of one: %+v", q)
	}
}

func TestReportOfNothing(t *testing.T) {
	cfg := small(2, 2)
	s, err := New(cfg, (&trace.Trace{}).Play())
	if err != nil {
		t.Fatal(err)
	}
	r := s.Report(0)
	for name, m := range map[string]model.Maybe{
		"hit": r.PrefixHitRate, "ideal": r.IdealHitRate, "of ideal": r.ShareOfIdeal, "max": r.MaxOverMeanRequests,
		"wait": r.StepWaitShare, "moves": r.MovesPerConversation, "speed": r.DecisionsPerSecond, "ttft": r.TTFTMs.P50,
	} {
		if m.Known() {
			t.Errorf("%s of nothing is %f", name, m)
		}
	}
	if !bytes.Contains(reportJSON(t, r), []byte(`"prefix_hit_rate":null`)) {
		t.Errorf("%s", reportJSON(t, r))
	}
}

func TestReportNamesTheFiguresOfTheContract(t *testing.T) {
	cfg := small(2, 2)
	cfg.Name, cfg.BadRows = "t.jsonl", 3
	rows := []trace.Row{row(0, "a", 600, 3, 1), row(time.Second, "a", 1200, 1, 1), row(2*time.Second, "a", 1200, 1, 1)}
	s := play(t, cfg, rows, NewRotate(cfg.Specs()))
	run(t, s)
	r := s.Report(2 * time.Second)
	var got map[string]any
	if err := json.Unmarshal(reportJSON(t, r), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"requests", "prompt_tokens", "prefix_hit_rate", "ideal_hit_rate", "max_over_mean_requests", "max_over_mean_tokens",
		"ttft_ms", "e2e_ms", "tpot_ms", "step_wait_share", "moves_per_conversation", "decisions_per_second", "bad_rows",
	} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if got["requests"] != 3. || got["prompt_tokens"] != 3000. || got["bad_rows"] != 3. || got["policy"] != "rotate" ||
		got["moves_per_conversation"] != 2. || got["decisions_per_second"] != 1.5 {
		t.Errorf("%v", got)
	}
	if hit := float64(r.PrefixHitRate); hit != 512./3000 {
		t.Errorf("hit rate %f", hit)
	}
	if ideal := float64(r.IdealHitRate); ideal != (512.+1024)/3000 {
		t.Errorf("ideal %f", ideal)
	}
	if r.MaxOverMeanRequests != model.Maybe(4./3) || r.MaxOverMeanTokens != model.Maybe(1800./1500) {
		t.Errorf("max over mean %f %f", r.MaxOverMeanRequests, r.MaxOverMeanTokens)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"traffic          t.jsonl, 1× speed, 1 workers × 2 ranks × 1000 blocks of 512 tokens, rotate\n",
		"requests         3 in 1 conversations, 3 bad rows\n", "prefix hit rate  17.1 % of ideal 51.2 % (33.3 %)\n",
		"moves per conv   2.000\n", "decisions        2 per second",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestReportPassesWriteErrorsOn(t *testing.T) {
	r := Report{Unserved: 1}
	if err := r.WriteJSON(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if err := r.WriteTable(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestIdealIsUnknownPastItsBound(t *testing.T) {
	tally := newTally(0)
	tally.maxSeen = 3
	r := row(0, "a", 2048, 1, 1)
	tally.arrived(&r)
	if tally.seen != nil {
		t.Error("the endless cache has no end")
	}
	tally.arrived(&r)
}

func TestMovesOutliveTheirGenerations(t *testing.T) {
	tally := newTally(0)
	key := model.ConvKey{ID: "a"}
	for i, w := range []string{"w0", "w1", "w1", "w0"} {
		tally.moved(key, model.Target{Worker: w})
		if i == 1 { // as if maxMovers others had come
			tally.olderMovers, tally.movers = tally.movers, map[model.ConvKey]model.Target{}
		}
	}
	tally.moved(model.ConvKey{}, model.Target{Worker: "w5"})
	if tally.moves != 2 || tally.conversations != 1 {
		t.Errorf("%d moves of %d conversations", tally.moves, tally.conversations)
	}
}
