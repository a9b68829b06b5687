package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"adpdeck/router/model"
	"adpdeck/router/settings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// serveFlags are what adpdeck serve starts from: its file, and what stands
// above it.
type serveFlags struct {
	file, engineArgs  string
	listen, feed      string
	affinity, verbose bool
	fields            map[string]*string // by settings field
	set               []string
}

func newServe() *cobra.Command {
	s := &serveFlags{fields: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "serve -c FILE",
		Short: "gateway before real engines, with the feed for consoles",
		Long: `Answers the OpenAI API before vLLM, SGLang, TensorRT-LLM and Dynamo: each
request goes to the (worker, dp_rank) that the router chose. adpdeck attach shows
it, adpdeck ctl changes it. No terminal is needed; the log goes to stderr.

FILE is the settings file with a list of workers; docs/serve has one for each
kind of engine. Flags with Dynamo's names stand above the file. A feed beyond
loopback needs a token in ` + tokenEnv + `.

SIGTERM drains: nothing new is taken, streams finish within drain_secs; a second
signal ends at once. SIGHUP, or adpdeck ctl reload, reads FILE again.`,
		Example: `  adpdeck serve -c cluster.yaml
  adpdeck serve -c cluster.yaml --router-mode kv --router-temperature 0.2
  adpdeck attach 127.0.0.1:8801`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("serve %q: it takes no argument; name the file with -c", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: s.level()})))
		},
	}
	s.register(cmd.Flags())
	return cmd
}

func (s *serveFlags) level() slog.Level {
	if s.verbose {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func (s *serveFlags) register(f *pflag.FlagSet) {
	f.StringVarP(&s.file, "config", "c", "", "settings `FILE` (YAML) with workers")
	f.StringVar(&s.engineArgs, "extra-engine-args", "", "TensorRT-LLM's own `FILE`: attention_dp_config, ranks, block size of the trtllm workers")
	f.StringVar(&s.listen, "listen", "", "`ADDRESS` of the gateway (default: the file's, or 127.0.0.1:8800)")
	f.StringVar(&s.feed, "feed", "", "`ADDRESS` of the feed (default: the file's, or 127.0.0.1:8801)")
	f.BoolVar(&s.affinity, "conversation-affinity", false, "trtllm workers keep conversations on a rank of their own choice")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log what is only of interest when something is wrong")
	f.StringArrayVar(&s.set, "set", nil, "set any settings field, `NAME=VALUE`; repeat for more")
	for _, field := range dynamoFields() {
		value := new(string)
		s.fields[field.Name] = value
		f.StringVar(value, strings.ReplaceAll(field.Name, "_", "-"), "", field.Help)
	}
}

// dynamoFields are the settings that have a flag of their own: those that
// Dynamo's frontend has under the same name.
func dynamoFields() []model.Field {
	mode, _ := model.FieldByName(model.FieldRouterMode)
	fields := []model.Field{mode}
	for _, f := range model.ClusterFields() {
		if strings.HasPrefix(f.Name, "router_") || strings.HasPrefix(f.Name, "active_") || strings.HasPrefix(f.Name, "shared_cache_") {
			fields = append(fields, f)
		}
	}
	return fields
}

// plan is what a start or a reload is made from.
type plan struct {
	settings model.Settings
	serve    model.ServeSpec
	name     string // of the file, for the screen
}

// read reads the files and puts the flags on top.
func (s *serveFlags) read() (plan, error) {
	var p plan
	if s.file == "" {
		return p, errors.New("serve: name the settings file with -c; docs/serve has one for each kind of engine")
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return p, fmt.Errorf("settings: %w; name a file that can be read with -c", err)
	}
	doc, err := settings.Parse(s.file, text)
	if err != nil {
		return p, err
	}
	if !doc.Enabled() {
		return p, fmt.Errorf("%s: enable_attention_dp is false: there would be no DP ranks to route to; set it to true", s.file)
	}
	p.settings, p.serve, p.name = doc.Settings(), doc.Serve(), filepath.Base(s.file)
	if len(p.serve.Workers) == 0 {
		return p, fmt.Errorf("%s: it names no workers; add workers: with id, kind and url of each engine", s.file)
	}
	if err := s.engine(&p); err != nil {
		return p, err
	}
	if s.affinity {
		p.settings.AttentionDpConfig.KVCacheRoutingConversationAffinity = true
	}
	for _, f := range dynamoFields() {
		if v := *s.fields[f.Name]; v != "" {
			if _, err := model.SetField(&p.settings, model.FieldValue{Field: f.Name, Value: word(&f, v)}); err != nil {
				return p, fmt.Errorf("--%s: %w", strings.ReplaceAll(f.Name, "_", "-"), err)
			}
		}
	}
	values, err := fieldValues(s.set)
	if err != nil {
		return p, err
	}
	if _, err := model.SetFields(&p.settings, values); err != nil {
		return p, fmt.Errorf("--set: %w", err)
	}
	if s.listen != "" {
		p.serve.Gateway.Listen = s.listen
	}
	if s.feed != "" {
		p.serve.FeedListen = s.feed
	}
	return p, nil
}

// word is a flag's value as the settings spell it: Dynamo writes its modes with
// dashes.
func word(f *model.Field, v string) string {
	if u := strings.ReplaceAll(v, "-", "_"); slices.Contains(f.Options, u) {
		return u
	}
	return v
}

// engine reads TensorRT-LLM's own file, for workers that leave open what it says.
func (s *serveFlags) engine(p *plan) error {
	if s.engineArgs == "" {
		return nil
	}
	text, err := os.ReadFile(s.engineArgs)
	if err != nil {
		return fmt.Errorf("extra-engine-args: %w; name the file that trtllm-serve was started with", err)
	}
	a, err := settings.ParseEngineArgs(s.engineArgs, text)
	if err != nil {
		return err
	}
	p.settings.AttentionDpConfig = a.Settings.AttentionDpConfig
	fill := func(to *int, from int) {
		if *to == 0 {
			*to = from
		}
	}
	for i := range p.serve.Workers {
		w := &p.serve.Workers[i]
		if w.Kind != model.EngineTRTLLM {
			continue
		}
		fill(&w.Ranks, a.Ranks())
		fill(&w.BlockTokens, a.TokensPerBlock)
		fill(&w.MaxNumActiveRequests, a.MaxBatchSize)
		fill(&w.MaxBatchedTokens, a.MaxNumTokens)
	}
	return nil
}

func (s *serveFlags) run(ctx context.Context, log *slog.Logger) error {
	p, err := s.read()
	if err != nil {
		return err
	}
	h, err := newHouse(p, s.read, log)
	if err != nil {
		return err
	}
	return h.run(ctx)
}
