package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"adpdeck/feed"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/enginetest/clients"
	"adpdeck/router/model"
	"adpdeck/router/settings"
	"adpdeck/tui"

	"github.com/spf13/cobra"
)

// devFlags describe a whole cluster of fakes with its clients.
type devFlags struct {
	kinds        []string
	clients      int
	think        time.Duration
	mode         string
	listen, feed string
	headless     bool
	size         engineSize
}

func newDevCluster() *cobra.Command {
	d, s := &devFlags{}, &screenFlags{}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "fake engines, a gateway, clients that talk to it, and the console",
		Long: `Starts a fake engine for each kind named, adpdeck serve before them, clients who
hold conversations over HTTP, and the console on the feed: everything that a real
cluster has but GPUs. What serve's gateway and feed are asked works here too:

  curl 127.0.0.1:8800/v1/models
  adpdeck ctl get workers

The addresses of the engines stand in view 7; bad habits are switched there with
POST /__fake, see adpdeck dev engine.`,
		Example: `  adpdeck dev cluster
  adpdeck dev cluster --kinds vllm,sglang,trtllm --ranks 8 --clients 64`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.run(cmd, s)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&d.kinds, "kinds", []string{"vllm", "vllm"}, "kind of each worker: vllm, sglang, trtllm, dynamo")
	f.IntVar(&d.clients, "clients", 32, "conversations at the same time")
	f.DurationVar(&d.think, "think", time.Second, "mean time between two turns of a conversation")
	f.StringVar(&d.mode, "router-mode", string(model.ModeKV), "router_mode to start in")
	f.StringVar(&d.listen, "listen", "127.0.0.1:8800", "`ADDRESS` of the gateway")
	f.StringVar(&d.feed, "feed", "127.0.0.1:8801", "`ADDRESS` of the feed")
	f.BoolVar(&d.headless, "headless", false, "no console: serve until interrupted, log to stderr")
	d.size.register(f)
	s.registerLook(f)
	return cmd
}

func (d *devFlags) run(cmd *cobra.Command, s *screenFlags) error {
	if d.clients < 0 || d.clients > 100_000 {
		return fmt.Errorf("--clients %d: want 0 to 100000", d.clients)
	}
	if err := d.size.check(); err != nil {
		return err
	}
	log, closeLog, err := d.log(cmd, s)
	if err != nil {
		return err
	}
	defer closeLog()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	p, engines, err := d.plan(context.WithoutCancel(ctx)) // they outlive the gateway, which drains
	for _, e := range engines {
		defer e.Close()
	}
	if err != nil {
		return err
	}
	h, err := newHouse(p, nil, log)
	if err != nil {
		return err
	}
	crowd, err := clients.New(clients.Options{
		URL: "http://" + h.httpLn.Addr().String(), Model: engines[0].Config().Models[0], Clients: d.clients, Think: d.think, Seed: d.size.seed,
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: d.clients}},
	})
	if err != nil {
		return err
	}
	talk := func(ctx context.Context) error {
		if d.clients > 0 {
			crowd.Run(ctx)
		}
		<-ctx.Done()
		return nil
	}
	if d.headless {
		go talk(ctx) //nolint:errcheck // it has none
		return h.run(ctx)
	}
	screen, err := s.look(cmd, log)
	if err != nil {
		return err
	}
	screen.Embedded = true
	screen.Address = h.feedLn.Addr().String()
	screen.Client = feed.Dial(ctx, screen.Address, feed.ClientOptions{Token: os.Getenv(tokenEnv), ViewPeriod: tui.ReadPeriod})
	return s.showScreen(ctx, screen, tui.Job{Name: "serve", Run: h.run}, tui.Job{Name: "clients", Run: talk})
}

// log is the console's file, or stderr without one.
func (d *devFlags) log(cmd *cobra.Command, s *screenFlags) (*slog.Logger, func(), error) {
	if d.headless {
		return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)), func() {}, nil
	}
	return s.openLog()
}

const anyPort = "tcp://127.0.0.1:0"

// plan starts the fakes and returns what serve would be started with.
func (d *devFlags) plan(ctx context.Context) (plan, []*enginetest.Engine, error) {
	p := plan{settings: model.DefaultSettings(), serve: settings.DefaultServe(), name: "fake engines"}
	p.serve.Gateway.Listen, p.serve.FeedListen = d.listen, d.feed
	p.serve.Gateway.DrainSecs = 1 // nobody waits for made-up words
	if _, err := model.SetField(&p.settings, model.FieldValue{Field: model.FieldRouterMode, Value: d.mode}); err != nil {
		return p, nil, fmt.Errorf("--router-mode: %w", err)
	}
	if len(d.kinds) == 0 {
		return p, nil, errors.New("--kinds: want at least one of vllm, sglang, trtllm, dynamo")
	}
	var engines []*enginetest.Engine
	blocks := map[int]bool{}
	for i, kind := range d.kinds {
		cfg := d.size.config(model.EngineKind(strings.TrimSpace(kind)))
		if cfg.BlockTokens == 0 && slices.Contains(d.kinds, string(model.EngineTRTLLM)) {
			cfg.BlockTokens = 32 // all workers of a router have the same
		}
		cfg.Seed += uint64(i)
		cfg.InstanceBase = 1<<60 + uint64(i)<<32
		cfg.Events = eventsOf(cfg.Kind, anyPort, anyPort)
		e, err := enginetest.New(cfg)
		if err != nil {
			return p, engines, err
		}
		engines = append(engines, e)
		if err := e.Start(ctx, "127.0.0.1:0"); err != nil {
			return p, engines, err
		}
		list := specs(e, fmt.Sprintf("w%d", i))
		for k := range list {
			list[k].ID = fmt.Sprintf("w%d", len(p.serve.Workers)+k)
			blocks[list[k].BlockTokens] = true
		}
		p.serve.Workers = append(p.serve.Workers, list...)
	}
	if len(blocks) > 1 {
		return p, engines, errors.New("the engines differ in their block size: give one with --block-tokens")
	}
	return p, engines, nil
}
