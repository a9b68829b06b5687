package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newDev() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev engine|cluster",
		Short: "fake engines, to try a configuration without a GPU",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("dev %q: there is dev engine and dev cluster", args[0])
			}
			return errors.New("dev: want engine or cluster")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newDevEngine(), newDevCluster())
	return cmd
}

// engineFlags describe one fake engine.
type engineFlags struct {
	kind, listen, habits string
	id, group            string
	events, replay       string
	loads                string
	models               []string
	start, workers       int
	rankPorts            bool
	size                 engineSize
}

// engineSize is what fake engines of a cluster share.
type engineSize struct {
	ranks, blocks, blockTokens, maxActive int
	seed                                  uint64
	instant                               bool
}

func (s *engineSize) register(f *pflag.FlagSet) {
	f.IntVar(&s.ranks, "ranks", 4, "DP ranks")
	f.IntVar(&s.blocks, "blocks", 4096, "KV-cache blocks of each rank")
	f.IntVar(&s.blockTokens, "block-tokens", 0, "tokens of a block (0: 16, 32 for trtllm)")
	f.IntVar(&s.maxActive, "max-active", 64, "requests that run at once on a rank")
	f.Uint64Var(&s.seed, "seed", 1, "chooses answers and block hashes")
	f.BoolVar(&s.instant, "instant", false, "answer without taking time")
}

// check refuses what a zero would turn into a default.
func (s *engineSize) check() error {
	if s.ranks < 1 || s.blocks < 1 || s.maxActive < 1 {
		return fmt.Errorf("--ranks %d, --blocks %d, --max-active %d: each must be at least 1", s.ranks, s.blocks, s.maxActive)
	}
	return nil
}

func (s *engineSize) config(kind model.EngineKind) enginetest.Config {
	return enginetest.Config{
		Kind: kind, Ranks: s.ranks, Blocks: s.blocks, BlockTokens: s.blockTokens, MaxActive: s.maxActive, Seed: s.seed,
		Timing: enginetest.Timing{Instant: s.instant, Barrier: true}, // attention data parallelism: ranks step together
	}
}

func newDevEngine() *cobra.Command {
	e := &engineFlags{}
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "one fake engine: vllm, sglang, trtllm or dynamo",
		Long: `Runs a fake engine until it is interrupted, and prints what belongs into the
settings file of adpdeck serve. It answers the OpenAI API with made-up words,
keeps a KV cache for each rank and publishes its events; go doc
adpdeck/router/engine/enginetest says what is faithful and what is invented.

Bad habits are switched with --habits and while it runs:

  curl 127.0.0.1:8000/__fake -d '{"habits": {"ignore_rank": ["chat"]}}'
  curl 127.0.0.1:8000/__fake -d '{"do": "restart", "rank": 1}'`,
		Example: `  adpdeck dev engine --kind vllm --ranks 4 --listen 127.0.0.1:8000
  adpdeck dev engine --id node2 --group moe --start-rank 4 --listen 127.0.0.1:8002
  adpdeck dev engine --kind sglang --ranks 8 --listen 127.0.0.1:30000 --habits '{"events_rank0_only": true}'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.kind, "kind", string(model.EngineVLLM), "vllm, sglang, trtllm or dynamo")
	f.StringVar(&e.id, "id", "", "`NAME` of the worker in the settings file (default: the kind and 0)")
	f.StringVar(&e.group, "group", "", "`NAME` of the deployment whose nodes number their ranks through (default with --start-rank: the kind)")
	f.StringVar(&e.listen, "listen", "127.0.0.1:8000", "`ADDRESS` of the web server; port 0 takes a free one")
	f.BoolVar(&e.rankPorts, "rank-ports", false, "one port for each rank, counted up from --listen's")
	f.StringVar(&e.events, "events", anyPort, "`ENDPOINT` of rank 0's KV events, the others count up; port 0: free ones; none: no events")
	f.StringVar(&e.replay, "replay", anyPort, "`ENDPOINT` at which rank 0 gives lost batches again; none: nowhere")
	f.StringVar(&e.loads, "loads", "none", "`ENDPOINT` at which loads are published, as vLLM and workers of dynamo do under Dynamo; ports count up")
	f.StringSliceVar(&e.models, "models", []string{"fake-model"}, "model names that it serves")
	f.IntVar(&e.start, "start-rank", 0, "global number of its first rank")
	f.IntVar(&e.workers, "workers", 1, "workers behind a dynamo frontend")
	f.StringVar(&e.habits, "habits", "", "bad habits as a `JSON` object")
	e.size.register(f)
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s %q: it takes no argument", cmd.Name(), args[0])
	}
	return nil
}

func (f *engineFlags) run(cmd *cobra.Command) error {
	if err := f.size.check(); err != nil {
		return err
	}
	cfg := f.size.config(model.EngineKind(f.kind))
	if f.rankPorts && (cfg.Kind == model.EngineTRTLLM || cfg.Kind == model.EngineDynamo) {
		return fmt.Errorf("--rank-ports: %s has one address for all ranks; leave it out, or use --kind vllm or sglang", f.kind)
	}
	cfg.Models, cfg.StartRank, cfg.Workers = f.models, f.start, f.workers
	cfg.Events = eventsOf(cfg.Kind, f.events, f.replay)
	if f.loads != "none" {
		cfg.Events.Loads = f.loads
	}
	e, err := enginetest.New(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	if f.habits != "" {
		if err := e.SetJSON([]byte(f.habits)); err != nil {
			return fmt.Errorf("--habits: %w; go doc adpdeck/router/engine/enginetest.Habits lists them", err)
		}
	}
	addresses, err := f.addresses()
	if err != nil {
		return err
	}
	if err := e.Start(cmd.Context(), addresses...); err != nil {
		return fmt.Errorf("%w; choose other addresses with --listen, --events, --replay and --loads", err)
	}
	out := cmd.OutOrStdout()
	at := e.URL(model.NoRank)
	if at == "" {
		at = e.URL(0)
	}
	fmt.Fprintf(out, "# a fake %s; bad habits: curl %s%s\nworkers:\n", f.kind, at, enginetest.ControlPath)
	for _, w := range specs(e, cmp.Or(f.id, f.kind+"0")) {
		w.Group = cmp.Or(f.group, w.Group)
		writeWorker(out, &w)
	}
	<-cmd.Context().Done()
	return nil
}

// addresses are where the engine listens: one, or one for each rank.
func (f *engineFlags) addresses() ([]string, error) {
	if !f.rankPorts {
		return []string{f.listen}, nil
	}
	host, text, err := net.SplitHostPort(f.listen)
	port, bad := strconv.Atoi(text)
	if err != nil || bad != nil || port < 0 || port+f.size.ranks > 65536 {
		return nil, fmt.Errorf("--listen %q: want HOST:PORT, with room for %d ports", f.listen, f.size.ranks)
	}
	list := make([]string, f.size.ranks)
	for i := range list {
		p := port
		if port != 0 {
			p += i
		}
		list[i] = net.JoinHostPort(host, strconv.Itoa(p))
	}
	return list, nil
}

// eventsOf is where an engine publishes; trtllm is read over HTTP.
func eventsOf(kind model.EngineKind, endpoint, replay string) enginetest.EventsConfig {
	if endpoint == "none" || kind == model.EngineTRTLLM {
		return enginetest.EventsConfig{}
	}
	e := enginetest.EventsConfig{Endpoint: endpoint}
	if kind != model.EngineDynamo && replay != "none" {
		e.Replay = replay
	}
	return e
}

// specs are the workers that a started fake engine is, as a settings file names
// them.
func specs(e *enginetest.Engine, id string) []model.EngineSpec {
	cfg := e.Config()
	base := model.EngineSpec{
		ID: id, Kind: cfg.Kind, StartRank: cfg.StartRank, Ranks: cfg.Ranks, BlockTokens: cfg.BlockTokens, MaxNumActiveRequests: cfg.MaxActive,
	}
	if url := e.URL(model.NoRank); url != "" {
		base.URL = url
	} else {
		for k := range cfg.Ranks {
			base.RankURLs = append(base.RankURLs, e.URL(k))
		}
	}
	if cfg.StartRank > 0 && cfg.Kind != model.EngineDynamo {
		base.Group = string(cfg.Kind)
	}
	if cfg.Kind == model.EngineDynamo {
		out := make([]model.EngineSpec, cfg.Workers)
		for i := range out {
			out[i] = base
			if len(out) > 1 {
				out[i].ID = strings.TrimRight(id, "0123456789") + strconv.Itoa(i)
			}
			out[i].InstanceID = cfg.InstanceBase + uint64(i)
			if at := e.EventEndpoint(i); at != "" {
				out[i].Events.Endpoint = at
			}
			if at := e.LoadEndpoint(i); at != "" {
				out[i].Events.Loads = []string{at}
			}
		}
		return out
	}
	switch {
	case cfg.Kind == model.EngineTRTLLM:
		base.Events.Transport = "http"
	case e.EventEndpoint(0) != "":
		for k := range cfg.Ranks {
			base.Events.RankEndpoints = append(base.Events.RankEndpoints, e.EventEndpoint(k))
			if at := e.ReplayEndpoint(k); at != "" {
				base.Events.RankReplays = append(base.Events.RankReplays, at)
			}
		}
	}
	for k := range cfg.Ranks {
		if at := e.LoadEndpoint(k); at != "" {
			base.Events.Loads = append(base.Events.Loads, at)
		}
	}
	return []model.EngineSpec{base}
}

// writeWorker writes one entry of a settings file's workers.
func writeWorker(w io.Writer, s *model.EngineSpec) {
	fmt.Fprintf(w, "  - id: %s\n    kind: %s\n", s.ID, s.Kind)
	list := func(indent, key string, values []string) {
		if len(values) == 0 {
			return
		}
		fmt.Fprintf(w, "%s%s:\n", indent, key)
		for _, v := range values {
			fmt.Fprintf(w, "%s  - %q\n", indent, v)
		}
	}
	if s.URL != "" {
		fmt.Fprintf(w, "    url: %s\n", s.URL)
	}
	list("    ", "rank_urls", s.RankURLs)
	if s.Group != "" {
		fmt.Fprintf(w, "    group: %s\n    start_rank: %d\n", s.Group, s.StartRank)
	}
	fmt.Fprintf(w, "    ranks: %d\n    block_tokens: %d\n    max_num_active_requests: %d\n", s.Ranks, s.BlockTokens, s.MaxNumActiveRequests)
	if s.InstanceID != 0 {
		fmt.Fprintf(w, "    instance_id: %d\n", s.InstanceID)
	}
	e := &s.Events
	if e.Transport == "" && e.Endpoint == "" && len(e.RankEndpoints) == 0 && len(e.Loads) == 0 {
		return
	}
	fmt.Fprintln(w, "    events:")
	if e.Transport != "" {
		fmt.Fprintf(w, "      transport: %s\n", e.Transport)
	}
	if e.Endpoint != "" {
		fmt.Fprintf(w, "      endpoint: %s\n", e.Endpoint)
	}
	list("      ", "rank_endpoints", e.RankEndpoints)
	list("      ", "rank_replays", e.RankReplays)
	list("      ", "loads", e.Loads)
}
