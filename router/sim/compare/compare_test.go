package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/settings"
	"adpdeck/router/sim"
	"adpdeck/router/trace"
)

func base() Entry {
	return Entry{Workers: 1, Ranks: 4, Speed: 2, Settings: sim.DefaultSettings()}
}

// rows is traffic that shares prefixes.
func rows() *trace.Trace {
	t := &trace.Trace{BlockTokens: 512}
	for i := range 60 {
		prev := uint64(0)
		r := trace.Row{
			At: time.Duration(i) * 30 * time.Millisecond, Conv: model.ConvKey{ID: string(rune('a' + i%7))}, Turn: 1 + i/7,
			PromptTokens: 512*(2+i%5) + 9, OutputTokens: 1 + i%9, BlockTokens: 512,
		}
		for b := range r.PromptTokens / 512 {
			prev = trace.Chain(prev, uint64(i%7*100+b))
			r.Blocks = append(r.Blocks, prev)
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

func build(e Entry) (*sim.Sim, error) {
	cfg := sim.ReplayConfig()
	cfg.Workers, cfg.Ranks, cfg.Speed, cfg.Blocks = e.Workers, e.Ranks, e.Speed, 400
	s, err := sim.New(cfg, rows().Play())
	if err != nil {
		return nil, err
	}
	if e.Rotate {
		s.Use(sim.NewRotate(cfg.Specs()))
		return s, nil
	}
	r, err := sim.NewEngine(cfg.Specs(), e.Settings)
	if err != nil {
		return nil, err
	}
	s.Use(r)
	return s, nil
}

const list = `
- name: rotation
  policy: rotate
- name: affine
  policy: conversation
  placement: least_tokens
  workers: 2
  ranks: 2
- name: slow
  speed: 0.5
`

func TestParse(t *testing.T) {
	got, err := Parse("list.yaml", []byte(list), base())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || !got[0].Rotate || got[1].Rotate || got[1].Workers != 2 || got[1].Ranks != 2 || got[2].Speed != .5 || got[2].Ranks != 4 {
		t.Fatalf("got %+v", got)
	}
	c := got[1].Settings.AttentionDpConfig
	if c.Policy() != model.PolicyConversation || c.KVCacheRoutingNewConvPlacement != model.PlaceLeastTokens {
		t.Errorf("the second routes by %s, %s", c.Policy(), c.KVCacheRoutingNewConvPlacement)
	}
	if p := got[2].Settings.AttentionDpConfig.Policy(); p != model.PolicyKVAware {
		t.Errorf("the third does not route as the base: %s", p)
	}
}

func TestParseNamesThePlace(t *testing.T) {
	for text, want := range map[string]string{
		"- name: a\n  workers: 65\n":      "list.yaml:2:12: workers is 65; want a whole number from 1 to 64",
		"- name: a\n  policy: fastest\n":  `list.yaml:2:11: policy is "fastest"; want one of default, kv_aware, conversation, rotate`,
		"- name: a\n  placement: first\n": "list.yaml:2:14:",
		"- name: a\n  speed: 0\n":         "list.yaml:2:10: speed is 0",
	} {
		_, err := Parse("list.yaml", []byte(text), base())
		var e *settings.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestRunIsTheSameAlone plays three entries together and each alone.
func TestRunIsTheSameAlone(t *testing.T) {
	entries, err := Parse("list.yaml", []byte(list), base())
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	together, err := Run(context.Background(), entries, build, func(sent, total int) {
		if total != 180 || sent > total {
			t.Errorf("%d of %d rows", sent, total)
		}
		last = max(last, sent)
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != 180 {
		t.Errorf("progress ended at %d", last)
	}
	for i, e := range entries {
		alone, err := Run(context.Background(), entries[i:i+1], build, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b := alone[0], together[i]
		if b.Name != e.Name || b.Requests != 60 || e.Rotate != (b.Policy == PolicyRotate) {
			t.Errorf("%s: %+v", e.Name, b)
		}
		a.WallSeconds, b.WallSeconds, a.DecisionsPerSecond, b.DecisionsPerSecond = 0, 0, 0, 0
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) {
			t.Errorf("%s: alone\n%s\ntogether\n%s", e.Name, x, y)
		}
	}
}

func TestRunStops(t *testing.T) {
	entries := []Entry{base(), base(), base()}
	entries[1].Name, entries[1].Ranks = "broken", 0
	if _, err := Run(context.Background(), entries, build, nil); err == nil || !strings.Contains(err.Error(), "broken: cannot simulate") {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Run(ctx, entries[:1], build, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWrite(t *testing.T) {
	entries, err := Parse("list.yaml", []byte(list), base())
	if err != nil {
		t.Fatal(err)
	}
	results, err := Run(context.Background(), entries, build, nil)
	if err != nil {
		t.Fatal(err)
	}
	var table, array bytes.Buffer
	if err := errors.Join(WriteTable(&table, results), WriteJSON(&array, results)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "name ") || !strings.HasPrefix(lines[2], "affine ") || !strings.Contains(lines[2], "2×2") {
		t.Errorf("got\n%s", table.String())
	}
	for _, l := range lines {
		if len([]rune(l)) != len([]rune(lines[0])) {
			t.Errorf("the lines are not of one length:\n%s", table.String())
		}
	}
	var back []map[string]any
	if err := json.Unmarshal(array.Bytes(), &back); err != nil || len(back) != 3 || back[0]["name"] != "rotation" || back[0]["ttft_ms"] == nil {
		t.Errorf("%v: %s", err, array.String())
	}
	if err := WriteTable(deaf{}, results); err == nil {
		t.Error("a failing writer is not noticed")
	}
}

type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("deaf") }
