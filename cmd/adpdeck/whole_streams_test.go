package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
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

// stream reads a stamped stream and notes how late each chunk came.
func stream(client *http.Client, url string, i int, late *lateness) (chunks int, err error) {
	req, err := ask{text: fmt.Sprint("stream ", i), stream: true, conv: fmt.Sprint("c", i)}.request(url)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		if line == "data: [DONE]" {
			return chunks, nil
		}
		if _, text, ok := strings.Cut(line, `"content":"`); ok {
			number, _, _ := strings.Cut(text, `"`)
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return chunks, err
			}
			late.add(time.Duration(time.Now().UnixNano() - n))
			chunks++
		}
	}
	return chunks, fmt.Errorf("it broke off: %w", lines.Err())
}

// streams reads n streams at a time, begun one after the other within a second,
// and wants all of them whole.
func streams(t testing.TB, client *http.Client, url string, n, chunks int) *lateness {
	t.Helper()
	late := &lateness{}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / time.Duration(n))
			if got, err := stream(client, url, i, late); err != nil || got != chunks {
				t.Errorf("stream %d: %d of %d chunks, %v", i, got, chunks, err)
			}
		})
	}
	wg.Wait()
	return late
}

// TestStreamsHold is safety 3.5, 17: streams at 20 chunks a second each through a
// process of its own, of which none is lost, no chunk is late, and which leave
// nothing behind. Long: 1,000 of them for -soak, after a fifth of that straight at
// the engine.
func TestStreamsHold(t *testing.T) {
	t.Parallel()
	proc(t)
	n, d := 100, time.Second
	if long() {
		n, d = 1000, *soakTime
	}
	const pause = 50 * time.Millisecond
	chunks := int(d / pause)
	e, straight := stamped(t, chunks, pause), stamped(t, max(chunks/5, 1), pause)
	p := startServe(t, fileWith(t, model.EngineSpec{ID: "w0", Kind: model.EngineVLLM, URL: e.URL, Ranks: 8, BlockTokens: 16}))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}
	defer client.CloseIdleConnections()
	p.even()
	base := p.vitals()
	var without *lateness
	if long() {
		without = streams(t, client, straight.URL, n, max(chunks/5, 1))
		t.Logf("%d streams straight from the engine: %s", n, without)
		client.CloseIdleConnections()
	}
	stop := p.watchVitals(time.Second)
	late := streams(t, client, p.url, n, chunks)
	all := stop()
	t.Logf("%d streams through the gateway: %s", n, late)
	flat(t, all, 6)
	if long() {
		within(t, "added to a chunk at p99", late.quantile(990)-without.quantile(990), 5*time.Millisecond)
	}
	p.even()
	client.CloseIdleConnections()
	p.rested(base)
	if page := p.page(); sum(t, page, "adpdeck_rank_requests_total") != float64(n) {
		t.Errorf("%v requests were routed, want %d", sum(t, page, "adpdeck_rank_requests_total"), n)
	}
	p.signal(syscall.SIGTERM)
	p.ends()
}

// fileWith writes a settings file of workers.
func fileWith(t testing.TB, workers ...model.EngineSpec) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("workers:\n")
	for i := range workers {
		writeWorker(&b, &workers[i])
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
