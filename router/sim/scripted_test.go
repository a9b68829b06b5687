package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/trace"
)

// row makes a request of blocks of 512 tokens that are all content ids of its
// own, from id on.
func row(at time.Duration, conv string, prompt, output int, id uint64) trace.Row {
	r := trace.Row{
		At: at, Conv: model.ConvKey{ID: conv}, PromptTokens: prompt, OutputTokens: output, BlockTokens: 512,
	}
	if conv != "" {
		r.Turn = 1
	}
	prev := uint64(0)
	for i := range (prompt + 511) / 512 {
		prev = trace.Chain(prev, id+uint64(i))
		r.Blocks = append(r.Blocks, prev)
	}
	return r
}

// small is a cluster of one worker for rows made by row.
func small(ranks, hardCap int) Config {
	c := ReplayConfig()
	c.Ranks, c.HardCap, c.Blocks = ranks, hardCap, 1000
	return c
}

func play(t testing.TB, cfg Config, rows []trace.Row, r Router) *Sim {
	t.Helper()
	s, err := New(cfg, (&trace.Trace{Rows: rows}).Play())
	if err != nil {
		t.Fatal(err)
	}
	s.Use(r)
	return s
}

func run(t testing.TB, s *Sim) Report {
	t.Helper()
	if err := s.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	return s.Report(0)
}

// scripted wraps a Router, checks how it is called, and writes down every call.
type scripted struct {
	Router
	t      testing.TB
	now    func() time.Time
	log    []string
	open   map[int64]*seen
	gate   *model.AttentionDpConfig // instead of the Router's
	ranks  map[string]map[int]int   // active requests by worker and rank
	source model.Source
	report int
}

type seen struct {
	worker string
	rank   int
	first  bool
}

func script(t testing.TB, r Router) *scripted {
	return &scripted{Router: r, t: t, open: map[int64]*seen{}, ranks: map[string]map[int]int{}}
}

func (c *scripted) note(format string, args ...any) {
	at := ""
	if c.now != nil {
		at = c.now().Format("05.000000000 ")
	}
	c.log = append(c.log, at+fmt.Sprintf(format, args...))
}

func (c *scripted) Submit(req *model.Request) (model.Target, error) {
	to, err := c.Router.Submit(req)
	c.note("submit %d %s %d → %s %v", req.ID, req.Conv.ID, req.PromptTokens, to, err)
	if err == nil {
		if c.open[req.ID] != nil {
			c.t.Errorf("request %d was submitted twice", req.ID)
		}
		c.open[req.ID] = &seen{worker: to.Worker, rank: model.NoRank}
	}
	return to, err
}

func (c *scripted) Step(worker string, in *model.StepInput, out *model.StepOutput) error {
	if c.ranks[worker] == nil {
		c.ranks[worker] = map[int]int{}
	}
	for i, st := range in.States {
		if st.Rank != i || st.NumActiveRequests != c.ranks[worker][i] || st.NumActiveRequests > in.HardCap || st.NumActiveTokens < 0 {
			c.t.Errorf("%s/%d says %+v, there are %d active", worker, i, st, c.ranks[worker][i])
		}
	}
	err := c.Router.Step(worker, in, out)
	c.note("step %s %v → %v", worker, in.Requests, out.Ranks)
	for i, k := range out.Ranks {
		if r := c.open[in.Requests[i].ID]; r == nil || r.worker != worker || r.rank != model.NoRank {
			c.t.Errorf("request %d was stepped at %s out of turn: %+v", in.Requests[i].ID, worker, r)
		} else if r.rank = int(k); k >= 0 {
			c.ranks[worker][int(k)]++
		}
	}
	return err
}

func (c *scripted) FirstToken(id int64, u model.Usage) {
	c.note("first %d %+v", id, u)
	if r := c.open[id]; r == nil || r.first || r.rank != u.Ran.Rank || r.worker != u.Ran.Worker {
		c.t.Errorf("first token of %d at %s: %+v", id, u.Ran, r)
	} else {
		r.first = true
	}
	c.Router.FirstToken(id, u)
}

func (c *scripted) Done(id int64, o model.Outcome) {
	c.note("done %d %s", id, o)
	if r := c.open[id]; r == nil || o == model.OutcomeOK && !r.first {
		c.t.Errorf("request %d ended %s: %+v", id, o, r)
	} else {
		c.ranks[r.worker][r.rank]--
		delete(c.open, id)
	}
	c.Router.Done(id, o)
}

func (c *scripted) Gate(worker string) (model.AttentionDpConfig, int, int) {
	cfg, a, b := c.Router.Gate(worker)
	if c.gate != nil {
		cfg = *c.gate
	}
	return cfg, a, b
}

func (c *scripted) SetSource(s model.Source) { c.source = s }

func (c *scripted) Report(string, int, int, []model.RankState, []model.RankLoad) { c.report++ }

// stubborn is a Router that goes wrong in a given way.
type stubborn struct {
	Rotate
	submit func(*model.Request) (model.Target, error)
	step   func(in *model.StepInput, out *model.StepOutput) error
}

func (s *stubborn) Submit(r *model.Request) (model.Target, error) {
	if s.submit != nil {
		return s.submit(r)
	}
	return s.Rotate.Submit(r)
}

func (s *stubborn) Step(w string, in *model.StepInput, out *model.StepOutput) error {
	if s.step != nil {
		return s.step(in, out)
	}
	return s.Rotate.Step(w, in, out)
}

var errBroken = errors.New("broken")
