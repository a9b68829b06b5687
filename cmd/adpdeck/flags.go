package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/settings"

	"github.com/spf13/pflag"
)

// clusterFlags describe the simulated cluster and how it starts.
type clusterFlags struct {
	workers, ranks, blocks, maxActive int
	seed                              uint64
	speed                             float64
	policy, placement, mode, file     string
	modeFlag                          string // the name under which mode was given
	set                               []string
}

func (c *clusterFlags) register(f *pflag.FlagSet) {
	f.IntVar(&c.workers, "workers", 2, "simulated workers")
	f.IntVar(&c.ranks, "ranks", 8, "DP ranks of each worker")
	f.IntVar(&c.blocks, "blocks", 0, "KV-cache blocks of each rank (0: chosen for the traffic)")
	f.IntVar(&c.maxActive, "max-active", 0, "max_num_active_requests of each rank (0: chosen for the traffic)")
	f.Uint64Var(&c.seed, "seed", 1, "seed of the simulation: same seed, same run")
	f.Float64Var(&c.speed, "speed", 1, "simulation speed; in a headless replay, how much closer arrivals are")
	f.StringVar(&c.policy, "policy", "", "default, kv_aware or conversation (headless also rotate)")
	f.StringVar(&c.placement, "placement", "", "round_robin, least_queued or least_tokens, for new conversations")
	f.Var(&modeFlag{c, "mode"}, "mode", "router_mode: kv or lockstep pick a rank; round_robin, random, least_loaded or power_of_two a worker")
	f.StringArrayVar(&c.set, "set", nil, "set any settings field, `NAME=VALUE`; repeat for more")
	f.Var(&modeFlag{c, "router-mode"}, "router-mode", "as --mode, under its name in the settings file")
	f.Lookup("router-mode").Hidden = true
	f.StringVarP(&c.file, "config", "c", "", "settings `FILE` (YAML); attention_dp_config stands in it as in TensorRT-LLM's own")
}

// modeFlag is one of the names of the router's mode; the last one given counts,
// and errors name it as it was typed.
type modeFlag struct {
	c    *clusterFlags
	name string
}

// String, Set and Type are pflag.Value's.
func (m *modeFlag) String() string {
	if m.c == nil {
		return ""
	}
	return m.c.mode
}

// Set takes the mode.
func (m *modeFlag) Set(value string) error {
	m.c.mode, m.c.modeFlag = value, m.name
	return nil
}

// Type is the value's kind in the help text.
func (m *modeFlag) Type() string { return "string" }

// policyRotate is the simulator's own plain rotation, for comparison; no
// console runs it.
const policyRotate = "rotate"

// check refuses what no simulation can be built from.
func (c *clusterFlags) check(headless bool) error {
	switch {
	case c.workers < 1 || c.workers > 64:
		return fmt.Errorf("--workers %d: want 1 to 64", c.workers)
	case c.ranks < 1 || c.ranks > 512:
		return fmt.Errorf("--ranks %d: want 1 to 512", c.ranks)
	case c.blocks < 0:
		return fmt.Errorf("--blocks %d: want 0 (chosen for the traffic) or more", c.blocks)
	case c.maxActive < 0:
		return fmt.Errorf("--max-active %d: want 0 (chosen for the traffic) or more", c.maxActive)
	case !(c.speed >= 0 && c.speed <= 1000):
		return fmt.Errorf("--speed %v: want 0 to 1000", c.speed)
	case headless && c.speed == 0:
		return errors.New("--speed 0: a headless replay cannot stand still; want more than 0")
	case c.policy == policyRotate && !headless:
		return errors.New("--policy rotate: plain rotation is for --headless comparison only; choose default, kv_aware or conversation")
	}
	return nil
}

// settings returns the document the router starts with: base, or the settings
// file when there is one, with what the flags name set on top.
func (c *clusterFlags) settings(base model.Settings) (model.Settings, error) {
	s := base
	if c.file != "" {
		text, err := os.ReadFile(c.file)
		if err != nil {
			return s, fmt.Errorf("settings: %w; name a file that can be read with -c", err)
		}
		doc, err := settings.Parse(c.file, text)
		if err != nil {
			return s, err
		}
		if !doc.Enabled() {
			return s, fmt.Errorf("%s: enable_attention_dp is false: there would be no DP ranks to route to; set it to true", c.file)
		}
		s = doc.Settings()
	}
	for _, f := range []struct{ flag, field, value string }{
		{"policy", model.FieldPolicy, c.policy},
		{"placement", model.FieldNewConvPlacement, c.placement},
		{cmp.Or(c.modeFlag, "mode"), model.FieldRouterMode, c.mode},
	} {
		if f.value == "" || f.value == policyRotate {
			continue
		}
		if _, err := model.SetField(&s, model.FieldValue{Field: f.field, Value: f.value}); err != nil {
			return s, fmt.Errorf("--%s: %w", f.flag, err)
		}
	}
	values, err := fieldValues(c.set)
	if err != nil {
		return s, err
	}
	if _, err := model.SetFields(&s, values); err != nil {
		return s, fmt.Errorf("--set: %w", err)
	}
	return s, nil
}

// fieldValues reads NAME=VALUE; a rank's field is written weight:w0/3=0.8.
func fieldValues(set []string) ([]model.FieldValue, error) {
	values := make([]model.FieldValue, 0, len(set))
	for _, text := range set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("--set %q: want NAME=VALUE, for example --set lockstep_weight=2", text)
		}
		v := model.FieldValue{Field: strings.TrimSpace(name), Value: value}
		if field, rank, ok := strings.Cut(v.Field, ":"); ok {
			target, err := model.ParseTarget(rank)
			if err != nil {
				return nil, fmt.Errorf("--set %q: %w", text, err)
			}
			v.Field, v.Target = field, &target
		}
		values = append(values, v)
	}
	return values, nil
}

// screenFlags describe the console.
type screenFlags struct {
	theme, color, glyphs string
	console              string
	logFile, record      string
	listen, context      string
	plain                bool
	every                time.Duration
}

func (s *screenFlags) register(f *pflag.FlagSet) {
	s.registerLook(f)
	f.StringVar(&s.listen, "listen", "127.0.0.1:0", "`ADDRESS` of the feed; other consoles can attach to it; beyond loopback it needs a token in "+tokenEnv)
	f.StringVar(&s.record, "record", "", "write the feed to `FILE`; adpdeck attach FILE plays it")
}

func (s *screenFlags) registerLook(f *pflag.FlagSet) {
	f.BoolVar(&s.plain, "plain", false, "no screen: one sentence a line, commands typed by name; for screen readers, pipes and logs")
	f.DurationVar(&s.every, "every", 10*time.Second, "with --plain, the least time between two lines on figures that moved")
	f.StringVar(&s.theme, "theme", "auto", "night, day, mono, or a theme `FILE`")
	f.StringVar(&s.console, "console", "", "console `FILE` that says which key starts what (default: adpdeck/console.yaml in the user's configuration directory, where there is one)")
	f.StringVar(&s.color, "color", "auto", "auto, none, 16, 256 or true")
	f.StringVar(&s.glyphs, "glyphs", "auto", "auto, unicode or ascii")
	f.StringVar(&s.context, "context", "", "label of the cluster in the header")
	f.StringVar(&s.logFile, "log", "", "write the log to `FILE` (default: in the user's cache directory)")
}
