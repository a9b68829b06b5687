package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"adpdeck/router/model"
)

// reloading is a house of a file that a test rewrites; nothing runs.
type reloading struct {
	*house
	t    *testing.T
	file string
}

const reloadFile = `
router_mode: kv
cluster_config: {router_temperature: %s}
workers:
%s
gateway: {listen: "127.0.0.1:0"}
feed: {listen: "127.0.0.1:0"}
%s`

const (
	workerA = `  - {id: a, kind: vllm, url: "http://127.0.0.1:1", ranks: 2}`
	workerB = `  - {id: b, kind: vllm, url: "http://127.0.0.1:2", ranks: 2}`
)

func newReloading(t *testing.T) *reloading {
	r := &reloading{t: t, file: writeFile(t, "cluster.yaml", "")}
	r.write("0.5", "", workerA)
	s := &serveFlags{file: r.file, fields: map[string]*string{}}
	for _, f := range dynamoFields() {
		s.fields[f.Name] = new(string)
	}
	p, err := s.read()
	if err != nil {
		t.Fatal(err)
	}
	if r.house, err = newHouse(p, s.read, slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.httpLn.Close(), r.feedLn.Close() })
	return r
}

func (r *reloading) write(temperature, more string, workers ...string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, fmt.Appendf(nil, reloadFile, temperature, strings.Join(workers, "\n"), more), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reloading) temperature() float64 {
	return r.live.Snapshot().Settings.ClusterConfig.Temperature
}

func (r *reloading) workers() (ids string) {
	for _, w := range r.plan().serve.Workers {
		ids += w.ID
	}
	return ids
}

func reloadBy(id string) model.Command {
	return model.Command{ID: id, Verb: model.VerbReload, Actor: "ann"}
}

// TestReloadIsOneCommand: it makes a version and an event, also where only workers
// differ; its id is answered once, whatever the file says by then; an undo takes
// its settings back.
func TestReloadIsOneCommand(t *testing.T) {
	r := newReloading(t)
	r.write("0.25", "", workerA, workerB)
	first := r.Apply(reloadBy("one"))
	if !first.Accepted || first.Version != 2 || first.What != "reload: 1 setting, 1 worker changed (b is new)" {
		t.Fatalf("%+v", first)
	}
	s := r.live.Snapshot()
	if rev := s.Revisions[0]; rev.Verb != model.VerbReload || rev.Actor != "ann" || rev.What != first.What || s.Events[0].Command != "one" {
		t.Fatalf("%+v", rev)
	}
	r.write("0.75", "", workerA)
	if again := r.Apply(reloadBy("one")); again.Version != 2 || !again.Accepted || r.temperature() != 0.25 || r.workers() != "ab" {
		t.Fatalf("the same id again: %+v, temperature %v, workers %s", again, r.temperature(), r.workers())
	}
	r.write("0.25", "", workerA)
	if got := r.Apply(reloadBy("two")); !got.Accepted || got.Version != 3 || got.What != "reload: 1 worker changed (b is gone)" || r.workers() != "a" {
		t.Fatalf("%+v", got)
	}
	got := r.Apply(model.Command{ID: "undo", Verb: model.VerbUndo, Undo: 2})
	if !got.Accepted || r.temperature() != 0.5 || !strings.HasSuffix(got.What, "(b is new)), the settings alone: workers stay as the file names them") {
		t.Fatalf("%+v", got)
	}
	stale := reloadBy("stale")
	stale.Expect = 3
	r.write("0.1", "", workerA, workerB)
	if got := r.Apply(stale); got.Accepted || got.Refusal.Code != model.RefusedConflict || r.workers() != "a" || r.temperature() != 0.5 {
		t.Fatalf("%+v", got)
	}
}

// TestReloadRefusedChangesNothing: neither settings nor workers, whatever part of
// the file is at fault.
func TestReloadRefusedChangesNothing(t *testing.T) {
	t.Setenv("ADPDECK_TEST_EMPTY", "")
	for name, c := range map[string]struct {
		temperature, more string
		workers           []string
		code              model.RefusalCode
	}{
		"a setting":     {"-1", "", []string{workerA, workerB}, model.RefusedFile},
		"a worker":      {"0.1", "", []string{workerA, workerA}, model.RefusedFile},
		"a key":         {"0.1", "", []string{workerA, `  - {id: c, kind: vllm, url: "http://127.0.0.1:3", api_key_env: ADPDECK_TEST_EMPTY}`}, model.RefusedFile},
		"what is fixed": {"0.1", "nonsense: 1", []string{workerA, workerB}, model.RefusedFile},
		"no file":       {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReloading(t)
			if c.workers == nil {
				c.code = model.RefusedFile
				if err := os.Remove(r.file); err != nil {
					t.Fatal(err)
				}
			} else {
				r.write(c.temperature, c.more, c.workers...)
			}
			got := r.Apply(reloadBy("one"))
			if got.Accepted || got.Refusal.Code != c.code || got.Refusal.Next == "" || got.Version != 1 {
				t.Fatalf("%+v", got)
			}
			if r.temperature() != 0.5 || r.workers() != "a" || r.live.Snapshot().Version != 1 {
				t.Fatalf("temperature %v, workers %s", r.temperature(), r.workers())
			}
			r.write("0.1", "", workerA, workerB) // mended: the same id may act now
			if got := r.Apply(reloadBy("one")); !got.Accepted || r.temperature() != 0.1 || r.workers() != "ab" {
				t.Fatalf("mended: %+v", got)
			}
		})
	}
}

// TestReloadWeightsOfRanksToCome: a file may weigh ranks whose engine has not
// answered yet, at a reload as at the start.
func TestReloadWeightsOfRanksToCome(t *testing.T) {
	r := newReloading(t)
	r.write("0.5", "weights: {a/1: 0.5, b/0: 0.25}", workerA, workerB)
	got := r.Apply(reloadBy("one"))
	if !got.Accepted {
		t.Fatalf("%+v", got.Refusal)
	}
	if err := r.live.Join(model.WorkerSpec{ID: "b", Ranks: 2}); err != nil {
		t.Fatal(err)
	}
	if rank := r.live.Snapshot().Ranks[0]; rank.Target != (model.Target{Worker: "b", Rank: 0}) || rank.Weight != 0.25 {
		t.Fatalf("%+v", rank)
	}
}

// TestReloadsAndSetsAtOnce: they come one after another, each a version.
func TestReloadsAndSetsAtOnce(t *testing.T) {
	r := newReloading(t)
	var wg sync.WaitGroup
	accepted := make(chan uint64, 200)
	for i := range 4 {
		wg.Go(func() {
			for k := range 20 {
				id := fmt.Sprint(i, "-", k)
				cmd := reloadBy(id)
				if i%2 == 0 {
					cmd = model.Command{ID: id, Verb: model.VerbSet, Set: []model.FieldValue{{Field: "router_temperature", Value: fmt.Sprint(k % 2)}}}
				}
				if reply := r.Apply(cmd); reply.Accepted {
					accepted <- reply.Version
				}
			}
		})
	}
	wg.Wait()
	close(accepted)
	seen := map[uint64]bool{}
	for v := range accepted {
		if seen[v] {
			t.Fatalf("v%d was made twice", v)
		}
		seen[v] = true
	}
	if n := len(seen); n != 80 || r.live.Snapshot().Version != 81 {
		t.Fatalf("%d versions, at v%d", n, r.live.Snapshot().Version)
	}
}

// TestReloadNamesWorkers: who renames a worker is told that it is two.
func TestReloadNamesWorkers(t *testing.T) {
	r := newReloading(t)
	r.write("0.5", "", strings.Replace(workerA, "id: a", "id: z", 1))
	if got := r.Apply(reloadBy("rename")); got.What != "reload: 2 workers changed (z is new, a is gone)" {
		t.Errorf("%+v", got)
	}
	r.write("0.5", "", strings.Replace(workerA, "id: a, kind: vllm", "id: z, kind: sglang", 1))
	if got := r.Apply(reloadBy("kind")); got.What != "reload: 1 worker changed (z differs)" {
		t.Errorf("%+v", got)
	}
	var many []model.EngineSpec
	for i := range 9 {
		many = append(many, model.EngineSpec{ID: fmt.Sprint("w", i)})
	}
	if got := told(0, turnover(nil, many)); got != "9 workers changed (w0 is new, w1 is new, w2 is new, w3 is new, w4 is new, w5 is new and 3 more)" {
		t.Errorf("%q", got)
	}
}
