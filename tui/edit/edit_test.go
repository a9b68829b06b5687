package edit

import (
	"testing"

	"adpdeck/router/model"
	"adpdeck/tui/view"
)

func field(t *testing.T, name string) model.Field {
	f, ok := model.FieldByName(name)
	if !ok {
		t.Fatalf("no field %s", name)
	}
	return f
}

func settings() *model.Settings {
	return &model.Settings{RouterMode: model.ModeRoundRobin, AttentionDpConfig: model.DefaultAttentionDpConfig()}
}

func TestStep(t *testing.T) {
	for name, c := range map[string]struct {
		field, from string
		up, large   bool
		want        string
	}{
		"small up":             {model.FieldLoadBalanceWeight, "1", true, false, "1.05"},
		"small down":           {model.FieldLoadBalanceWeight, "1", false, false, "0.95"},
		"large up":             {model.FieldLoadBalanceWeight, "1", true, true, "1.5"},
		"down over the border": {model.FieldLoadBalanceWeight, "2", false, false, "1.95"},
		"up over the border":   {model.FieldLoadBalanceWeight, "2", true, false, "2.25"},
		"not below the bound":  {model.FieldLoadBalanceWeight, "0.02", false, false, "0"},
		"not above the bound":  {model.FieldLoadBalanceWeight, "15.5", true, true, "16"},
		"sums stay hundredths": {model.FieldMatchRateThreshold, "0.29", true, false, "0.3"},
		"whole numbers":        {model.FieldTimeoutIters, "50", true, true, "60"},
		"from outside":         {model.FieldTimeoutIters, "-7", false, false, "0"},
		"switch on":            {model.FieldEnableBalance, "false", true, false, "true"},
		"switch off":           {model.FieldEnableBalance, "true", false, true, "false"},
		"choice":               {model.FieldNewConvPlacement, "round_robin", true, false, "least_queued"},
		"choice goes round":    {model.FieldNewConvPlacement, "round_robin", false, false, "least_tokens"},
		"weight":               {model.FieldWeight, "1", false, false, "0.95"},
		"weight stays above 0": {model.FieldWeight, "0.3", false, true, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := field(t, c.field)
			got, ok := Step(&f, c.from, c.up, c.large)
			if !ok || got != c.want {
				t.Errorf("got %q %v, want %q", got, ok, c.want)
			}
			fv := model.FieldValue{Field: c.field, Value: got}
			if f.PerTarget {
				fv.Target = &model.Target{Worker: "w0"}
			}
			if why := Refused(settings(), fv); why != "" {
				t.Errorf("a step led to a value that is refused: %s", why)
			}
		})
	}
	f := field(t, model.FieldLoadBalanceWeight)
	if _, ok := Step(&f, "x", true, false); ok {
		t.Error("a step from what is no number")
	}
}

func TestTyping(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string
		end  Outcome
		text string
		why  string
	}{
		"typing replaces": {[]string{"4", "enter"}, Staged, "4", ""},
		"enter keeps":     {[]string{"enter"}, Staged, "1", ""},
		"backspace edits": {[]string{"backspace", "0", ".", "5", "enter"}, Staged, "0.5", ""},
		"out of bounds":   {[]string{"4", "0", "enter"}, Open, "40", "give a number from 0 to 16"},
		"no number":       {[]string{"a", "enter"}, Open, "a", "give a number from 0 to 16"},
		"nothing":         {[]string{"ctrl+u", "enter"}, Open, "", "give a number from 0 to 16"},
		"esc":             {[]string{"4", "esc"}, Closed, "4", ""},
		"up is a step":    {[]string{"up", "up", "enter"}, Staged, "1.1", ""},
		"control bytes":   {[]string{"\x1b", "4", "enter"}, Staged, "4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := New(settings(), field(t, model.FieldLoadBalanceWeight), nil, "")
			var end Outcome
			for _, k := range c.keys {
				key := view.Key{Name: k}
				if len(k) == 1 {
					key.Runes = []rune(k)
				}
				end = v.Key(key)
			}
			if end != c.end || v.text != c.text || v.why != c.why {
				t.Errorf("got %v %q %q, want %v %q %q", end, v.text, v.why, c.end, c.text, c.why)
			}
		})
	}
}

func TestPretty(t *testing.T) {
	for name, c := range map[string]struct{ field, text, want string }{
		"float":       {model.FieldLoadBalanceWeight, "4", "4.00"},
		"exact float": {model.FieldLoadBalanceWeight, "0.125", "0.125"},
		"int":         {model.FieldMaxSessions, "65536", "65,536"},
		"on":          {model.FieldColdStartWarmup, "true", "on"},
		"choice":      {model.FieldNewConvPlacement, "least_tokens", "least_tokens"},
		"nonsense":    {model.FieldLoadBalanceWeight, "\x1b[m", `\x1b[m`},
	} {
		t.Run(name, func(t *testing.T) {
			f := field(t, c.field)
			if got := Pretty(&f, c.text).String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
