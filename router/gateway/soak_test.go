package gateway

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var soak = flag.Duration("soak", 0, "how long TestStreamsHold runs, for example 10m")

// TestStreamsHold is safety 3.5, 17: 1,000 streams of 20 tokens a second. Client,
// gateway and engines share the machine, so that the time from an engine's write
// to the client's read holds the scheduling of all three.
func TestStreamsHold(t *testing.T) {
	if *soak == 0 {
		t.Skip("runs with -soak 10m only")
	}
	const streams, pace = 1000, 50 * time.Millisecond
	g := newRig(t, rigOptions{workers: 2, ranks: 4, handler: func(w http.ResponseWriter, r *http.Request, _ string, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(pace)
		defer tick.Stop()
		end := time.After(*soak)
		for {
			select {
			case <-tick.C:
				_, _ = fmt.Fprintf(w, "data: {\"at\":%d,\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n", time.Now().UnixNano())
				_ = http.NewResponseController(w).Flush()
			case <-end:
				_, _ = io.WriteString(w, "data: [DONE]\n\n")
				return
			case <-r.Context().Done():
				return
			}
		}
	}})
	base := runtime.NumGoroutine()
	var mu sync.Mutex
	var late []time.Duration
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			resp, err := g.send(t.Context(), "/v1/chat/completions", `{"stream":true}`, "X-Session-ID", strconv.Itoa(i))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			var own []time.Duration
			done := false
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if rest, ok := strings.CutPrefix(lines.Text(), `data: {"at":`); ok {
					number, _, _ := strings.Cut(rest, ",")
					at, _ := strconv.ParseInt(number, 10, 64)
					own = append(own, time.Since(time.Unix(0, at)))
				}
				done = done || lines.Text() == "data: [DONE]"
			}
			if !done {
				t.Error("a stream broke off")
			}
			mu.Lock()
			late = append(late, own...)
			mu.Unlock()
		})
	}
	until(t, "all streams are open", func() bool { return g.inFlight() == streams })
	time.Sleep(*soak / 5)
	early, earlyHeap := resident(t), live()
	time.Sleep(*soak * 3 / 5)
	after, afterHeap := resident(t), live()
	wg.Wait()
	slices.Sort(late)
	t.Logf("%d events, to the client in p50 %v, p99 %v; after a fifth and four fifths resident %d and %d KiB, live %d and %d KiB", len(late), late[len(late)/2], late[len(late)*99/100], early, after, earlyHeap, afterHeap)
	until(t, "goroutines are back", func() bool { g.rest(); return runtime.NumGoroutine() <= base+5 })
	if g.inFlight() != 0 {
		t.Error("requests are left on the books")
	}
}

// live is what the heap holds in KiB, the client's and the engines' part of it too.
func live() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc >> 10)
}

// resident is the process's memory in KiB, 0 where the system does not say.
func resident(t *testing.T) int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Log(err)
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(b))[1])
	return pages * os.Getpagesize() / 1024
}
