package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adpdeck/feed"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"

	"github.com/gorilla/websocket"
)

// process is adpdeck serve as a process of its own.
type process struct {
	t         testing.TB
	cmd       *exec.Cmd
	log       *lines
	url, feed string
	done      chan error
}

// lines collects what a process says.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// writeCluster writes a settings file for engines, as dev engine prints their
// part of it: workers w0, w1, ….
func writeCluster(t testing.TB, path, more string, engines ...*enginetest.Engine) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("workers:\n")
	for i, e := range engines {
		s := specs(e, "w0")[0]
		s.ID = fmt.Sprint("w", i)
		writeWorker(&b, &s)
	}
	b.WriteString(more)
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

var servingOn = regexp.MustCompile(`msg=serving gateway=(\S+) feed=(\S+)`)

// startServe runs adpdeck serve until it takes requests.
func startServe(t testing.TB, file string) *process {
	t.Helper()
	p := &process{t: t, log: &lines{}, done: make(chan error, 1)}
	p.cmd = exec.Command("adpdeck", "serve", "-c", file, "--listen", "127.0.0.1:0", "--feed", "127.0.0.1:0")
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.until("it serves", func() bool { return servingOn.MatchString(p.log.String()) })
	on := servingOn.FindStringSubmatch(p.log.String())
	p.url, p.feed = "http://"+on[1], on[2]
	p.until("it is ready", func() bool {
		resp, err := http.Get(p.url + "/ready")
		return err == nil && read(resp).status == 200
	})
	return p
}

func (p *process) until(what string, is func() bool) {
	p.t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			p.t.Fatalf("%s: not within 20 s; it said:\n%s", what, p.log)
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the process and wants exit status 0.
func (p *process) ends() {
	p.t.Helper()
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("it ended with %v; it said:\n%s", err, p.log)
		}
	case <-time.After(20 * time.Second):
		p.t.Fatalf("it did not end; it said:\n%s", p.log)
	}
}

func (p *process) ask(a ask) (*http.Response, error) {
	req, err := a.request(p.url)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}

// ctl runs adpdeck ctl as a process of its own.
func (p *process) ctl(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("adpdeck", append([]string{"ctl", "--feed", p.feed}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("ctl %v: %v: %s", args, err, out)
	}
	return string(out)
}

// watch follows the feed and says how it was closed.
func (p *process) watch() chan error {
	p.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{feed.Protocol}}
	c, resp, err := dialer.Dial("ws://"+p.feed+feed.Path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	closed := make(chan error, 1)
	go func() {
		defer c.Close()
		for {
			if _, _, err := c.ReadMessage(); err != nil {
				closed <- err
				return
			}
		}
	}()
	return closed
}

// TestSIGTERMDrains: streams finish, nothing new is taken, which probes and clients
// are told as long as a stream is open, the feed says 1001, and the status is 0.
func TestSIGTERMDrains(t *testing.T) {
	t.Parallel()
	e := fake(t, slowPair()[0])
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	writeCluster(t, file, "gateway: {drain_secs: 20}\n", e)
	p := startServe(t, file)
	closed := p.watch()
	const n = 4
	results := make(chan answer, n)
	for i := range n {
		resp, err := p.ask(ask{text: fmt.Sprint("stream ", i), stream: true, most: 100, header: []string{"Connection", "close"}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { results <- read(resp) }()
	}
	p.signal(syscall.SIGTERM)
	p.until("it drains", func() bool { return strings.Contains(p.log.String(), "draining") })
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{"/ready", http.StatusServiceUnavailable, `"draining"`},
		{"/health", http.StatusOK, `"draining"`},
		{"/live", http.StatusOK, "live"},
		{"/metrics", http.StatusOK, "adpdeck_gateway_open_requests"},
	} {
		resp, err := http.Get(p.url + c.path)
		if err != nil {
			t.Errorf("%s while draining: %v", c.path, err)
			continue
		}
		if a := read(resp); a.status != c.status || !strings.Contains(a.body, c.says) {
			t.Errorf("%s while draining: %d %s", c.path, a.status, a.body)
		}
	}
	if resp, err := p.ask(ask{text: "too late"}); err != nil {
		t.Errorf("a new request: %v", err)
	} else if a := read(resp); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "shutting_down") {
		t.Errorf("a new request: %d %s", a.status, a.body)
	}
	if len(results) == n {
		t.Fatal("all streams had ended before they were to be drained")
	}
	for range n {
		if a := <-results; !a.ok() || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
			t.Errorf("a stream that was open: %d %v ...%s", a.status, a.err, a.body[max(0, len(a.body)-200):])
		}
	}
	var end *websocket.CloseError
	if err := <-closed; !errors.As(err, &end) || end.Code != websocket.CloseGoingAway {
		t.Errorf("the feed ended with %v, want 1001", err)
	}
	p.ends()
	if !strings.Contains(p.log.String(), fmt.Sprintf("open=%d", n)) {
		t.Errorf("it said:\n%s", p.log)
	}
	untilIdle(t, e)
}

// untilIdle waits until an engine has no request.
func untilIdle(t testing.TB, e *enginetest.Engine) {
	t.Helper()
	for began := time.Now(); e.Open() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("the engine still has %d requests", e.Open())
		}
	}
}

// TestSecondSIGTERMEndsAtOnce, and so does the limit of a drain.
func TestSecondSIGTERMEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"signal": "3600", "limit": "0.2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fake(t, slowPair()[0])
			file := filepath.Join(t.TempDir(), "cluster.yaml")
			writeCluster(t, file, "gateway: {drain_secs: "+limit+"}\n", e)
			p := startServe(t, file)
			resp, err := p.ask(ask{text: "endless", stream: true, most: 20000})
			if err != nil {
				t.Fatal(err)
			}
			p.signal(syscall.SIGTERM)
			p.until("it drains", func() bool { return strings.Contains(p.log.String(), "draining") })
			began := time.Now()
			if name == "signal" {
				p.signal(syscall.SIGTERM)
			}
			if a := read(resp); a.err == nil {
				t.Error("the stream came whole")
			}
			p.ends()
			within(t, "the end", time.Since(began), time.Second)
			untilIdle(t, e)
		})
	}
}

// TestSIGHUPReloads: a file that has changed acts without a request lost, one that
// is wrong changes nothing.
func TestSIGHUPReloads(t *testing.T) {
	t.Parallel()
	one, two := fake(t, enginetest.Config{}), fake(t, enginetest.Config{})
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	writeCluster(t, file, "", one)
	p := startServe(t, file)
	good := func(a ask) answer {
		t.Helper()
		resp, err := p.ask(a)
		if err != nil {
			t.Fatal(err)
		}
		got := read(resp)
		if !got.ok() {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return got
	}
	good(ask{text: "first", conv: "c"})
	p.ctl("pin", "c", "w0/1", "--reason", "before the reload")

	writeCluster(t, file, "cluster_config: {router_temperature: 0.5}\n", one, two)
	p.signal(syscall.SIGHUP)
	p.until("w1 has come", func() bool { return strings.Contains(p.ctl("get", "workers"), "w1") })
	p.until("w1 is up", func() bool {
		resp, err := p.ask(ask{text: "to the new one", at: "w1/0"})
		return err == nil && read(resp).status == 200
	})
	if got := strings.TrimSpace(p.ctl("get", "router_temperature")); got != "0.5" {
		t.Errorf("router_temperature is %s", got)
	}
	if at := good(ask{text: "second", conv: "c"}).target; at != (model.Target{Worker: "w0", Rank: 1}) {
		t.Errorf("the pin was lost: %s", at)
	}
	if out := p.ctl("get", "history"); !strings.Contains(out, "SIGHUP") {
		t.Errorf("who changed it is not in the history:\n%s", out)
	}

	if err := os.WriteFile(file, []byte("workers: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.until("it is refused", func() bool { return strings.Contains(p.log.String(), "nothing was changed") })
	good(ask{text: "served all the same", at: "w1/1"})

	writeCluster(t, file, "cluster_config: {router_temperature: 0.5}\n", one)
	if out := p.ctl("reload"); !strings.Contains(out, "1 worker changed") {
		t.Errorf("ctl reload said %q", out)
	}
	p.until("w1 has left", func() bool { return !strings.Contains(p.ctl("get", "workers"), "w1") })
	p.signal(syscall.SIGTERM)
	p.ends()
}

// TestRefusedStarts: what cannot be served is said before anything runs.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	e := fake(t, enginetest.Config{})
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	writeCluster(t, file, "", e, e)
	for _, c := range []struct{ file, want string }{{file, "adpdeck:"}, {file + ".no", "no such file"}} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "adpdeck", "serve", "-c", c.file, "--listen", e.Addr(model.NoRank), "--feed", "127.0.0.1:0")
		var said bytes.Buffer
		cmd.Stderr = &said
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(said.String(), c.want) {
			t.Errorf("%v: %s", err, said.String())
		}
	}
}
