package router

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"adpdeck/router/model"
)

// fakeClock is a clock that stands until it is moved.
type fakeClock struct{ ns atomic.Int64 }

var epoch = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func (c *fakeClock) Now() time.Time           { return epoch.Add(time.Duration(c.ns.Load())) }
func (c *fakeClock) advance(by time.Duration) { c.ns.Add(int64(by)) }

// bench is a router with its clock and a counter of ids.
type bench struct {
	*Router
	clock *fakeClock
	ids   int64
	cmds  int
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// newBench makes a router of workers × ranks with hard cap 8 that records.
func newBench(t tester, workers, ranks int, policy model.Policy, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{clock: &fakeClock{}}
	cfg := Config{Clock: b.clock, Record: true}
	cfg.Settings.AttentionDpConfig = model.DefaultAttentionDpConfig().WithPolicy(policy)
	for i := range workers {
		cfg.Workers = append(cfg.Workers, model.WorkerSpec{ID: fmt.Sprintf("w%d", i), Ranks: ranks, MaxNumActiveRequests: 8, Engine: "test"})
	}
	for _, f := range change {
		f(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	b.Router = r
	return b
}

// targets are the ranks that are there, ordered.
func (b *bench) targets() (all []model.Target) {
	for _, s := range b.know.seats.Load().all {
		all = append(all, s.target)
	}
	return all
}

func conversation(id string) model.ConvKey { return model.ConvKey{ID: id} }

func at(worker string, rank int) model.Target { return model.Target{Worker: worker, Rank: rank} }

// submit opens one request of conv and returns its id and target.
func (b *bench) submit(t tester, conv string, change ...func(*model.Request)) (int64, model.Target) {
	t.Helper()
	b.ids++
	req := model.Request{ID: b.ids, PromptTokens: 100, Conv: conversation(conv)}
	for _, f := range change {
		f(&req)
	}
	got, err := b.Submit(&req)
	if err != nil {
		t.Fatalf("submit %q: %v", conv, err)
	}
	return req.ID, got
}

// step routes the requests at a worker whose ranks have counts requests each,
// 10 tokens per request, and returns the ranks.
func (b *bench) step(t tester, worker string, counts []int, ids ...int64) []int32 {
	t.Helper()
	in := model.StepInput{HardCap: 8}
	for k := range b.workers[b.byID[worker]].ranks {
		s := model.RankState{Rank: k}
		if k < len(counts) {
			s.NumActiveRequests, s.NumActiveTokens = counts[k], 10*counts[k]
		}
		in.States = append(in.States, s)
	}
	for _, id := range ids {
		in.Requests = append(in.Requests, model.StepRequest{ID: id})
	}
	var out model.StepOutput
	if err := b.Step(worker, &in, &out); err != nil {
		t.Fatalf("step: %v", err)
	}
	return out.Ranks
}

// place submits one request and routes it; the request stays open.
func (b *bench) place(t tester, conv string, counts []int, change ...func(*model.Request)) (int64, model.Target) {
	t.Helper()
	id, target := b.submit(t, conv, change...)
	target.Rank = int(b.step(t, target.Worker, counts, id)[0])
	return id, target
}

// turn is place and done.
func (b *bench) turn(t tester, conv string, counts []int, change ...func(*model.Request)) model.Target {
	t.Helper()
	id, target := b.place(t, conv, counts, change...)
	b.Done(id, model.OutcomeOK)
	return target
}

// do applies a command under a new id.
func (b *bench) do(cmd model.Command) model.Reply {
	b.cmds++
	cmd.ID = fmt.Sprintf("cmd-%d", b.cmds)
	if cmd.Actor == "" {
		cmd.Actor = "bob"
	}
	return b.Apply(cmd)
}

// must applies a command that has to be accepted.
func (b *bench) must(t tester, cmd model.Command) model.Reply {
	t.Helper()
	reply := b.do(cmd)
	if !reply.Accepted {
		t.Fatalf("%s refused: %v", cmd.Verb, reply.Refusal)
	}
	return reply
}

func set(field, value string) model.Command {
	return model.Command{Verb: model.VerbSet, Set: []model.FieldValue{{Field: field, Value: value}}}
}

func setWeight(t model.Target, value string) model.Command {
	return model.Command{Verb: model.VerbSet, Set: []model.FieldValue{{Field: model.FieldWeight, Target: &t, Value: value}}}
}

func onConvs(verb model.Verb, target *model.Target, convs ...string) model.Command {
	cmd := model.Command{Verb: verb, Target: target}
	for _, c := range convs {
		cmd.Convs = append(cmd.Convs, conversation(c))
	}
	return cmd
}

func onRank(verb model.Verb, t model.Target) model.Command {
	return model.Command{Verb: verb, Target: &t}
}

func undo(version uint64) model.Command { return model.Command{Verb: model.VerbUndo, Undo: version} }

func ptr[T any](v T) *T { return &v }

// lastDecision is the newest record.
func (b *bench) lastDecision(t *testing.T) *model.Decision {
	t.Helper()
	all := b.Decisions(0, 1)
	if len(all) != 1 {
		t.Fatal("no decision was recorded")
	}
	return all[0]
}

// conv is a conversation as published.
func (b *bench) conv(t tester, id string) *model.Conv {
	t.Helper()
	for _, c := range b.Snapshot().Convs {
		if c.Key.ID == id {
			return c
		}
	}
	t.Fatalf("conversation %q is not known", id)
	return nil
}
