package main

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"adpdeck/router/engine"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// story is what one bad habit of a fake looks like from outside: to clients, and
// in what the console shows.
type story struct {
	engines []enginetest.Config // nil: two of vLLM with two ranks, w0 and w1
	plan    func(*plan)
	tell    func(w *whole)
}

// bad switches habits of the first engine on, as an operator would.
func (w *whole) bad(habits string) {
	w.t.Helper()
	if err := w.engines[0].SetJSON([]byte(habits)); err != nil {
		w.t.Fatal(err)
	}
}

// mended takes all bad habits away.
func (w *whole) mended() {
	w.t.Helper()
	if err := w.engines[0].Set(func(h *enginetest.Habits) { *h = enginetest.Habits{} }); err != nil {
		w.t.Fatal(err)
	}
}

// dies waits until w0 is out of rotation for a reason, then wants new work to go
// elsewhere.
func (w *whole) dies(began time.Time, why string) {
	w.t.Helper()
	w.until("w0 is out", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveDown })
	within(w.t, "out of rotation", time.Since(began), 3*time.Second)
	if got := workerOf(w.h.live.Snapshot(), "w0").LivenessWhy; !strings.Contains(got, why) {
		w.t.Errorf("down because %q, want %q", got, why)
	}
	for i := range 4 {
		if got := w.served(ask{text: fmt.Sprint("elsewhere ", i)}); got.target.Worker != "w1" {
			w.t.Errorf("new work went to %s", got.target)
		}
	}
}

// returns waits until w0 takes work again.
func (w *whole) returns(began time.Time) {
	w.t.Helper()
	w.until("w0 is back", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveUp })
	within(w.t, "back", time.Since(began), 5*time.Second)
	if got := w.served(ask{text: "welcome back", at: "w0/1"}); got.target != (model.Target{Worker: "w0", Rank: 1}) {
		w.t.Errorf("asked for w0/1, ran on %s", got.target)
	}
}

// passes is a story of health alone: the habit is switched on, w0 leaves for a
// reason, the habit ends, and w0 is back.
func passes(habits, why string) story {
	return story{tell: func(w *whole) {
		began := time.Now()
		w.bad(habits)
		w.dies(began, why)
		began = time.Now()
		w.mended()
		w.returns(began)
	}}
}

// patience lets clients wait no longer than d for an answer.
func patience(d time.Duration) func(*plan) {
	return func(p *plan) { p.serve.Gateway.RequestTimeoutSecs = d.Seconds() }
}

// soundEvents wants the index to be what the engine holds, whatever the habits.
func soundEvents(each ...string) story {
	return story{tell: func(w *whole) {
		n := 0
		for _, habits := range each {
			w.bad(habits)
			for range 12 {
				w.good(ask{path: "/v1/completions", tokens: tokens(n), at: fmt.Sprintf("w0/%d", n%2)})
				n++
			}
			w.mended()
			for range 2 { // whose batches show what was lost before them
				w.good(ask{path: "/v1/completions", tokens: tokens(n), at: fmt.Sprintf("w0/%d", n%2)})
				n++
			}
			w.until(habits+": the index is true", func(*model.State) bool { return w.agrees(0, n) })
		}
		for rank := range 2 {
			if row := indexOf(w.h.live.Snapshot(), "w0", rank); row.Feed != model.FeedLive || row.Refused != 0 {
				w.t.Errorf("%+v", row)
			}
		}
	}}
}

// blind is an index that must not believe that a rank's cache is empty.
func blind(habits string, rank int, others model.IndexFeed) story {
	return story{tell: func(w *whole) {
		w.bad(habits)
		for i := range 8 {
			w.good(ask{path: "/v1/completions", tokens: tokens(i), at: fmt.Sprintf("w0/%d", i%2)})
		}
		w.until("the rank is not taken for one that tells", func(s *model.State) bool {
			return indexOf(s, "w0", rank).Feed == model.FeedNone && indexOf(s, "w0", 0).Feed == others
		})
		if f := feedOf(w.h.live.Snapshot(), "w0", model.FeedKVEvents); f.State != model.FeedNone {
			w.t.Errorf("the worker's feed is shown as %s", f.State)
		}
	}}
}

// unknownRank wants a rank that the metrics leave out to be unknown, not idle.
func unknownRank(habits string) story {
	return story{tell: func(w *whole) {
		w.until("both ranks are known", func(s *model.State) bool {
			return !rankOf(s, "w0", 0).ReportedAt.IsZero() && !rankOf(s, "w0", 1).ReportedAt.IsZero()
		})
		w.bad(habits)
		w.until("rank 1 is not known", func(s *model.State) bool {
			return !rankOf(s, "w0", 0).ReportedAt.IsZero() && rankOf(s, "w0", 1).ReportedAt.IsZero()
		})
		w.good(ask{text: "it may be used all the same", at: "w0/1"})
		w.mended()
		w.until("it is known again", func(s *model.State) bool { return !rankOf(s, "w0", 1).ReportedAt.IsZero() })
	}}
}

// silentRank has two requests to one rank of w0 never answered, and a third; then
// the rank, and it alone, is out until it answers.
func silentRank(habits string) story {
	return story{
		plan: patience(400 * time.Millisecond),
		tell: func(w *whole) {
			w.bad(habits)
			for i := range 3 {
				if got := w.send(ask{text: fmt.Sprint("never ", i), at: "w0/1"}); got.status != 504 || !strings.Contains(got.body, "had not answered") {
					w.t.Errorf("%d %s", got.status, got.body)
				}
			}
			w.until("w0/1 is out", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveParts })
			got := w.send(ask{text: "asked for by name", at: "w0/1"})
			if got.status != 503 || !strings.Contains(got.body, "does not answer") || got.header.Get("Retry-After") == "" {
				w.t.Errorf("%d %s", got.status, got.body)
			}
			began := time.Now()
			w.mended()
			w.returns(began)
		},
	}
}

func stories() map[string]story {
	all := map[string]story{
		"ignore_rank": {tell: func(w *whole) {
			w.bad(`{"ignore_rank": ["chat"]}`)
			for i := range 3 {
				w.good(ask{text: words(fmt.Sprint(i), 100), at: "w0/1"})
			}
			more := time.Now().Add(4 * time.Second)
			w.until("pin not honoured", func(s *model.State) bool {
				if time.Now().After(more) { // a tokeniser that is slow leaves nothing to prove with
					w.good(ask{text: words(more.String(), 100), at: "w0/1"})
					more = time.Now().Add(300 * time.Millisecond)
				}
				f, ok := found(s, model.FindingPinNotHonoured, "w0")
				return ok && strings.Contains(f.Message, "chat")
			})
		}},
		"honours": {
			engines: []enginetest.Config{{Kind: model.EngineSGLang}},
			tell: func(w *whole) {
				for i, by := range []string{"header", "body"} {
					w.bad(fmt.Sprintf(`{"honours": {"chat": [%q]}}`, by))
					w.good(ask{text: fmt.Sprint("both are sent ", i), at: "w0/1"})
					all := w.engines[0].Served()
					if last := all[len(all)-1]; last.Ran != 1 || last.By != by {
						w.t.Errorf("%+v", last)
					}
				}
			},
		},
		"out_of_range": {
			plan: func(p *plan) { p.serve.Workers[0].Ranks, p.serve.Workers[0].Events = 3, model.EventSource{} },
			tell: func(w *whole) {
				w.until("the difference is shown", func(s *model.State) bool {
					f, ok := found(s, engine.FindingDisagrees, "w0")
					return ok && strings.Contains(f.Message, "ranks: 3 in the settings, 2 by its metrics")
				})
				for how, status := range map[string]int{"error": 400, "fail": 500, "balance": 200} {
					w.bad(fmt.Sprintf(`{"out_of_range": %q}`, how))
					if got := w.send(ask{text: how, at: "w0/2"}); got.status != status || got.target.Rank != 2 {
						w.t.Errorf("%s: %d on %s, %s", how, got.status, got.target, got.body)
					}
				}
			},
		},
		"rank_header": {tell: func(w *whole) {
			w.bad(`{"rank_header": true}`)
			for rank := range 2 {
				if got := w.good(ask{text: "where", at: fmt.Sprint("w0/", rank)}); got.header.Get(enginetest.RankHeader) != fmt.Sprint(rank) {
					w.t.Errorf("asked for %d, ran on %s", rank, got.header.Get(enginetest.RankHeader))
				}
			}
		}},
		"no_cached_tokens": {tell: func(w *whole) {
			w.bad(`{"no_cached_tokens": true}`)
			for range 2 {
				w.good(ask{text: words("a", 100), conv: "c", at: "w0/0"})
			}
			if c := conv(w.h.live.Snapshot(), "c"); !c.CachedUnknown || c.Turns != 2 {
				w.t.Errorf("%+v", c)
			}
			if page := w.metrics(); !strings.Contains(page, "adpdeck_gateway_cached_unknown_total 2\n") {
				w.t.Error("not counted as unknown")
			}
		}},
		"omit_zero_cached": {tell: func(w *whole) {
			w.bad(`{"omit_zero_cached": true}`)
			for turn := range 2 {
				w.good(ask{text: words("a", 100), conv: "c", at: "w0/0"})
				if c := conv(w.h.live.Snapshot(), "c"); c.CachedUnknown != (turn == 0) || turn == 1 && c.CachedTokens == 0 {
					w.t.Errorf("turn %d: %+v", turn, c)
				}
			}
		}},
		"old_schema": {engines: oldTensorRT(2), tell: func(w *whole) {
			for range 3 {
				w.good(ask{text: words("a", 100), conv: "c"})
			}
			if c := conv(w.h.live.Snapshot(), "c"); c.Turns != 3 {
				w.t.Errorf("%+v", c)
			}
		}},
		"drop_every":      soundEvents(`{"drop_every": 3}`),
		"duplicate_every": soundEvents(`{"duplicate_every": 3}`),
		"reorder_every":   soundEvents(`{"reorder_every": 3}`),
		"form":            soundEvents(`{"form": "array"}`, `{"form": "map"}`),
		"hash":            soundEvents(`{"hash": "unsigned"}`, `{"hash": "signed"}`, `{"hash": "bytes"}`),
		"fields":          soundEvents(`{"form": "array", "fields": 6}`, `{"form": "array", "fields": 7}`, `{"form": "array", "fields": 8}`),
		"no_batch_rank":   soundEvents(`{"no_batch_rank": true}`),
		"framing": {tell: func(w *whole) {
			n := 0
			for _, framing := range []string{"old", "new"} {
				w.bad(fmt.Sprintf(`{"framing": %q}`, framing))
				if err := w.engines[0].Restart(model.NoRank); err != nil {
					w.t.Fatal(err)
				}
				w.heard(w.engines[0])
				for i := range 6 {
					if i == 2 || i == 3 {
						if err := w.engines[0].DropBatches(i%2, 1); err != nil {
							w.t.Fatal(err)
						}
					}
					w.good(ask{path: "/v1/completions", tokens: tokens(n), at: fmt.Sprint("w0/", i%2)})
					n++
				}
				w.until("the gap is closed", func(*model.State) bool { return w.agrees(0, n) })
			}
			for rank := range 2 {
				if row := indexOf(w.h.live.Snapshot(), "w0", rank); row.Gaps < 2 || row.Feed != model.FeedLive {
					w.t.Errorf("%+v", row)
				}
			}
		}},
		"events_rank0_only": blind(`{"events_rank0_only": true}`, 1, model.FeedLive),
		"events_silent":     blind(`{"events_silent": true}`, 1, model.FeedNone),
		"events_hang": {tell: func(w *whole) {
			w.bad(`{"events_hang": true}`)
			w.good(ask{text: words("nobody hears of it", 50), at: "w0/1"})
			w.until("events are unheard", func(s *model.State) bool {
				_, ok := found(s, engine.FindingEvents, "w0")
				return ok && workerOf(s, "w0").Liveness == model.LiveUp
			})
			w.mended()
			w.until("events are heard", func(s *model.State) bool { _, ok := found(s, engine.FindingEvents, "w0"); return !ok })
		}},
		"duplicate_series": {engines: slowPair(), tell: func(w *whole) {
			w.bad(`{"duplicate_series": true}`)
			hold := w.hold(3, "w0/1")
			defer hold.release()
			seen := time.Now()
			w.until("its figure is not added up", func(s *model.State) bool {
				r := rankOf(s, "w0", 1)
				if r.Active > 3 {
					w.t.Fatalf("%+v", r)
				}
				return r.ReportedAt.After(seen) && r.Active == 3 && rankOf(s, "w0", 0).Active == 0
			})
		}},
		"metrics_rank0_only": unknownRank(`{"metrics_rank0_only": true}`),
		"missing_ranks":      unknownRank(`{"missing_ranks": [1]}`),
		"metric_value": {tell: func(w *whole) {
			for _, v := range []string{"NaN", "+Inf", "-Inf", "-1"} {
				w.bad(fmt.Sprintf(`{"metric_value": %q}`, v))
				w.until(v+" is refused", func(s *model.State) bool {
					f := feedOf(s, "w0", model.FeedMetrics)
					_, ok := found(s, engine.FindingFigures, "w0")
					return (ok || f.State == model.FeedStale && f.Why != "") && workerOf(s, "w0").Liveness == model.LiveUp
				})
				if r := rankOf(w.h.live.Snapshot(), "w0", 0); r.Active < 0 || r.KVUsedBlocks < 0 || r.Tokens < 0 {
					w.t.Errorf("%+v", r)
				}
				w.good(ask{text: v, at: "w0/0"})
				w.mended()
				w.until("figures come", func(s *model.State) bool {
					_, ok := found(s, engine.FindingFigures, "w0")
					return feedOf(s, "w0", model.FeedMetrics).State == model.FeedLive && !ok
				})
			}
		}},
		"metric_bytes": {tell: func(w *whole) {
			w.until("figures come", func(s *model.State) bool { return feedOf(s, "w0", model.FeedMetrics).State == model.FeedLive })
			w.bad(`{"metric_bytes": 33554432}`)
			w.until("the page is refused", func(s *model.State) bool {
				f := feedOf(s, "w0", model.FeedMetrics)
				return f.State == model.FeedStale && f.Why != "" && workerOf(s, "w0").Liveness == model.LiveUp
			})
			w.good(ask{text: "served all the same", at: "w0/0"})
		}},
		"metrics_frozen": {engines: slowPair(), tell: func(w *whole) {
			w.until("figures come", func(s *model.State) bool { return !rankOf(s, "w0", 1).ReportedAt.IsZero() })
			w.bad(`{"metrics_frozen": true}`)
			hold := w.hold(6, "")
			defer hold.release()
			for rank, n := range hold.targets() { // by the router's own books
				if n > 2 {
					w.t.Errorf("%d of 6 on %s", n, rank)
				}
			}
		}},
		"on":        passes(`{"on": ["health"], "status": 503}`, "503"),
		"unhealthy": passes(`{"unhealthy": true}`, "unhealthy"),
		"not_ready": passes(`{"not_ready": true}`, ""),
		"status": {tell: func(w *whole) {
			w.bad(`{"on": ["openai"], "status": 503}`)
			got := w.send(ask{text: "the engine's own word", at: "w0/0"})
			if got.status != 503 || !strings.Contains(got.body, "Service Unavailable") {
				w.t.Errorf("%d %s", got.status, got.body)
			}
			if s := w.h.live.Snapshot(); workerOf(s, "w0").Liveness != model.LiveUp {
				w.t.Error("an error as an answer took the engine out")
			}
		}},
		"error_bytes": {tell: func(w *whole) {
			w.bad(`{"on": ["openai"], "status": 500, "error_bytes": 10485760}`)
			if got := w.send(ask{text: "long", at: "w0/0"}); got.status != 500 || len(got.body) < 10<<20 {
				w.t.Errorf("%d, %d bytes", got.status, len(got.body))
			}
		}},
		"latency": {plan: patience(time.Minute), tell: func(w *whole) {
			w.bad(`{"on": ["openai"], "latency": "300ms"}`)
			w.good(ask{text: "slow", at: "w0/0", stream: true})
		}},
		"slow_headers": {plan: patience(time.Second), tell: func(w *whole) {
			w.bad(`{"slow_headers": "10s"}`) // everywhere: health as well
			began := time.Now()
			w.dies(began, "no answer within")
			w.mended()
			w.returns(time.Now())
		}},
		"endless_header": {plan: patience(400 * time.Millisecond), tell: func(w *whole) {
			w.bad(`{"on": ["openai"], "endless_header": true}`)
			for range 3 {
				if got := w.send(ask{text: "without an end", at: "w0/1"}); got.status != 504 || !strings.Contains(got.body, "had not answered") {
					w.t.Errorf("%d %s", got.status, got.body)
				}
			}
			w.until("the rank is out", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveParts })
			if page := w.metrics(); !strings.Contains(page, "adpdeck_gateway_retries_total 0\n") {
				w.t.Error("sent again after the first byte")
			}
			w.mended()
			w.returns(time.Now())
		}},
		"half_open": {plan: patience(5 * time.Second), tell: func(w *whole) {
			began := time.Now()
			w.bad(`{"half_open": true}`)
			w.dies(began, "no answer within")
			w.mended()
			w.returns(time.Now())
		}},
		"half_open (requests alone)": silentRank(`{"on": ["openai"], "half_open": true}`),
		"no_first_token": {plan: patience(400 * time.Millisecond), tell: func(w *whole) {
			w.bad(`{"no_first_token": true}`)
			got := w.send(ask{text: "stuck", at: "w0/1", stream: true})
			if got.status != 200 || got.err == nil { // the head came, and then time was up
				w.t.Errorf("%d %v %s", got.status, got.err, got.body)
			}
			for i := range 3 {
				if got := w.send(ask{text: fmt.Sprint("stuck ", i), at: "w0/1"}); got.status != 504 {
					w.t.Errorf("%d %s", got.status, got.body)
				}
			}
			w.until("the rank is out", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveParts })
			w.mended()
			w.returns(time.Now())
		}},
		"content_type": {tell: func(w *whole) {
			w.until("figures come", func(s *model.State) bool { return feedOf(s, "w0", model.FeedMetrics).State == model.FeedLive })
			w.bad(`{"content_type": "text/html"}`)
			if got := w.good(ask{text: "what is it", at: "w0/0"}); got.header.Get("Content-Type") != "text/html" {
				w.t.Errorf("%v", got.header)
			}
			w.until("an HTML page is no page of metrics", func(s *model.State) bool {
				f := feedOf(s, "w0", model.FeedMetrics)
				return f.State == model.FeedStale && strings.Contains(f.Why, "HTML")
			})
		}},
		"crash_after_tokens": {tell: func(w *whole) {
			w.bad(`{"crash_after_tokens": 3}`)
			got := w.send(ask{text: "a stream", at: "w0/0", stream: true, most: 8})
			if got.status != 200 || got.err == nil || !strings.Contains(got.body, "data: {") || strings.Contains(got.body, "[DONE]") {
				w.t.Errorf("%d %v %s", got.status, got.err, got.body)
			}
			if n := w.sentTimes(); n != 1 {
				w.t.Errorf("sent %d times", n)
			}
			// A whole answer that broke off before its first byte is asked for once
			// more, elsewhere.
			got = w.good(ask{text: "a whole", most: 8})
			for i := 0; got.target.Worker == "w1" && w.sentTimes() == 2 && i < 8; i++ { // the first choice was w1: nothing broke
				got = w.good(ask{text: fmt.Sprint("a whole ", i), most: 8})
			}
			if got.target.Worker != "w1" {
				w.t.Errorf("answered by %s", got.target)
			}
		}},
	}
	maps.Copy(all, loadStories())
	return all
}

// sentTimes counts what reached any engine.
func (w *whole) sentTimes() (n int) {
	for _, e := range w.engines {
		n += len(e.Served())
	}
	return n
}

func oldTensorRT(n int) (engines []enginetest.Config) {
	for range n {
		engines = append(engines, enginetest.Config{Kind: model.EngineTRTLLM, Habits: enginetest.Habits{OldSchema: true}})
	}
	return engines
}

// TestHabits tells each story: clients lose nothing that they need not lose, the
// console names what is wrong, and the books are even at the end.
func TestHabits(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s.engines == nil {
				s.engines = make([]enginetest.Config, 2)
			}
			w := stand(t, s.plan, s.engines...)
			s.tell(w)
			w.mended()
			w.closed()
		})
	}
}

// TestEveryHabitHasAStory walks the fields of enginetest.Habits.
func TestEveryHabitHasAStory(t *testing.T) {
	all := stories()
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		for f := range of.NumField() {
			field := of.Field(f)
			if field.Anonymous {
				walk(field.Type)
			} else if _, ok := all[field.Tag.Get("json")]; !ok {
				t.Errorf("the habit %s has no story", field.Tag.Get("json"))
			}
		}
	}
	walk(reflect.TypeFor[enginetest.Habits]())
}
