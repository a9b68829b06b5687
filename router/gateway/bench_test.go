package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/model"
)

// benchRig is a gateway over 8 workers of 8 ranks whose engines answer at once.
func benchRig(b *testing.B) *rig {
	return newRig(b, rigOptions{workers: 8, ranks: 8, spec: model.GatewaySpec{DecisionHeaders: true, Retry: true, Tokenize: "text"}, handler: func(w http.ResponseWriter, _ *http.Request, _ string, body []byte) {
		if bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 2 {
				_, _ = io.WriteString(w, chunk(i))
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, okBody)
	}})
}

func benchBody(i int, stream bool) string {
	return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"system","content":"%s"},{"role":"user","content":"question %d"}]}`, stream, strings.Repeat("be kind and brief ", 100), i)
}

// BenchmarkOverhead sends requests in pairs at 500 a second, one to an engine
// itself and one through the gateway, and reports what the gateway adds: to the
// whole answer, or of streams to the first byte. Client, gateway and engines share
// the machine.
func BenchmarkOverhead(b *testing.B) {
	for _, stream := range []bool{false, true} {
		name := "whole"
		if stream {
			name = "first byte of a stream"
		}
		b.Run(name, func(b *testing.B) {
			g := benchRig(b)
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
			defer client.CloseIdleConnections()
			ask := func(url string, i int) time.Duration {
				start := time.Now()
				req, _ := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(benchBody(i, stream)))
				req.Header.Set("X-Session-ID", fmt.Sprint("c", i%500))
				resp, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return 0
				}
				defer resp.Body.Close()
				var first [1]byte
				_, _ = io.ReadFull(resp.Body, first[:])
				took := time.Since(start)
				_, _ = io.Copy(io.Discard, resp.Body)
				if stream {
					return took
				}
				return time.Since(start)
			}
			for i := range 200 { // connections are dialled
				ask(g.server.URL, i)
				ask(g.engines.servers["w0"].URL, i)
			}
			var mu sync.Mutex
			var direct, through []time.Duration
			var wg sync.WaitGroup
			tick := time.NewTicker(4 * time.Millisecond) // two requests each: 500 a second
			defer tick.Stop()
			b.ResetTimer()
			for i := range b.N {
				<-tick.C
				wg.Go(func() {
					var d, t time.Duration
					if i%2 == 0 {
						d = ask(g.engines.servers["w0"].URL, i)
						t = ask(g.server.URL, i)
					} else {
						t = ask(g.server.URL, i)
						d = ask(g.engines.servers["w0"].URL, i)
					}
					mu.Lock()
					direct, through = append(direct, d), append(through, t)
					mu.Unlock()
				})
			}
			wg.Wait()
			added := make([]time.Duration, len(direct))
			for i := range direct {
				added[i] = through[i] - direct[i]
			}
			report := func(list []time.Duration, name string) {
				slices.Sort(list)
				for _, p := range []int{50, 99} {
					b.ReportMetric(float64(list[(len(list)-1)*p/100].Microseconds())/1000, fmt.Sprintf("ms-%s-p%d", name, p))
				}
			}
			report(added, "added")
			report(direct, "direct")
			report(through, "through")
		})
	}
}

// answers is an engine without a network.
type answers struct{}

func (answers) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(okBody)), ContentLength: int64(len(okBody)), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// BenchmarkCarry is the gateway's own work for one request, without sockets.
func BenchmarkCarry(b *testing.B) {
	for name, change := range map[string]func(s *string){
		"chat of 2 kB": func(*string) {}, "chat of 200 kB": func(s *string) { *s = strings.Replace(*s, "be kind", strings.Repeat("be kind ", 25000), 1) },
		"128k tokens": func(s *string) { *s = `{"model":"m","prompt":[` + strings.Repeat("12345,", 1<<17) + `1]}` },
	} {
		b.Run(name, func(b *testing.B) {
			g := benchRig(b)
			f := &inProcess{fakeEngines: g.engines}
			g.Gateway.engines = f
			text := benchBody(0, false)
			change(&text)
			path := "/v1/chat/completions"
			if strings.Contains(text, `"prompt"`) {
				path = "/v1/completions"
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(text))
				r.Header.Set("X-Session-ID", "c")
				w := httptest.NewRecorder()
				g.ServeHTTP(w, r)
				if w.Code != 200 {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
