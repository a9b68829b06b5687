package feed_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/feed"
	"adpdeck/feed/feedtest"
	"adpdeck/router/model"
)

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(2, 8, 30), feed.ServerOptions{Version: "1.2", Epoch: "e1"})
		c := r.client(feed.ClientOptions{})
		v := until(t, c, "live", live)
		if len(v.State.Ranks) != 16 || len(v.State.Convs) != 30 || v.State.Source.Name != "test" {
			t.Errorf("snapshot: %d ranks, %d conversations, source %q", len(v.State.Ranks), len(v.State.Convs), v.State.Source.Name)
		}
		if l := v.Link; l.Epoch != "e1" || l.Role != "operator" || l.Server != "1.2" || l.Period != time.Second || l.Attempt != 0 || l.Err != "" {
			t.Errorf("link %+v", l)
		}
		rank := feedtest.Rank("w1", 3, 99)
		fresh := feedtest.Conv("new", feedtest.Epoch0().Add(time.Minute))
		r.src.Publish(&model.Change{
			At: feedtest.Epoch0().Add(time.Minute), Version: 2,
			Ranks: []model.Rank{rank}, Convs: []*model.Conv{fresh}, Gone: []model.ConvKey{v.State.Convs[4].Key},
			Events:    []model.Event{{ID: 1, What: "something"}},
			Decisions: []*model.Decision{feedtest.Decision(1, 8), feedtest.Decision(2, 8)},
			Settled:   []model.Settled{{Decision: 2, CachedTokens: 64}, {Decision: 77}},
		})
		old := v
		v = until(t, c, "version 2", func(v *feed.View) bool { return v.State.Version == 2 && len(v.Settled) > 0 })
		switch {
		case v.State.Ranks[11].Requests != 99:
			t.Errorf("rank w1/3: %+v", v.State.Ranks[11])
		case len(v.State.Convs) != 30 || v.State.Convs[0].Key.ID != "new" || v.State.Convs[5].Key.ID != "c5":
			t.Errorf("conversations: %d, first %v", len(v.State.Convs), v.State.Convs[0].Key)
		case len(v.State.Events) != 1 || len(v.Decisions) != 2 || v.Decisions[1].ID != 2 || len(v.Settled) != 1 || v.Settled[2].CachedTokens != 64:
			t.Errorf("%d events, %d decisions, settled %v", len(v.State.Events), len(v.Decisions), v.Settled)
		case old.State.Version != 1 || old.State.Ranks[11].Requests != 0 || len(old.Decisions) != 0:
			t.Error("an older view was written")
		}
		if v = until(t, c, "a round trip", func(v *feed.View) bool { return c.View().Link.LastFrame.After(v.Link.Since.Add(7 * time.Second)) }); v.Link.Seq < 8 {
			t.Errorf("after 7 idle seconds the number is %d: heartbeats are missing", v.Link.Seq)
		}
		c.Close()
		r.close()
	})
}

// TestLargeState sends what does not fit one message, as snapshot and as change.
func TestLargeState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(8, 8, model.MaxFeedConvs), feed.ServerOptions{})
		c := r.client(feed.ClientOptions{})
		v := until(t, c, "live", live)
		if len(v.State.Convs) != model.MaxFeedConvs || v.State.Convs[9_999].Key.ID != "c9999" {
			t.Fatalf("%d conversations", len(v.State.Convs))
		}
		ch := &model.Change{At: feedtest.Epoch0(), Version: 2}
		for i, conv := range v.State.Convs {
			if i%2 == 0 {
				ch.Gone = append(ch.Gone, conv.Key)
				continue
			}
			moved := *conv
			moved.Moves = 5
			ch.Convs = append(ch.Convs, &moved)
		}
		seq := v.Link.Seq
		r.src.Publish(ch)
		v = until(t, c, "halved", func(v *feed.View) bool {
			return len(v.State.Convs) == model.MaxFeedConvs/2 && v.State.Convs[4_999].Moves == 5
		})
		if v.Link.Gaps != 0 || v.Link.Seq < seq+2 {
			t.Errorf("gaps %d, number from %d to %d: want several changes in step", v.Link.Gaps, seq, v.Link.Seq)
		}
		c.Close()
		r.close()
	})
}

func TestReconnectAfterCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 4, 3), feed.ServerOptions{})
		c := r.client(feed.ClientOptions{})
		until(t, c, "live", live)
		r.bad.Cut()
		v := until(t, c, "lost", func(v *feed.View) bool { return v.Link.Phase == feed.PhaseLost })
		if v.State == nil || v.Link.Err == "" || !v.Link.Stale(time.Now()) {
			t.Errorf("lost: state kept %v, error %q, stale %v", v.State != nil, v.Link.Err, v.Link.Stale(time.Now()))
		}
		r.src.Publish(&model.Change{Version: 5}) // missed, so only a snapshot can tell
		v = until(t, c, "live again", live)
		if v.State.Version != 5 || v.Link.Attempt != 0 {
			t.Errorf("version %d, attempt %d", v.State.Version, v.Link.Attempt)
		}
		c.Close()
		r.close()
	})
}

func TestBackoffAndRetryNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := []time.Time{}
		c := feed.Dial(context.Background(), url, feed.ClientOptions{
			Dial: func(context.Context, string, string) (net.Conn, error) {
				tries = append(tries, time.Now())
				return nil, fmt.Errorf("refused")
			},
		})
		<-time.After(10 * time.Minute)
		synctest.Wait()
		top := time.Second
		for i := 1; i < len(tries); i++ {
			gap := tries[i].Sub(tries[i-1])
			if gap < 500*time.Millisecond || gap > top {
				t.Errorf("try %d came after %v, want 0.5 s to %v", i, gap, top)
			}
			top = min(2*top, 10*time.Second)
		}
		v := c.View()
		if v.Link.Attempt != len(tries) || v.Link.Phase != feed.PhaseConnecting || v.Link.NextTry.Before(time.Now()) || !strings.Contains(v.Link.Err, "refused") {
			t.Errorf("after %d tries: %+v", len(tries), v.Link)
		}
		before := len(tries)
		c.RetryNow()
		synctest.Wait()
		if len(tries) != before+1 {
			t.Errorf("RetryNow made %d tries", len(tries)-before)
		}
		if _, open := <-c.Do(model.Command{ID: "x"}); open {
			t.Error("a command without a link got a reply")
		}
		c.Close()
	})
}

// TestScripts plays servers that do what they must not, and follows the phases.
func TestScripts(t *testing.T) {
	state, next := feedtest.State(1, 2, 2), feedtest.State(1, 2, 2)
	next.Version = 9
	hello, snap := feedtest.Hello("a"), feedtest.Snapshot("a", 10, state)
	step := func(epoch string, seq, version uint64) []byte {
		return feedtest.Change(epoch, seq, &model.Change{Version: version})
	}
	again := feedtest.Send(feedtest.Snapshot("a", 20, next), step("a", 21, 10))
	tests := map[string]struct {
		steps []feedtest.Step
		err   string // what the view says while it is out of step
		gaps  uint64
	}{
		"gap": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap, step("a", 11, 2), step("a", 13, 3), step("a", 14, 4)),
				feedtest.Await("resync"), feedtest.Silence(time.Second), again,
			},
			err: "change 13 follows 11", gaps: 1,
		},
		"repeated number": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap, step("a", 11, 2), step("a", 11, 2)),
				feedtest.Await("resync"), feedtest.Silence(time.Second), again,
			},
			err: "change 11 follows 11", gaps: 1,
		},
		"garbage in a frame": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap, []byte("\x00garbage")),
				feedtest.Await("resync"), feedtest.Silence(time.Second), again,
			},
			err: "damaged frame", gaps: 1,
		},
		"new epoch amid the stream": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap, step("b", 11, 7)),
				feedtest.Await("resync"), feedtest.Silence(time.Second),
				feedtest.Send(feedtest.Snapshot("b", 20, next), step("b", 21, 10)),
			},
			err: "new epoch", gaps: 1,
		},
		"new hello": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap), feedtest.Silence(time.Second),
				feedtest.Send(feedtest.Hello("b")), feedtest.Silence(time.Second),
				feedtest.Send(feedtest.Snapshot("b", 20, next), step("b", 21, 10)),
			},
		},
		"change before hello": {
			steps: []feedtest.Step{
				feedtest.Send(step("a", 1, 1)), feedtest.Await("resync"), feedtest.Silence(time.Second),
				feedtest.Send(hello), again,
			},
			err: "change before hello", gaps: 1,
		},
		"parts out of order": {
			steps: []feedtest.Step{
				feedtest.Send(hello, feedtest.Part("a", 10, 1, true, state), feedtest.Part("a", 10, 3, false, state)),
				feedtest.Await("resync"), feedtest.Silence(time.Second), again,
			},
			err: "part 3 is not the next", gaps: 1,
		},
		"change amid a snapshot": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap, feedtest.Part("a", 11, 1, true, state), step("a", 11, 5)),
				feedtest.Await("resync"), feedtest.Silence(time.Second), again,
			},
			err: "amid a snapshot", gaps: 1,
		},
		"foreign bytes below the protocol": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap), feedtest.Silence(time.Second), feedtest.Raw([]byte("HTTP/1.1 400\r\n\r\n")),
				feedtest.Silence(time.Second), feedtest.Drop(), feedtest.Send(hello), again,
			},
			err: "link is cut",
		},
		"closed with a reason": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap), feedtest.Close(feed.CloseSlow, "too slow"), feedtest.Send(hello), again,
			},
			err: "4008 too slow",
		},
		"message over the limit": {
			steps: []feedtest.Step{
				feedtest.Send(hello, snap, make([]byte, feed.MaxMessageBytes+1)), feedtest.Drop(), feedtest.Send(hello), again,
			},
			err: "read limit exceeded",
		},
		"no snapshot ever": {
			steps: []feedtest.Step{
				feedtest.Send(hello), feedtest.Silence(time.Minute), feedtest.Drop(), feedtest.Send(hello), again,
			},
			err: "no snapshot came",
		},
		"silence and no pong": {
			steps: []feedtest.Step{
				feedtest.Deaf(), feedtest.Send(hello, snap), feedtest.Silence(time.Minute), feedtest.Drop(), feedtest.Send(hello), again,
			},
			err: "nothing came for 10s",
		},
		"unknown kinds": {
			steps: []feedtest.Step{
				feedtest.Send(hello, []byte(`{"kind":"weather"}`), []byte(`{"kind":"snapshots"}`)), again,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := feedtest.NewNetwork(1 << 20)
				srv := feedtest.Serve(mem, tt.steps...)
				c := feed.Dial(context.Background(), url, feed.ClientOptions{Dial: mem.Dial})
				if tt.err != "" {
					v := until(t, c, "told "+tt.err, func(v *feed.View) bool { return strings.Contains(v.Link.Err, tt.err) })
					if v.Link.Phase == feed.PhaseLive || v.State != nil && (!v.Link.Stale(time.Now()) || v.State.Version > 2) {
						t.Errorf("out of step, but %+v shows version %d", v.Link, v.State.Version)
					}
				}
				v := until(t, c, "in step again", func(v *feed.View) bool { return live(v) && v.Link.Seq == 21 })
				if v.State.Version != 10 || v.Link.Gaps != tt.gaps || v.Link.Err != "" {
					t.Errorf("version %d, link %+v", v.State.Version, v.Link)
				}
				if name == "unknown kinds" && v.Link.Unknown != 2 {
					t.Errorf("%d unknown frames counted, want 2", v.Link.Unknown)
				}
				<-srv.Done()
				c.Close()
				srv.Close()
			})
		})
	}
}

// TestHalfOpen finds out on both sides, within two ping periods, that the other
// has silently gone.
func TestHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ping = 2 * time.Second
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{PingPeriod: ping})
		c := r.client(feed.ClientOptions{PingPeriod: ping})
		until(t, c, "live", live)
		<-time.After(7 * time.Second) // pings pass in both directions
		r.bad.HalfOpen(true)
		began := time.Now()
		until(t, c, "lost", func(v *feed.View) bool { return v.Link.Phase == feed.PhaseLost })
		if took := time.Since(began); took > 2*ping+20*time.Millisecond {
			t.Errorf("the client took %v, at most %v", took, 2*ping)
		}
		for r.srv.Stats().Clients > 0 && time.Since(began) < time.Minute {
			<-time.After(10 * time.Millisecond)
		}
		if took := time.Since(began); took > 2*ping+20*time.Millisecond || r.srv.Stats().Silent == 0 && r.srv.Stats().Clients > 0 {
			t.Errorf("the server took %v, at most %v: %+v", took, 2*ping, r.srv.Stats())
		}
		r.bad.HalfOpen(false)
		c.RetryNow()
		until(t, c, "live again", live)
		c.Close()
		r.close()
	})
}

// TestBadNetwork follows through latency and slices of one byte.
func TestBadNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 4, 20), feed.ServerOptions{})
		r.bad.Slice(1)
		r.bad.Latency(50 * time.Microsecond)
		c := r.client(feed.ClientOptions{})
		v := until(t, c, "live", live)
		if len(v.State.Convs) != 20 {
			t.Errorf("%d conversations", len(v.State.Convs))
		}
		r.bad.Slice(0)
		r.bad.Latency(300 * time.Millisecond)
		v = until(t, c, "a round trip", func(v *feed.View) bool { return v.Link.RTT > 0 })
		if v.Link.RTT < 300*time.Millisecond || v.Link.RTT > 700*time.Millisecond {
			t.Errorf("round trip %v", v.Link.RTT)
		}
		r.bad.Garbage([]byte("\xff\xff\xff\xff"))
		until(t, c, "lost", func(v *feed.View) bool { return v.Link.Phase == feed.PhaseLost })
		until(t, c, "live again", live)
		c.Close()
		r.close()
	})
}

// TestCommandThrice sends each command three times over a link that is cut after
// the first sending: it acts once, and the last sender hears of it.
func TestCommandThrice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{})
		r.src.Answer(func(cmd model.Command) model.Reply {
			return model.Reply{ID: cmd.ID, Accepted: true, Version: 2, What: "done " + cmd.ID}
		})
		c := r.client(feed.ClientOptions{})
		const commands = 20
		for i := range commands {
			cmd := model.Command{ID: fmt.Sprint("cmd-", i), Verb: model.VerbDrain}
			for try := range 3 {
				until(t, c, "live", live)
				if i%2 == 0 && try == 1 {
					r.bad.HalfOpen(true) // the command is lost, not only its reply
				}
				reply := c.Do(cmd)
				if try < 2 {
					if i%3 == 0 {
						synctest.Wait() // it arrives before the cut
					}
					r.bad.Cut()
					r.bad.HalfOpen(false)
				}
				got, open := <-reply
				if open && got.What != "done "+cmd.ID || try == 2 && !open {
					t.Errorf("%s, try %d: reply %+v, open %v", cmd.ID, try, got, open)
				}
				if !open {
					until(t, c, "lost", func(v *feed.View) bool { return v.Link.Phase != feed.PhaseLive })
				}
			}
		}
		if applied := r.src.Applied(); len(applied) != commands {
			t.Errorf("%d commands acted, want %d", len(applied), commands)
		}
		c.Close()
		r.close()
	})
}

func TestDoBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := feedtest.NewNetwork(1 << 20)
		srv := feedtest.Serve(mem, feedtest.Send(feedtest.Hello("a"), feedtest.Snapshot("a", 1, feedtest.State(1, 1, 0))))
		c := feed.Dial(context.Background(), url, feed.ClientOptions{Dial: mem.Dial})
		until(t, c, "live", live)
		var open []<-chan model.Reply
		for i := range 64 { // the scripted server never replies
			open = append(open, c.Do(model.Command{ID: fmt.Sprint(i)}))
			synctest.Wait()
		}
		if got := <-c.Do(model.Command{ID: "one more"}); got.Refusal == nil || got.Refusal.Code != model.RefusedBusy {
			t.Errorf("the 65th: %+v", got)
		}
		for name, cmd := range map[string]model.Command{
			"no id": {}, "long id": {ID: strings.Repeat("x", 65)}, "long command": {ID: "x", Reason: strings.Repeat("x", feed.MaxMessageBytes)},
		} {
			if got := <-c.Do(cmd); got.Refusal == nil || got.Refusal.Code != model.RefusedMalformed {
				t.Errorf("%s: %+v", name, got)
			}
		}
		began := time.Now()
		if _, replied := <-open[0]; replied || time.Since(began) > time.Minute {
			t.Errorf("a command without reply: replied %v, after %v", replied, time.Since(began))
		}
		c.Close()
		for _, ch := range open {
			if _, replied := <-ch; replied {
				t.Error("a reply from nowhere")
			}
		}
		srv.Close()
	})
}

// TestViewRate makes at most ten views a second of however many frames.
func TestViewRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := []feedtest.Step{feedtest.Send(feedtest.Hello("a"), feedtest.Snapshot("a", 0, feedtest.State(1, 1, 0)))}
		for i := range 2_000 {
			steps = append(steps, feedtest.Send(feedtest.Change("a", uint64(i+1), &model.Change{Version: uint64(i + 2)})), feedtest.Silence(2*time.Millisecond))
		}
		mem := feedtest.NewNetwork(1 << 20)
		srv := feedtest.Serve(mem, steps...)
		c := feed.Dial(context.Background(), url, feed.ClientOptions{Dial: mem.Dial})
		v := until(t, c, "live", live)
		if v.Link.RTT < 0 {
			t.Errorf("round trip %v", v.Link.RTT)
		}
		<-srv.Done()
		last := until(t, c, "at the end", func(v *feed.View) bool { return v.State.Version == 2_001 })
		if views := last.Rev - v.Rev; views < 30 || views > 42 {
			t.Errorf("%d views in 4 s, at most 10 a second", views)
		}
		c.Close()
		srv.Close()
	})
}
