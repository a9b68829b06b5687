package main

import (
	"fmt"
	"time"

	"adpdeck/router"
	"adpdeck/router/model"
	"adpdeck/router/sim"
	"adpdeck/router/trace"
)

// cluster is a simulated cluster with the router that it asks. live is nil
// when the simulator routes by rotation.
type cluster struct {
	sim  *sim.Sim
	live *router.Router
}

// traffic opens the trace at path, or starts the generator when path is empty,
// and returns it with the cluster that suits it.
func (c *clusterFlags) traffic(path string) (sim.Traffic, sim.Config, *trace.Trace, error) {
	if path == "" {
		cfg := sim.DefaultConfig()
		g := sim.DefaultTraffic()
		g.Seed = c.seed
		size := c.size(cfg)
		g.Rate *= size
		g.Agents = max(1, int(float64(g.Agents)*size))
		t, err := trace.NewGenerator(g)
		return t, cfg, nil, err
	}
	cfg := sim.ReplayConfig()
	t, err := c.open(path)
	if err != nil {
		return nil, cfg, nil, err
	}
	cfg.BlockTokens, cfg.Name, cfg.BadRows = t.BlockTokens, t.Name, t.Bad.Count
	return t.Play(), cfg, t, nil
}

// generated is the name under which invented conversations can be replayed, a
// file of that name notwithstanding, and generatedRows how many requests they are.
const (
	generated     = "generated"
	generatedRows = 8000
)

// open reads the trace at path, or invents one.
func (c *clusterFlags) open(path string) (*trace.Trace, error) {
	if path != generated {
		return trace.Open(path)
	}
	g := sim.HeldOut()
	g.Seed = c.seed
	gen, err := trace.NewGenerator(g)
	if err != nil {
		return nil, err
	}
	t := &trace.Trace{Name: fmt.Sprintf("%s (seed %d)", generated, c.seed), BlockTokens: g.BlockTokens, Rows: make([]trace.Row, generatedRows)}
	for i := range t.Rows {
		gen.Next(&t.Rows[i])
	}
	return t, nil
}

// maxSize keeps the generator's warm-up a small part of the time to the first
// frame: a cluster above it gets no more traffic than one of that size.
const maxSize = 32

// size is how many times as many ranks the cluster has as the one that cfg and
// the default traffic are made for.
func (c *clusterFlags) size(cfg sim.Config) float64 {
	return min(maxSize, float64(c.workers*c.ranks)/float64(cfg.Workers*cfg.Ranks))
}

// build wires traffic, simulator and router. start is the virtual time of the
// beginning, pace how much closer arrivals are than the trace says.
func (c *clusterFlags) build(t sim.Traffic, cfg sim.Config, start time.Time, pace float64, record bool) (*cluster, error) {
	set, err := c.settings(sim.DefaultSettings())
	if err != nil {
		return nil, err
	}
	return c.buildWith(set, t, cfg, start, pace, record)
}

// buildWith is build with the settings given. On the screen the ranks always
// publish what they hold; without one only where the router looks at it.
func (c *clusterFlags) buildWith(set model.Settings, t sim.Traffic, cfg sim.Config, start time.Time, pace float64, record bool) (*cluster, error) {
	rotate := c.policy == policyRotate
	cfg.KVEvents = !rotate && (record || set.RouterMode == model.ModeKV || set.RouterMode == model.ModeLockstep)
	cfg.Workers, cfg.Ranks, cfg.Seed, cfg.Speed, cfg.Start = c.workers, c.ranks, c.seed, pace, start
	if c.blocks > 0 {
		cfg.Blocks = c.blocks
	}
	if c.maxActive > 0 {
		cfg.HardCap = c.maxActive
	}
	s, err := sim.New(cfg, t)
	if err != nil {
		return nil, err
	}
	if rotate {
		s.Use(sim.NewRotate(cfg.Specs()))
		return &cluster{sim: s}, nil
	}
	if m := set.AttentionDpConfig.KVCacheRoutingFairShareMultiplier; !record && m <= 0 && set.AttentionDpConfig.Policy() == model.PolicyKVAware {
		return nil, fmt.Errorf("kv_cache_routing_fair_share_multiplier %v: kv_aware would never place a request, where TensorRT-LLM drops them all; want more than 0", m)
	}
	rc := router.Config{Clock: s, Workers: cfg.Specs(), Settings: set, Record: record}
	if record {
		rc.Wall = time.Now
	}
	r, err := router.New(rc)
	if err != nil {
		return nil, err
	}
	s.Use(r)
	return &cluster{sim: s, live: r}, nil
}

// desk answers a console's commands: speed is the simulation's, all others are
// the router's.
type desk struct {
	*router.Router
	runner *sim.Runner
}

// Apply hands the command to whom it concerns.
func (d desk) Apply(cmd model.Command) model.Reply {
	if cmd.Verb != model.VerbSpeed {
		return d.Router.Apply(cmd)
	}
	return d.runner.Apply(cmd)
}
