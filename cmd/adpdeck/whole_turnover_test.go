package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"adpdeck/feed"
	"adpdeck/router/engine/enginetest"
)

// churn is what comes and goes while requests go on.
type churn struct {
	reload, visit time.Duration // how often workers and consoles do
	rate          int           // requests a second
}

// TestChurnHolds is safety 3.5, 18: a worker that comes and goes with reloads of
// the settings, consoles that come, read and leave, and steady requests, of which
// none is lost; the process neither grows nor keeps descriptors. Long: every 5 s and
// every second for -soak.
func TestChurnHolds(t *testing.T) {
	t.Parallel()
	proc(t)
	d, c := 2*time.Second, churn{reload: 200 * time.Millisecond, visit: 50 * time.Millisecond, rate: 50}
	if long() {
		d, c = *soakTime, churn{reload: 5 * time.Second, visit: time.Second, rate: 100}
	}
	home, guest := fake(t, enginetest.Config{}), fake(t, enginetest.Config{})
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	writeCluster(t, file, "", home)
	p := startServe(t, file)
	one := func(i int) {
		// A bounded lot of conversations and prompts: what grows is a leak.
		a := ask{path: "/v1/completions", tokens: tokens(i % 500), conv: fmt.Sprint("c", i%200), stream: i%2 == 0, most: 8}
		resp, err := p.ask(a)
		if err != nil {
			t.Error(err)
			return
		}
		if got := read(resp); !got.ok() || a.stream && !strings.HasSuffix(got.body, "[DONE]\n\n") {
			t.Errorf("lost: %d %v %s", got.status, got.err, got.body)
		}
	}
	one(0)
	p.even()
	base := p.vitals()
	stop := p.watchVitals(time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var reloads, visits, sent atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() { every(ctx, c.reload, func(i int) { p.turnOver(file, i, home, guest); reloads.Add(1) }) })
	wg.Go(func() { every(ctx, c.visit, func(int) { visit(t, p.feed); visits.Add(1) }) })
	paced(8, c.rate, d, func(_, i int) { one(i); sent.Add(1) })
	wg.Wait()
	all := stop()
	t.Logf("%d requests, %d reloads, %d consoles", sent.Load(), reloads.Load(), visits.Load())
	flat(t, all, 2)
	if early, late := files(all[:len(all)/2]), files(all[len(all)/2:]); long() && late > early+2 {
		t.Errorf("%.1f descriptors in the first half, %.1f in the second", early, late)
	}
	writeCluster(t, file, "", home)
	p.ctl("reload")
	p.until("the guest has left", func() bool { return !strings.Contains(p.page(), "guest") && !strings.Contains(p.page(), `worker="w1"`) })
	p.even()
	p.rested(base)
	p.signal(syscall.SIGTERM)
	p.ends()
}

// every calls f once a period until ctx ends.
func every(ctx context.Context, period time.Duration, f func(i int)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f(i)
		}
	}
}

// turnOver brings the guest where it is not, by a signal, and takes it away where
// it is, by a command.
func (p *process) turnOver(file string, i int, home, guest *enginetest.Engine) {
	if i%2 == 0 {
		writeCluster(p.t, file, "", home, guest)
		p.signal(syscall.SIGHUP)
		p.until("the guest has come", func() bool { return strings.Contains(p.page(), `worker="w1"`) })
		return
	}
	writeCluster(p.t, file, "", home)
	p.ctl("reload")
}

// visit is a console that comes, sees, and leaves.
func visit(t testing.TB, at string) {
	c := feed.Dial(context.Background(), at, feed.ClientOptions{})
	defer c.Close()
	for began := time.Now(); c.View().State == nil; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Errorf("no snapshot: %+v", c.View().Link)
			return
		}
	}
}

// files is how many descriptors there were on average.
func files(all []vitals) (mean float64) {
	for _, v := range all {
		mean += float64(v.files) / float64(len(all))
	}
	return mean
}
