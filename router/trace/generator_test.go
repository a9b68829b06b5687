package trace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// reference returns the measures of the Mooncake conversation trace: from the
// file when it is there, from the figures noted here otherwise.
func reference(t *testing.T) Measures {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "traces", "mooncake_conversation_trace.jsonl")
	if _, err := os.Stat(path); err == nil {
		return Measure(shared(t, filepath.Base(path)).Rows)
	}
	return Measures{
		Requests: 12031, Conversations: 8057, MultiTurn: 2012, InMultiTurn: 5986, LongestTurns: 43,
		Gap:    Spread{P50: 126, P90: 480},
		Prompt: Spread{Min: 891, Mean: 12035, P50: 6909, P90: 27367, Max: 126195},
		Output: Spread{Min: 1, Mean: 342.6, P50: 350, P90: 597, Max: 2000}, IdealHit: .3734, PerSecond: 3.4,
	}
}

func generate(t testing.TB, cfg GeneratorConfig, n int) []Row {
	t.Helper()
	g, err := NewGenerator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]Row, n)
	for i := range rows {
		if !g.Next(&rows[i]) {
			t.Fatal("the stream ended")
		}
	}
	return rows
}

func TestGeneratorResemblesMooncake(t *testing.T) {
	want := reference(t)
	got := Measure(generate(t, DefaultGenerator(), 60_000))
	near := func(name string, got, want, tolerance float64) {
		t.Helper()
		t.Logf("%-18s %10.3f, the trace %10.3f", name, got, want)
		if math.Abs(got-want) > tolerance*want {
			t.Errorf("%s is %.3f, more than %.0f %% from %.3f", name, got, tolerance*100, want)
		}
	}
	near("multi-turn share", got.MultiTurnShare(), want.MultiTurnShare(), .05)
	near("gap p50", got.Gap.P50, want.Gap.P50, .07)
	near("gap p90", got.Gap.P90, want.Gap.P90, .07)
	near("prompt p50", got.Prompt.P50, want.Prompt.P50, .10)
	near("prompt mean", got.Prompt.Mean, want.Prompt.Mean, .07)
	near("prompt p90", got.Prompt.P90, want.Prompt.P90, .10)
	near("output mean", got.Output.Mean, want.Output.Mean, .05)
	near("output p50", got.Output.P50, want.Output.P50, .05)
	near("output p90", got.Output.P90, want.Output.P90, .05)
	near("ideal hit", got.IdealHit, want.IdealHit, .10)
	near("rate", got.PerSecond, want.PerSecond, .07)
	if got.Prompt.Min < want.Prompt.Min || got.Prompt.Max > want.Prompt.Max || got.Output.Min < 1 || got.Output.Max > 2000 {
		t.Errorf("lengths beyond the trace: %+v %+v", got.Prompt, got.Output)
	}
}

func TestGeneratorIsRepeatable(t *testing.T) {
	cfg := DefaultGenerator()
	cfg.Warm, cfg.LongShare = time.Minute, .1
	a, b := generate(t, cfg, 2000), generate(t, cfg, 2000)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave other rows")
	}
	cfg.Seed = 2
	if c := generate(t, cfg, 2000); reflect.DeepEqual(a, c) {
		t.Error("another seed gave the same rows")
	}
}

func TestGeneratedTurnsExtendTheLast(t *testing.T) {
	cfg := DefaultGenerator()
	cfg.GapScale, cfg.LongShare, cfg.Warm = .1, .2, time.Minute
	rows := generate(t, cfg, 5000)
	last := map[string]Row{}
	at := time.Duration(0)
	for i, r := range rows {
		if r.At < at || r.At < 0 {
			t.Fatalf("row %d arrives at %s after %s", i, r.At, at)
		}
		at = r.At
		if len(r.Blocks) != r.PromptTokens/r.BlockTokens || r.Conv.Tenant == "" {
			t.Fatalf("row %d: %+v", i, r)
		}
		if p, ok := last[r.Conv.ID]; ok {
			if r.Turn != p.Turn+1 || r.PromptTokens <= p.PromptTokens+p.OutputTokens {
				t.Fatalf("row %d does not go on from %+v", i, p)
			}
			if !reflect.DeepEqual(r.Blocks[:len(p.Blocks)], p.Blocks) {
				t.Fatalf("row %d has another prefix", i)
			}
		}
		last[r.Conv.ID] = r
	}
}

// TestAgentsNeverEnd lets three agents run beside the stream: they take turn
// after turn, start over with a fresh context when theirs has grown long, and
// leave the rest of the stream as it was.
func TestAgentsNeverEnd(t *testing.T) {
	cfg := DefaultGenerator()
	plain := generate(t, cfg, 3000)
	cfg.Agents = 3
	rows := generate(t, cfg, 3000)
	last, fresh := map[string]Row{}, 0
	var rest []Row
	for _, r := range rows {
		if !strings.Contains(r.Conv.ID, "/agent-") {
			rest = append(rest, r)
			continue
		}
		p, ok := last[r.Conv.ID]
		last[r.Conv.ID] = r
		if !ok {
			continue
		}
		gap := r.At - p.At
		if r.Turn != p.Turn+1 || gap < agentGapMin || gap > agentGapMin+agentGapSpread+300*answerTime {
			t.Fatalf("turn %d comes %s after turn %d", r.Turn, gap, p.Turn)
		}
		if r.PromptTokens < p.PromptTokens {
			fresh++
		} else if !reflect.DeepEqual(r.Blocks[:len(p.Blocks)], p.Blocks) {
			t.Fatalf("turn %d of %s has another prefix", r.Turn, r.Conv.ID)
		}
	}
	if len(last) != 3 || fresh < 3 {
		t.Errorf("%d agents started over %d times in all", len(last), fresh)
	}
	for id, r := range last {
		if r.Turn < 60 {
			t.Errorf("%s took %d turns in %s", id, r.Turn, r.At)
		}
	}
	if !reflect.DeepEqual(rest, plain[:len(rest)]) {
		t.Error("agents changed the rest of the stream")
	}
}

func TestGeneratorSharesOnlySystemPrompts(t *testing.T) {
	rows := generate(t, DefaultGenerator(), 3000)
	owner := map[uint64]string{}
	for _, r := range rows {
		for i, b := range r.Blocks {
			who := r.Conv.ID
			if i == 0 {
				who = r.Conv.Tenant
			}
			if other, ok := owner[b]; ok && other != who {
				t.Fatalf("block %d of %s belongs to %s", i, who, other)
			}
			owner[b] = who
		}
	}
}

func TestGeneratorRefusesBadConfigs(t *testing.T) {
	cases := map[string]func(*GeneratorConfig){
		"rate":       func(c *GeneratorConfig) { c.Rate = math.NaN() },
		"gaps":       func(c *GeneratorConfig) { c.GapScale = 0 },
		"prompts":    func(c *GeneratorConfig) { c.PromptScale = -1 },
		"long share": func(c *GeneratorConfig) { c.LongShare = 2 },
		"long turns": func(c *GeneratorConfig) { c.LongShare, c.LongTurns = .5, 0 },
		"agents":     func(c *GeneratorConfig) { c.Agents = -1 },
		"warm":       func(c *GeneratorConfig) { c.Warm = -1 },
		"blocks":     func(c *GeneratorConfig) { c.BlockTokens = 0 },
		"nobody":     func(c *GeneratorConfig) { c.Tenants = nil },
		"no share":   func(c *GeneratorConfig) { c.Tenants = []Tenant{{Name: "a"}} },
	}
	for name, spoil := range cases {
		cfg := DefaultGenerator()
		spoil(&cfg)
		if _, err := NewGenerator(cfg); !errors.Is(err, ErrGenerator) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConvNamesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint32(50_000) {
		name := convName(n)
		if seen[name] || len(name) != len("conv-8f2c91e0") {
			t.Fatalf("%d is called %q", n, name)
		}
		seen[name] = true
	}
}
