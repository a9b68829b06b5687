package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adpdeck/router/engine"
	"adpdeck/router/model"
	"adpdeck/router/settings"
	"github.com/spf13/pflag"
)

// serveArgs reads a command line as adpdeck serve does.
func serveArgs(t *testing.T, args ...string) (plan, error) {
	t.Helper()
	s := &serveFlags{fields: map[string]*string{}}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s.register(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s.read()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const oneTRT = `
router_mode: kv
attention_dp_config: {kv_cache_routing_load_balance_weight: 2}
workers:
  - {id: t0, kind: trtllm, url: "http://127.0.0.1:1"}
  - {id: v0, kind: vllm, url: "http://127.0.0.1:2", ranks: 2}
gateway: {listen: "127.0.0.1:3"}
`

func TestServeFlagsStandAboveTheFile(t *testing.T) {
	file := writeFile(t, "cluster.yaml", oneTRT)
	args := writeFile(t, "engine.yaml", `
tensor_parallel_size: 8
enable_attention_dp: true
max_batch_size: 64
kv_cache_config: {tokens_per_block: 32}
attention_dp_config: {kv_cache_routing_load_balance_weight: 3}
`)
	p, err := serveArgs(t, "-c", file, "--extra-engine-args", args, "--router-mode", "power-of-two", "--router-temperature", "0.5",
		"--conversation-affinity", "--listen", "127.0.0.1:4", "--feed", "127.0.0.1:5", "--set", "weight:t0/7=0.5")
	if err != nil {
		t.Fatal(err)
	}
	c := p.settings.AttentionDpConfig
	if c.KVCacheRoutingLoadBalanceWeight != 3 || !c.KVCacheRoutingConversationAffinity {
		t.Errorf("attention_dp_config %+v", c)
	}
	if p.settings.RouterMode != model.ModePowerOfTwo || p.settings.ClusterConfig.Temperature != 0.5 {
		t.Errorf("mode %s, temperature %v", p.settings.RouterMode, p.settings.ClusterConfig.Temperature)
	}
	if p.serve.Gateway.Listen != "127.0.0.1:4" || p.serve.FeedListen != "127.0.0.1:5" {
		t.Errorf("listens on %+v", p.serve)
	}
	if w := p.serve.Workers[0]; w.Ranks != 8 || w.BlockTokens != 32 || w.MaxNumActiveRequests != 64 {
		t.Errorf("the trtllm worker %+v", w)
	}
	if w := p.serve.Workers[1]; w.Ranks != 2 || w.BlockTokens != 0 {
		t.Errorf("the vllm worker %+v", w)
	}
	if got := p.settings.WeightOf(model.Target{Worker: "t0", Rank: 7}); got != 0.5 {
		t.Errorf("weight %v", got)
	}
}

func TestServeRefusesToStart(t *testing.T) {
	file := writeFile(t, "cluster.yaml", oneTRT)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "name the settings file with -c"},
		{[]string{"-c", "/nonexistent.yaml"}, "no such file"},
		{[]string{"-c", writeFile(t, "a.yaml", "router_mode: kv")}, "it names no workers"},
		{[]string{"-c", file, "--router-mode", "fast"}, "--router-mode: set router_mode to \"fast\""},
		{[]string{"-c", file, "--router-temperature", "-1"}, "--router-temperature"},
		{[]string{"-c", file, "--set", "nonsense=1"}, "no such field"},
		{[]string{"-c", file, "--extra-engine-args", file + ".no"}, "no such file"},
	} {
		_, err := serveArgs(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v\nwant %s", c.args, err, c.want)
		}
	}
}

// The files that the documentation offers are what serve takes.
func TestServeFilesOfTheDocumentation(t *testing.T) {
	files, err := filepath.Glob("../../docs/serve/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		p, err := serveArgs(t, "-c", file)
		if err == nil {
			err = engine.Check(p.serve.Workers)
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestWhatIsWrongIsSaid: one sentence with cause and next step, and status 1.
func TestWhatIsWrongIsSaid(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	taken := ln.Addr().String()
	gone := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}()
	for want, args := range map[string][]string{
		"no-such.yaml: no such file or directory; name a file that can be read with -c": {"serve", "-c", "no-such.yaml"},
		"address already in use; choose other addresses with --listen":                  {"dev", "engine", "--listen", taken},
		`kind "foo": want vllm, sglang, trtllm or dynamo`:                               {"dev", "engine", "--kind", "foo"},
		"go doc adpdeck/router/engine/enginetest.Habits lists them":                     {"dev", "engine", "--listen", "127.0.0.1:0", "--habits", `{"foo": 1}`},
		"--ranks 0, --blocks 4096, --max-active 64: each must be at least 1":            {"dev", "cluster", "--ranks", "0"},
		"--rank-ports: trtllm has one address for all ranks; leave it out":              {"dev", "engine", "--kind", "trtllm", "--rank-ports"},
		"read theme: open no-such.yaml: no such file or directory; give the path":       {"theme", "lint", "no-such.yaml"},
		"settings: open no-such.yaml: no such file or directory; name a file":           {"-c", "no-such.yaml"},
		"open trace: open no-such.jsonl: no such file or directory; name a trace file":  {"replay", "no-such.jsonl", "--headless"},
		gone + ": nothing listens there; start adpdeck serve, or name the feed's":       {"ctl", "--feed", gone, "get", "ranks"},
	} {
		var out, errOut strings.Builder
		if code := run(t.Context(), args, strings.NewReader(""), &out, &errOut); code != 1 || !strings.Contains(errOut.String(), want) || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%v: status %d, %q, want %q", args, code, errOut.String(), want)
		}
	}
}

// TestFakesOfOneDeploymentFitTogether: entries printed with --id and --group make
// one settings file.
func TestFakesOfOneDeploymentFitTogether(t *testing.T) {
	file := "workers:\n"
	for i, start := range []string{"0", "2"} {
		ctx, stop := context.WithCancel(t.Context())
		out, in := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			args := []string{"dev", "engine", "--id", fmt.Sprint("node", i), "--group", "moe", "--ranks", "2", "--start-rank", start, "--listen", "127.0.0.1:0"}
			ended <- run(ctx, args, strings.NewReader(""), in, io.Discard)
			_ = in.Close()
		}()
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), " ") {
				file += lines.Text() + "\n"
			}
			if strings.Contains(lines.Text(), "rank_replays") { // the last list, one line for each rank
				lines.Scan()
				file += lines.Text() + "\n"
				lines.Scan()
				file += lines.Text() + "\n"
				stop()
			}
		}
		stop()
		if code := <-ended; code != 0 {
			t.Fatalf("status %d", code)
		}
	}
	doc, err := settings.Parse("f", []byte(file))
	if err != nil {
		t.Fatalf("%v in\n%s", err, file)
	}
	if err := engine.Check(doc.Serve().Workers); err != nil {
		t.Errorf("%v in\n%s", err, file)
	}
}
