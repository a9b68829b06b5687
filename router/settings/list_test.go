package settings

import (
	"errors"
	"strings"
	"testing"

	"adpdeck/router/model"
)

func extras() []model.Field {
	return []model.Field{
		{Name: "ranks", Kind: model.KindInt, Min: 1, Max: 512},
		{Name: "speed", Kind: model.KindFloat, Min: 0.1, Max: 100},
		{Name: "policy", Kind: model.KindChoice, Options: []string{"default", "rotate"}},
	}
}

func TestParseListTakesWhatIsNotSaidFromTheBase(t *testing.T) {
	base := defaults()
	base.MinGenerationRequests = 7
	items, err := ParseList("modes.yaml", []byte(`# two clusters
- name: as it is
- name: "other"
  router_mode: least_loaded
  attention_dp_config: {kv_cache_routing_load_balance_weight: 3}
  ranks: 32
  speed: 8
  policy: rotate
  weights:
    w0/1: 0.5
`), base, extras())
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 2 || items[0].Name != "as it is" || items[1].Name != "other" || items[0].Line != 2 || items[1].Line != 3 {
		t.Fatalf("got %+v", items)
	}
	first, second := items[0].Settings, items[1].Settings
	if first.MinGenerationRequests != 7 || first.RouterMode != model.ModeRoundRobin || len(first.Weights) != 0 || len(items[0].Extra) != 0 {
		t.Errorf("the first is not the base: %+v", items[0])
	}
	if second.MinGenerationRequests != 7 || second.RouterMode != model.ModeLeastLoaded || len(second.Weights) != 1 ||
		second.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight != 3 {
		t.Errorf("the second says %+v", second)
	}
	if x := items[1].Extra; x["ranks"] != "32" || x["speed"] != "8" || x["policy"] != "rotate" {
		t.Errorf("its own keys are %v", x)
	}
	if base.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight == 3 {
		t.Error("the base was written to")
	}
}

func TestParseListErrorsNameThePlace(t *testing.T) {
	cases := map[string]struct {
		text         string
		line, column int
		has          string
	}{
		"nothing":          {"# only words\n", 1, 1, "the list is empty"},
		"a mapping":        {"name: a\n", 1, 5, "want a list"},
		"an entry of text": {"- a\n- b\n", 1, 3, "a mapping with a name"},
		"no name":          {"- ranks: 4\n", 1, 3, "has no name"},
		"empty name":       {"- name: ''\n", 1, 9, "name: want a word"},
		"two of a name":    {"- name: a\n- ranks: 2\n  name: a\n", 2, 3, "stands at line 1 too"},
		"unknown key":      {"- name: a\n  rank: 4\n", 2, 3, `no such key "rank"`},
		"unknown field":    {"- name: a\n  attention_dp_config:\n    beta: 4\n", 3, 5, `no field "beta"`},
		"a list of ranks":  {"- name: a\n  ranks: [1, 2]\n", 2, 10, "want a whole number"},
		"too few ranks":    {"- name: a\n  ranks: 0\n", 2, 10, "ranks is 0; want a whole number from 1 to 512"},
		"not a speed":      {"- name: a\n  speed: .nan\n", 2, 10, "want a number from 0.1 to 100"},
		"unknown policy":   {"- name: a\n  policy: best\n", 2, 11, "want one of default, rotate"},
		"rules across":     {"- name: a\n- name: b\n  attention_dp_config: {enable_balance: true, timeout_iters: -1}\n", 3, 62, "timeout_iters"},
		"no ranks at all":  {"- name: a\n  enable_attention_dp: false\n", 1, 3, "no DP ranks"},
		"not YAML":         {"- name: [\n", 1, 0, "not YAML"},
		"long name":        {"- name: " + strings.Repeat("x", 65) + "\n", 1, 9, "65 bytes"},
		"control":          {"- name: \"a\\tb\"\n", 1, 9, "control character"},
		"an anchor":        {"- &a\n  name: b\n- *a\n", 1, 3, "anchor"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseList("modes.yaml", []byte(c.text), defaults(), extras())
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.File != "modes.yaml" || e.Line != c.line || c.column > 0 && e.Column != c.column || !strings.Contains(e.Message, c.has) {
				t.Errorf("got %v, want line %d, column %d and %q", e, c.line, c.column, c.has)
			}
		})
	}
}

func TestParseListIsBounded(t *testing.T) {
	var b strings.Builder
	for range MaxItems + 1 {
		b.WriteString("- name: a\n")
	}
	if _, err := ParseList("f", []byte(b.String()), defaults(), nil); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("- name: a\n  ranks: 3\n")
	f.Add("- {name: a, attention_dp_config: null, weights: {w0/1: 1}}")
	f.Add("- name: a\n  - b\n")
	f.Add("[[[")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := ParseList("f", []byte(text), defaults(), extras())
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1) {
			t.Errorf("%q: %v", text, err)
		}
		for _, it := range items {
			if it.Name == "" || len(it.Name) > MaxNameBytes {
				t.Errorf("%q: name %q", text, it.Name)
			}
		}
	})
}
