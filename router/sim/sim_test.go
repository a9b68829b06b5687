package sim

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/trace"
)

func TestTiming(t *testing.T) {
	m := DefaultTiming()
	cases := map[string]struct {
		got  time.Duration
		want float64
	}{
		"no prefill":     {m.prefill(0), 0},
		"one token":      {m.prefill(1), 16.516604},
		"a full chunk":   {m.prefill(8192), 169.137114}, // 28.252733 + 124.382740 + 16.501420, rounded below
		"empty cache":    {m.decode(0), 5.74},
		"half full":      {m.decode(.5), 26.31},
		"full":           {m.decode(1), 34.01},
		"more than full": {m.decode(3), 34.01},
	}
	for name, c := range cases {
		if math.Abs(float64(c.got)/1e6-c.want) > .001 {
			t.Errorf("%s takes %s, want %f ms", name, c.got, c.want)
		}
	}
	m.DecodeA, m.DecodeB, m.DecodeC = 0, 0, .2
	if m.decode(.5) != time.Millisecond {
		t.Error("decoding is faster than its floor")
	}
}

// TestBarrier works one step out by hand: two ranks, one with a full chunk,
// one with 512 tokens. Both first tokens come when the slower is done, and the
// faster one waits for the difference.
func TestBarrier(t *testing.T) {
	cfg := small(2, 4)
	m := cfg.Timing
	rows := []trace.Row{row(0, "a", 8192, 1, 1000), row(0, "b", 512, 1, 2000)}
	r := run(t, play(t, cfg, rows, script(t, NewRotate(cfg.Specs()))))
	slow, fast := float64(m.prefill(8192)), float64(m.prefill(512))
	if r.Steps != 1 || float64(r.TTFTMs.P99) != slow/1e6 || float64(r.TTFTMs.P50) != slow/1e6 || r.E2EMs != r.TTFTMs {
		t.Errorf("%d steps, ttft %+v, e2e %+v, want %f", r.Steps, r.TTFTMs, r.E2EMs, slow/1e6)
	}
	if want := (slow - fast) / (2 * slow); math.Abs(float64(r.StepWaitShare)-want) > 1e-12 {
		t.Errorf("wait share %f, want %f", r.StepWaitShare, want)
	}
}

// TestDecodeAndChunksTogether works two requests out by hand. a decodes while
// b prefills 20,000 tokens in three chunks on the other rank; every token of a
// takes a step as long as b's chunk.
func TestDecodeAndChunksTogether(t *testing.T) {
	cfg := small(2, 4)
	m := cfg.Timing
	rows := []trace.Row{row(0, "a", 600, 5, 1000), row(time.Millisecond, "b", 20_000, 1, 2000)}
	s := play(t, cfg, rows, script(t, NewRotate(cfg.Specs())))
	r := run(t, s)
	room := float64(cfg.Blocks * cfg.BlockTokens)
	first := m.prefill(600)
	chunks := m.prefill(8192) + m.prefill(8192) + m.prefill(20_000-2*8192)
	last := m.decode(604 / room) // the fifth token of a, alone
	if want := first + chunks + last; s.Elapsed() != want {
		t.Errorf("the run took %s, want %s", s.Elapsed(), want)
	}
	ttftB := float64(first+chunks-time.Millisecond) / 1e6
	if r.Steps != 5 || float64(r.TTFTMs.P99) != ttftB {
		t.Errorf("%d steps, ttft of b %f, want %f", r.Steps, r.TTFTMs.P99, ttftB)
	}
	if want := float64(chunks+last) / 4 / 1e6; math.Abs(float64(r.TPOTMs.Mean)-want) > 1e-9 {
		t.Errorf("a token of a takes %f, want %f", r.TPOTMs.Mean, want)
	}
	wait := float64(first)                                                                 // rank 1 while a prefills
	wait += float64(chunks - m.decode(601/room) - m.decode(602/room) - m.decode(603/room)) // rank 0 behind b's chunks
	wait += float64(last)
	if want := wait / float64(2*s.Elapsed()); math.Abs(float64(r.StepWaitShare)-want) > 1e-9 {
		t.Errorf("wait share %f, want %f", r.StepWaitShare, want)
	}
}

// TestReuse works the cached tokens of one rank out by hand: all but the last
// token may be found, full blocks only, once the first prefill is complete.
func TestReuse(t *testing.T) {
	cfg := small(1, 4)
	rows := []trace.Row{
		row(0, "a", 1024, 2, 1000),             // nothing to find
		row(0, "b", 2000, 2, 1000),             // the same step: still nothing
		row(time.Second, "c", 1024, 2, 1000),   // 1023 probed: one block
		row(2*time.Second, "d", 1025, 2, 1000), // 1024 probed: two blocks
		row(3*time.Second, "e", 2000, 2, 1000), // three full blocks, the last partial
		row(4*time.Second, "f", 4096, 2, 1000), // three of b, then new
		row(5*time.Second, "g", 1600, 2, 1),    // other content
		row(6*time.Second, "h", 512, 2, 1000),  // 511 probed: nothing
	}
	sc := script(t, NewRotate(cfg.Specs()))
	r := run(t, play(t, cfg, rows, sc))
	if found := int(math.Round(float64(r.PrefixHitRate) * float64(r.PromptTokens))); found != 512+1024+1536+1536 {
		t.Errorf("%d tokens were found", found)
	}
	// One endless cache sees b after a.
	if ideal := int(math.Round(float64(r.IdealHitRate) * float64(r.PromptTokens))); ideal != 1024+512+1024+1536+1536 {
		t.Errorf("the ideal finds %d tokens", ideal)
	}
}

func TestNoRoomKeepsTheOrder(t *testing.T) {
	cfg := small(1, 1)
	var rows []trace.Row
	for i := range 6 {
		rows = append(rows, row(0, "", 600, 3, uint64(1000*i)))
	}
	// The router leaves a request now and then although there is room.
	calls := 0
	lazy := &stubborn{Rotate: *NewRotate(cfg.Specs())}
	lazy.step = func(in *model.StepInput, out *model.StepOutput) error {
		if calls++; calls%2 == 0 {
			resetOutput(out, len(in.States))
			for range in.Requests {
				out.Ranks = append(out.Ranks, model.NoRank)
			}
			return nil
		}
		return lazy.Rotate.Step("w0", in, out)
	}
	sc := script(t, lazy)
	r := run(t, play(t, cfg, rows, sc))
	next := int64(cfg.HardCap)
	for _, line := range sc.log {
		if f := strings.Fields(line); f[0] == "first" {
			if f[1] != "1" && f[1] != "2" && f[1] != "3" && f[1] != "4" && f[1] != "5" && f[1] != "6" || f[1] != string(rune('0'+next)) {
				t.Errorf("%s came out of turn, want %d", line, next)
			}
			next++
		}
	}
	if r.Unserved != 0 || next != 7 {
		t.Errorf("%d unserved, next %d", r.Unserved, next)
	}
}

// TestBalanceGateHolds works the gate out by hand: both ranks decode when a
// request comes for one of them, so its prefill is held until timeout_iters
// steps have gone by.
func TestBalanceGateHolds(t *testing.T) {
	cfg := small(2, 4)
	m := cfg.Timing
	rows := []trace.Row{
		row(0, "a", 600, 50, 1000), row(0, "b", 600, 50, 2000), row(time.Millisecond, "c", 600, 1, 3000),
	}
	ttft := func(timeout int) time.Duration {
		gate := model.DefaultAttentionDpConfig()
		gate.EnableBalance, gate.TimeoutIters = timeout > 0, timeout
		sc := script(t, NewRotate(cfg.Specs()))
		sc.gate = &gate
		r := run(t, play(t, cfg, rows, sc))
		return time.Duration(math.Round(float64(r.TTFTMs.P99) * 1e6))
	}
	room := float64(cfg.Blocks * cfg.BlockTokens)
	arrivedBefore := m.prefill(600) - time.Millisecond
	want := arrivedBefore + m.prefill(600) + m.decode(601/room)
	if got := ttft(0); got != want {
		t.Errorf("without the gate the first token takes %s, want %s", got, want)
	}
	want = arrivedBefore + m.decode(601/room) + m.decode(602/room) + m.prefill(600) + m.decode(603/room)
	if got := ttft(3); got != want {
		t.Errorf("held for two steps the first token takes %s, want %s", got, want)
	}
}

func TestWhatCannotFitFails(t *testing.T) {
	cfg := small(1, 4)
	cfg.Blocks = 10
	rows := []trace.Row{
		row(0, "", 3000, 100, 1), row(0, "", 6000, 1, 100), row(0, "", 5000, 100, 200), // 7, 12 and 10 blocks
	}
	r := run(t, play(t, cfg, rows, script(t, NewRotate(cfg.Specs()))))
	if r.Failed != 1 || r.Unserved != 0 || r.Requests != 3 {
		t.Errorf("%d failed, %d unserved of %d", r.Failed, r.Unserved, r.Requests)
	}
}

func TestRefusedAndUnservedAreCounted(t *testing.T) {
	cfg := small(2, 2)
	rows := []trace.Row{row(0, "a", 600, 2, 1), row(0, "b", 600, 2, 100), row(time.Second, "c", 600, 2, 200)}
	no := &stubborn{Rotate: *NewRotate(cfg.Specs()), submit: func(*model.Request) (model.Target, error) {
		return model.Target{}, errBroken
	}}
	s := play(t, cfg, rows, no)
	if r := run(t, s); r.Refused != 3 || !errors.Is(s.Refusal(), errBroken) || r.Unserved != 0 {
		t.Errorf("%d refused for %v", r.Refused, s.Refusal())
	}
	never := &stubborn{Rotate: *NewRotate(cfg.Specs()), step: func(in *model.StepInput, out *model.StepOutput) error {
		resetOutput(out, len(in.States))
		for range in.Requests {
			out.Ranks = append(out.Ranks, model.NoRank)
		}
		return nil
	}}
	if r := run(t, play(t, cfg, rows, never)); r.Unserved != 3 {
		t.Errorf("%d unserved of 3", r.Unserved)
	}
	astray := &stubborn{Rotate: *NewRotate(cfg.Specs()), submit: func(*model.Request) (model.Target, error) {
		return model.Target{Worker: "w9"}, nil
	}}
	if r := run(t, play(t, cfg, rows, astray)); r.Refused != 3 {
		t.Errorf("%d refused of 3", r.Refused)
	}
	other := rows[0]
	other.BlockTokens = 64
	if r := run(t, play(t, cfg, []trace.Row{other}, NewRotate(cfg.Specs()))); r.Refused != 1 {
		t.Error("a row of other blocks was taken")
	}
	for _, empty := range []trace.Row{row(0, "", 0, 1, 1), row(0, "", 1, 0, 1)} {
		if r := run(t, play(t, cfg, []trace.Row{empty}, NewRotate(cfg.Specs()))); r.Refused != 1 {
			t.Errorf("%+v was taken", empty)
		}
	}
	cfg.Speed = 1e-9
	if r := run(t, play(t, cfg, []trace.Row{row(time.Hour, "", 1, 1, 1)}, NewRotate(cfg.Specs()))); r.Unserved != 0 {
		t.Error("a late row was lost")
	}
}

func TestABrokenRouterEndsTheRun(t *testing.T) {
	cfg := small(2, 2)
	rows := []trace.Row{row(0, "a", 600, 2, 1)}
	answer := func(ranks []int32, order [][]int32) func(*model.StepInput, *model.StepOutput) error {
		return func(_ *model.StepInput, out *model.StepOutput) error {
			out.Ranks, out.Order = ranks, order
			return nil
		}
	}
	cases := map[string]struct {
		step func(*model.StepInput, *model.StepOutput) error
		says string
	}{
		"error":       {func(*model.StepInput, *model.StepOutput) error { return errBroken }, "step of w0: broken"},
		"too few":     {answer(nil, nil), "answered 0 of 1"},
		"no such":     {answer([]int32{0}, [][]int32{{7}, {}}), "contradicts"},
		"other rank":  {answer([]int32{0}, [][]int32{{}, {0}}), "contradicts"},
		"forgotten":   {answer([]int32{0}, [][]int32{{}, {}}), "placed 0 requests and left 0 of 1"},
		"rank beyond": {answer([]int32{2}, [][]int32{{}, {}, {0}}), "contradicts"},
	}
	for name, c := range cases {
		s := play(t, cfg, rows, &stubborn{Rotate: *NewRotate(cfg.Specs()), step: c.step})
		if err := s.Run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunSaysWhyNot(t *testing.T) {
	g, err := trace.NewGenerator(trace.DefaultGenerator())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(small(1, 1), g)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background(), nil); !errors.Is(err, ErrNoRouter) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Advance(1, 0); !errors.Is(err, ErrNoRouter) {
		t.Errorf("got %v", err)
	}
	cfg := s.Config()
	s.Use(NewRotate(cfg.Specs()))
	if err := s.Run(context.Background(), nil); !errors.Is(err, ErrEndless) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := play(t, cfg, []trace.Row{row(0, "", 1, 1, 1)}, NewRotate(cfg.Specs())).Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestBadConfigsAreRefused(t *testing.T) {
	cases := map[string]func(*Config){
		"workers": func(c *Config) { c.Workers = 0 },
		"ranks":   func(c *Config) { c.Ranks = MaxRanks + 1 },
		"blocks":  func(c *Config) { c.Blocks = 0 },
		"tokens":  func(c *Config) { c.BlockTokens = -1 },
		"cap":     func(c *Config) { c.HardCap = 0 },
		"chunk":   func(c *Config) { c.ChunkTokens = 0 },
		"speed":   func(c *Config) { c.Speed = math.NaN() },
		"memory":  func(c *Config) { c.Blocks, c.Ranks, c.Workers = MaxBlocks, 64, 64 },
		"timing":  func(c *Config) { c.Timing = Timing{} },
	}
	for name, spoil := range cases {
		cfg := ReplayConfig()
		spoil(&cfg)
		if _, err := New(cfg, (&trace.Trace{}).Play()); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
