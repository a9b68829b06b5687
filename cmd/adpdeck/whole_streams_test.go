package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adpdeck/router/model"
)

// stamped is an engine whose chunks say when they were written, so that what lies
// between writing and reading can be measured.
func stamped(t testing.TB, chunks int, pause time.Duration) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"fake-model","object":"model"}]}`))
	})
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for range chunks {
			if _, err := fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d\"}}]}\n\n", time.Now().UnixNano()); err != nil || out.Flush() != nil {
				return
			}
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// stream reads a stamped stream and says how late each chunk came.
func stream(client *http.Client, url string, i int) (late []time.Duration, err error) {
	req, err := ask{text: fmt.Sprint("stream ", i), stream: true, conv: fmt.Sprint("c", i)}.request(url)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		if line == "data: [DONE]" {
			return late, nil
		}
		if _, text, ok := strings.Cut(line, `"content":"`); ok {
			n, err := strconv.ParseInt(text[:strings.IndexByte(text, '"')], 10, 64)
			if err != nil {
				return late, err
			}
			late = append(late, time.Duration(time.Now().UnixNano()-n))
		}
	}
	return late, fmt.Errorf("it broke off: %w", lines.Err())
}

// streams reads n streams at a time, the first beginning over a second.
func streams(client *http.Client, url string, n int) (late []time.Duration, whole int, errs []error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / time.Duration(n))
			l, err := stream(client, url, i)
			mu.Lock()
			defer mu.Unlock()
			late = append(late, l...)
			if err != nil {
				errs = append(errs, err)
			} else {
				whole++
			}
		})
	}
	wg.Wait()
	return late, whole, errs
}

// resident is the process's memory in bytes, 0 where it cannot be known.
func resident() int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(b))[1])
	return pages * os.Getpagesize()
}

// TestManyStreams is safety 3.5, 17: streams at 20 chunks a second each, of which
// none is lost, and goroutines that end with them. Long: 1,000 of them for a
// minute; client, gateway and engine share the machine.
func TestManyStreams(t *testing.T) {
	n, d := 200, 2*time.Second
	if long() {
		n, d = 1000, time.Minute
	}
	const pause = 50 * time.Millisecond
	chunks := int(d / pause)
	atFirst := runtime.NumGoroutine()
	e := stamped(t, chunks, pause)
	w := before(t, func(p *plan) {
		p.serve.Workers = []model.EngineSpec{{ID: "w0", Kind: model.EngineVLLM, URL: e.URL, Ranks: 8, BlockTokens: 16}}
	})
	w.ready()
	if _, err := stream(w.http, w.url, 0); err != nil { // what runs anyway runs now
		t.Fatal(err)
	}
	rest := func() {
		w.http.CloseIdleConnections()
		runtime.GC()
	}
	rest()
	base := runtime.NumGoroutine()
	if long() {
		late, _, _ := streams(w.http, e.URL, n)
		t.Logf("straight from the engine: %s", quantiles(late))
	}
	var half, most atomic.Int64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		began := time.Now()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			m := int64(resident())
			if time.Since(began) < d/2 {
				half.Store(max(half.Load(), m))
			}
			most.Store(max(most.Load(), m))
		}
	})
	late, whole, errs := streams(w.http, w.url, n)
	close(stop)
	watch.Wait()
	t.Logf("%d streams through the gateway: %s; resident at most %d MiB in the first half, %d MiB in all",
		n, quantiles(late), half.Load()>>20, most.Load()>>20)
	if whole != n || len(late) != n*chunks {
		t.Errorf("%d of %d streams came whole, %d of %d chunks: %v", whole, n, len(late), n*chunks, errs)
	}
	w.closed()
	back := func(to int, limit time.Duration) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			rest()
			switch n := runtime.NumGoroutine(); {
			case n <= to+5:
				return
			case time.Since(began) > limit:
				t.Fatalf("%d goroutines, %d at first", n, to)
			}
		}
	}
	if long() {
		back(base, time.Minute) // connections to the engine idle for half a minute
	}
	w.stop()
	e.Close()
	back(atFirst, 20*time.Second)
}
