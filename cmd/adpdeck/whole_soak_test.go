package main

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// soakTime is how long the soaks measure where longEnv is set.
var soakTime = flag.Duration("soak", time.Minute, "how long TestStreamsHold and TestChurnHolds measure when "+longEnv+" is set, for example 15m")

// vitals are the figures of a process at one moment, by what users have too:
// /proc and the gateway's own page.
type vitals struct {
	at       time.Duration // since the watch began
	resident float64       // MiB
	heap     float64       // MiB in use
	goal     float64       // MiB at which garbage is collected: twice what the last collection left
	routines int
	files    int
}

// proc skips where a process cannot be seen from outside.
func proc(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("memory and descriptors of another process can only be read from /proc, which this system does not have")
	}
}

// vitals reads them.
func (p *process) vitals() (v vitals) {
	p.t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid))
	b, err := os.ReadFile(filepath.Join(dir, "statm"))
	if err != nil {
		p.t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		p.t.Fatalf("statm says %q", b)
	}
	v.resident = float64(pages) * float64(os.Getpagesize()) / (1 << 20)
	files, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		p.t.Fatal(err)
	}
	page := p.page()
	v.files, v.routines, v.heap = len(files), int(sum(p.t, page, "go_goroutines")), sum(p.t, page, "go_memstats_heap_inuse_bytes")/(1<<20)
	v.goal = sum(p.t, page, "go_memstats_next_gc_bytes") / (1 << 20)
	if v.routines == 0 {
		p.t.Fatal("the page has no go_goroutines")
	}
	return v
}

// page is the gateway's /metrics.
func (p *process) page() string {
	p.t.Helper()
	resp, err := http.Get(p.url + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	a := read(resp)
	if !a.ok() {
		p.t.Fatalf("/metrics: %d %v", a.status, a.err)
	}
	return a.body
}

// sum adds up the series of a name; before the first request some have none.
func sum(t testing.TB, page, name string) (total float64) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(page, -1) {
		f, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		total += f
	}
	return total
}

// watchVitals samples them once a period until stop is called, which returns them
// without those of the first fifth of the time and, where half of it is left then,
// of the first five minutes: Go collects garbage every two minutes in any case, and
// only a process that has done so twice under the whole load has touched the memory
// that it goes on using.
func (p *process) watchVitals(period time.Duration) (stop func() []vitals) {
	var all []vitals
	began, quit := time.Now(), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				v := p.vitals()
				v.at = time.Since(began)
				all = append(all, v)
			}
		}
	})
	return func() []vitals {
		close(quit)
		done.Wait()
		took := time.Since(began)
		warm := max(took/5, min(took/2, 5*time.Minute))
		return slices.DeleteFunc(all, func(v vitals) bool { return v.at < warm })
	}
}

// slope is the least-squares slope of a figure per hour and twice its standard
// error. Samples a second apart are much alike: their means over ten stretches of
// time are fitted, so that the error is that of what differs between those.
func slope(all []vitals, of func(v vitals) float64) (perHour, noise float64) {
	const blocks = 10
	if len(all) < 2*blocks {
		return math.NaN(), math.NaN()
	}
	var x, y [blocks]float64
	var mx, my float64
	for k := range blocks {
		part := all[k*len(all)/blocks : (k+1)*len(all)/blocks]
		for _, v := range part {
			x[k] += v.at.Hours() / float64(len(part))
			y[k] += of(v) / float64(len(part))
		}
		mx, my = mx+x[k]/blocks, my+y[k]/blocks
	}
	var xx, xy, rest float64
	for k := range blocks {
		xx, xy = xx+(x[k]-mx)*(x[k]-mx), xy+(x[k]-mx)*(y[k]-my)
	}
	perHour = xy / xx
	for k := range blocks {
		d := y[k] - my - perHour*(x[k]-mx)
		rest += d * d
	}
	return perHour, 2 * math.Sqrt(rest/(blocks-2)/xx)
}

// judged is how long samples must be taken for their slope to be more than the way
// of the heap between two collections.
const judged = 5 * time.Minute

// flat tells the slope of the process's memory, and where it was measured for long
// enough holds it to a bound in MiB per hour, as far as it is more than noise.
func flat(t testing.TB, all []vitals, bound float64) {
	t.Helper()
	if len(all) == 0 {
		return
	}
	first, last := all[0], all[len(all)-1]
	t.Logf("%d samples: resident %.1f to %.1f MiB, heap in use %.1f to %.1f, goal of the collector %.1f to %.1f, goroutines %d to %d, descriptors %d to %d",
		len(all), first.resident, last.resident, first.heap, last.heap, first.goal, last.goal, first.routines, last.routines, first.files, last.files)
	rss, noise := slope(all, func(v vitals) float64 { return v.resident })
	if math.IsNaN(rss) {
		return // too few for a slope
	}
	var means []string
	for k := range 10 {
		part := all[k*len(all)/10 : (k+1)*len(all)/10]
		mean := 0.0
		for _, v := range part {
			mean += v.resident / float64(len(part))
		}
		means = append(means, fmt.Sprintf("%.1f", mean))
	}
	t.Logf("resident in ten stretches of time: %s MiB", strings.Join(means, " "))
	t.Logf("resident %+.1f ± %.1f MiB/h, %+.2f ± %.2f per 10 min (bound %.0f MiB/h)", rss, noise, rss/6, noise/6, bound)
	if last.at-first.at < judged {
		t.Logf("not judged: that takes %v after the warm-up, give -soak 12m or more", judged)
		return
	}
	if long() && rss-noise > bound {
		t.Errorf("memory grows by %.1f ± %.1f MiB an hour, want less than %.0f", rss, noise, bound)
	}
}

// rested waits until a process has no more goroutines and descriptors than it
// had, but for five.
func (p *process) rested(base vitals) {
	p.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		http.DefaultClient.CloseIdleConnections()
		v := p.vitals()
		switch {
		case v.routines <= base.routines+5 && v.files <= base.files+5:
			p.t.Logf("back at %d goroutines and %d descriptors, from %d and %d at first", v.routines, v.files, base.routines, base.files)
			return
		case time.Since(began) > time.Minute:
			p.t.Fatalf("%d goroutines and %d descriptors, %d and %d at first", v.routines, v.files, base.routines, base.files)
		}
	}
}

// even wants nothing to be on a process's books.
func (p *process) even() {
	p.t.Helper()
	p.until("nothing is open", func() bool {
		page := p.page()
		return sum(p.t, page, "adpdeck_gateway_open_requests") == 0 && sum(p.t, page, "adpdeck_rank_in_flight") == 0
	})
}

// lateness is a histogram of times, a percent exact.
type lateness struct {
	mu   sync.Mutex // guards what follows
	at   [2400]int64
	n    int64
	most time.Duration
}

func (l *lateness) add(d time.Duration) {
	k := 0
	if d > time.Microsecond {
		k = min(int(math.Log(float64(d)/float64(time.Microsecond))*100), len(l.at)-1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[k]++
	l.n++
	l.most = max(l.most, d)
}

// quantile is the time that so many of a thousand were not above.
func (l *lateness) quantile(ofThousand int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var seen int64
	for k, n := range l.at {
		if seen += n; n > 0 && seen*1000 >= l.n*ofThousand {
			return min(time.Duration(math.Exp(float64(k+1)/100)*float64(time.Microsecond)), l.most)
		}
	}
	return l.most
}

func (l *lateness) String() string {
	return fmt.Sprintf("p50 %v, p99 %v, p99.9 %v, most %v of %d", l.quantile(500).Round(time.Microsecond), l.quantile(990).Round(time.Microsecond),
		l.quantile(999).Round(time.Microsecond), l.most.Round(time.Microsecond), l.n)
}
