package settings

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"adpdeck/router/model"
)

const sample = `# pasted from the engine
enable_attention_dp: true   # stays on
attention_dp_config:
  enable_balance: "yes"     # lax, as upstream
  timeout_iters: 50.0
  # β of the score
  kv_cache_routing_load_balance_weight: 2
  enable_kv_cache_aware_routing: true

router_mode: 'least_loaded'
weights: {w0/3: 0.8, w1/0: 0}
`

func defaults() model.Settings {
	return model.DefaultSettings()
}

func read(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Parse("settings.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReadSample(t *testing.T) {
	d := read(t, sample)
	want := defaults()
	want.RouterMode = model.ModeLeastLoaded
	want.AttentionDpConfig.EnableBalance = true
	want.AttentionDpConfig.EnableKVCacheAwareRouting = true
	want.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight = 2
	want.Weights = []model.Weight{
		{Target: model.Target{Worker: "w0", Rank: 3}, Weight: 0.8},
		{Target: model.Target{Worker: "w1", Rank: 0}, Weight: 0},
	}
	if got := d.Settings(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if string(d.Bytes()) != sample {
		t.Error("the text came back changed")
	}
}

func TestReadEmptyIsAllDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "attention_dp_config:\n", "attention_dp_config: null\n", "attention_dp_config: {}\nweights:\n", "\ufeffrouter_mode: round_robin\n"} {
		if d := read(t, text); !reflect.DeepEqual(d.Settings(), defaults()) || string(d.Bytes()) != text || !d.Enabled() {
			t.Errorf("%q: got %+v", text, d.Settings())
		}
	}
	if read(t, "enable_attention_dp: 0\n").Enabled() {
		t.Error("enable_attention_dp: 0 reads as on")
	}
}

func TestUnboundedAndLaxValues(t *testing.T) {
	cases := map[string]struct {
		line string
		get  func(model.AttentionDpConfig) any
		want any
	}{
		"negative count, gate off": {"timeout_iters: -3", func(c model.AttentionDpConfig) any { return c.TimeoutIters }, -3},
		"sessions below one":       {"kv_cache_routing_max_sessions: -1", func(c model.AttentionDpConfig) any { return c.KVCacheRoutingMaxSessions }, -1},
		"numeric string":           {`timeout_iters: "1_0"`, func(c model.AttentionDpConfig) any { return c.TimeoutIters }, 10},
		"octal":                    {"timeout_iters: 010", func(c model.AttentionDpConfig) any { return c.TimeoutIters }, 8},
		"true as a count":          {"timeout_iters: true", func(c model.AttentionDpConfig) any { return c.TimeoutIters }, 1},
		"negative beta":            {"kv_cache_routing_load_balance_weight: -1.5", func(c model.AttentionDpConfig) any { return c.KVCacheRoutingLoadBalanceWeight }, -1.5},
		"infinite beta":            {"kv_cache_routing_load_balance_weight: .inf", func(c model.AttentionDpConfig) any { return c.KVCacheRoutingLoadBalanceWeight }, math.Inf(1)},
		"exponent":                 {"kv_cache_routing_load_balance_weight: 1e3", func(c model.AttentionDpConfig) any { return c.KVCacheRoutingLoadBalanceWeight }, 1000.0},
		"switch by number":         {"kv_cache_routing_cold_start_warmup: 1", func(c model.AttentionDpConfig) any { return c.KVCacheRoutingColdStartWarmup }, true},
		"switch by word":           {"kv_cache_routing_cold_start_warmup: off", func(c model.AttentionDpConfig) any { return c.KVCacheRoutingColdStartWarmup }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.get(read(t, keyConfig+":\n  "+c.line+"\n").Settings().AttentionDpConfig); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestErrorsNamePlaceAndWhatIsAllowed(t *testing.T) {
	cases := map[string]struct {
		text         string
		line, column int
		say          string
	}{
		"unknown key":          {"enable_attention_dp: true\nkv_cache: 1\n", 2, 1, "allowed are enable_attention_dp"},
		"an engine's key":      {"enable_attention_dp: true\nkv_cache_config: {}\n", 2, 1, "or give all of it to adpdeck serve as --extra-engine-args"},
		"unknown field":        {"attention_dp_config:\n  beta: 1\n", 2, 3, "allowed are enable_balance"},
		"own key inside":       {"attention_dp_config:\n  router_mode: round_robin\n", 2, 3, "no field"},
		"unknown placement":    {"attention_dp_config:\n  kv_cache_routing_new_conv_placement: best\n", 2, 40, "one of round_robin, least_queued, least_tokens"},
		"unknown mode":         {"router_mode: best\n", 1, 14, "one of round_robin, least_loaded, kv, lockstep"},
		"batching first":       {"attention_dp_config:\n  enable_balance: true\n  timeout_iters: -1\n  batching_wait_iters: -2\n", 4, 24, "batching_wait_iters -2: must be greater or equal to 0 when enable_balance is true"},
		"timeout":              {"attention_dp_config: {enable_balance: true, timeout_iters: -1}\n", 1, 60, "timeout_iters -1: must be greater or equal to 0"},
		"low occupancy":        {"low_occupancy_timeout_iters: 51\nattention_dp_config:\n  enable_balance: true\n", 1, 30, "from 0 to timeout_iters (50)"},
		"word for a number":    {"attention_dp_config:\n  timeout_iters: soon\n", 2, 18, "want a whole number"},
		"fraction for a count": {"attention_dp_config:\n  timeout_iters: 1.5\n", 2, 18, "want a whole number"},
		"list":                 {"attention_dp_config: [1]\n", 1, 22, "want a mapping"},
		"null value":           {"attention_dp_config:\n  timeout_iters:\n", 2, 18, "not nothing"},
		"alias":                {"attention_dp_config:\n  timeout_iters: &x 5\n", 2, 18, "write the value out"},
		"tag":                  {"router_mode: !!str kv\n", 1, 14, "a tag"},
		"twice":                {"router_mode: round_robin\nrouter_mode: round_robin\n", 2, 1, "already defined"},
		"two documents":        {"router_mode: round_robin\n---\nrouter_mode: round_robin\n", 3, 12, "second document"},
		"not a mapping":        {"hello\n", 1, 1, "want a mapping"},
		"syntax":               {"a: [\n", 1, 4, "not YAML"},
		"no target":            {"weights:\n  w0: 1\n", 2, 3, "want WORKER/RANK"},
		"target twice":         {"weights:\n  w0/3: 1\n  w0/03: 1\n", 3, 3, "twice"},
		"weight too large":     {"weights:\n  w0/3: 2.5\n", 2, 9, "want 0 to 2"},
		"weight not a number":  {"weights:\n  w0/3: .nan\n", 2, 9, "want 0 to 2"},
		"not utf-8":            {"a: \xff\n", 1, 1, "not UTF-8"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("settings.yaml", []byte(c.text))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Line != c.line || e.Column != c.column || !strings.Contains(e.Message, c.say) || e.File != "settings.yaml" {
				t.Errorf("got %v, want line %d column %d and %q", err, c.line, c.column, c.say)
			}
		})
	}
	for _, text := range []string{strings.Repeat("\n", MaxBytes+1), strings.Repeat("[", MaxBytes), strings.Repeat("- ", MaxBytes/2)} {
		var e *Error
		if _, err := Parse("big", []byte(text)); !errors.As(err, &e) || !strings.Contains(e.Message, "at most") {
			t.Errorf("a file over the limits gave %v", err)
		}
	}
}

func TestUpdateTouchesOnlyWhatChanged(t *testing.T) {
	d := read(t, sample)
	s := d.Settings()
	s.AttentionDpConfig.EnableBalance = false
	s.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight = 4
	s.AttentionDpConfig.KVCacheRoutingNewConvPlacement = model.PlaceLeastTokens
	s.RouterMode = model.ModeRoundRobin
	s.MinGenerationRequests = 3
	s.SetWeight(model.Target{Worker: "w0", Rank: 3}, 1)
	s.SetWeight(model.Target{Worker: "w1", Rank: 7}, 1.5)
	if err := d.Update(s); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		`"yes" `, `false `,
		"weight: 2\n", "weight: 4.0\n",
		"routing: true\n", "routing: true\n  kv_cache_routing_new_conv_placement: least_tokens\n",
		`'least_loaded'`, "round_robin",
		"w0/3: 0.8, w1/0: 0}\n", "w0/3: 1.0, w1/0: 0, w1/7: 1.5}\nmin_generation_requests: 3\n",
	).Replace(sample)
	if got := string(d.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !reflect.DeepEqual(d.Settings(), s) {
		t.Errorf("got %+v, want %+v", d.Settings(), s)
	}
}

func TestUpdateInEveryForm(t *testing.T) {
	s := defaults()
	s.AttentionDpConfig.TimeoutIters = 7
	s.SetWeight(model.Target{Worker: "w0", Rank: 1}, 0.5)
	s.SetWeight(model.Target{Worker: "a b", Rank: 1}, 0.25)
	for _, text := range []string{
		"", "# c", "router_mode: round_robin", "{}", "{router_mode: round_robin, }\n", "attention_dp_config:\n", "attention_dp_config: ~ # c\nweights:\n",
		"attention_dp_config: {}\nweights: {}\n", "{attention_dp_config: , weights: null}", "attention_dp_config:\r\n  timeout_iters: 5\r\nweights:\r\n  w0/1: 1\r\n",
		"weights:\n    w0/1: 2\n    # tail\nattention_dp_config:\n    timeout_iters: '5'   # c\n", "  router_mode: round_robin\n",
		"attention_dp_config:\n  batching_wait_iters: 10", "\ufeffrouter_mode: round_robin\n", "attention_dp_config: {\n  timeout_iters: 1,\n}\n",
	} {
		d := read(t, text)
		if err := d.Update(s); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := read(t, string(d.Bytes())).Settings(); !reflect.DeepEqual(got, s) {
			t.Errorf("%q became\n%s", text, d.Bytes())
		}
		for _, word := range []string{"# c", "# tail"} {
			if strings.Contains(text, word) && !strings.Contains(string(d.Bytes()), word) {
				t.Errorf("%q lost its comment: %s", text, d.Bytes())
			}
		}
	}
}

func TestUpdateRefusesWhatTheRulesForbid(t *testing.T) {
	d := read(t, sample)
	s := d.Settings()
	s.AttentionDpConfig.TimeoutIters = -1
	if err := d.Update(s); err == nil {
		t.Error("a negative timeout was written with enable_balance on")
	}
	if string(d.Bytes()) != sample {
		t.Error("a failed update left a trace")
	}
}

func TestNewRoundTrips(t *testing.T) {
	s := defaults()
	s.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight = 1e21
	s.AttentionDpConfig.KVCacheRoutingMatchRateThreshold = math.Inf(1)
	s.SetWeight(model.Target{Worker: "w: 0", Rank: 1}, 0.5)
	s.SetWeight(model.Target{Worker: "w0", Rank: 2}, 0)
	d, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, d.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, string(text)); !reflect.DeepEqual(got.Settings(), s) || string(got.Bytes()) != string(d.Bytes()) {
		t.Errorf("got %+v from\n%s", got.Settings(), text)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{sample, "", "{}", "weights: {w0/1: 1}", "attention_dp_config: {timeout_iters: '5'}", "a: &x [*x]", "? a\n: b\n", "\ufeffweights:\r\n  w0/1: 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse("f", text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 {
				t.Fatalf("an error without a place: %v", err)
			}
			return
		}
		if string(d.Bytes()) != string(text) {
			t.Fatal("the text came back changed")
		}
		s := d.Settings()
		s.AttentionDpConfig.KVCacheRoutingMaxSessions = 4711
		s.SetWeight(model.Target{Worker: "w0", Rank: 1}, 0.25)
		if d.Update(s) != nil {
			return // a form that cannot be edited; the document is as it was
		}
		got := d.Settings()
		if got.AttentionDpConfig.KVCacheRoutingMaxSessions != 4711 || got.WeightOf(model.Target{Worker: "w0", Rank: 1}) != 0.25 {
			t.Fatalf("an update that says something else: %q", d.Bytes())
		}
	})
}
