package sim

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/trace"
)

// bubbleWall is the clock of the synctest bubble.
func bubbleWall() Wall {
	return Wall{Now: time.Now, Tick: func(d time.Duration) (<-chan time.Time, func()) {
		t := time.NewTicker(d)
		return t.C, t.Stop
	}}
}

// console builds the default cluster under the default traffic.
func console(t testing.TB, set model.Settings) (*Sim, *scripted) {
	t.Helper()
	g, err := trace.NewGenerator(DefaultTraffic())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	s, err := New(cfg, g)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(cfg.Specs(), set)
	if err != nil {
		t.Fatal(err)
	}
	sc := script(t, e)
	s.Use(sc)
	return s, sc
}

func speed(id string, v float64) model.Command {
	return model.Command{ID: id, Verb: model.VerbSpeed, Speed: v}
}

func TestRunnerKeepsItsSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sc := console(t, DefaultSettings())
		r, err := NewRunner(s, bubbleWall(), 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		at := func(wall time.Duration, want time.Duration) {
			t.Helper()
			<-time.After(wall) // the bubble's clock: no real time passes
			synctest.Wait()
			got := s.Now().Sub(s.cfg.Start)
			if d := got - want; d > 2*time.Second || d < -2*time.Second {
				t.Errorf("the virtual clock stands at %s, want about %s", got, want)
			}
		}
		at(10*time.Second, 10*time.Second)
		if sc.report < 150 || sc.report > 202 { // two workers, at most ten times a second
			t.Errorf("%d reports in ten seconds", sc.report)
		}
		if reply := r.Apply(speed("1", 16)); !reply.Accepted || reply.What != "speed 1× → 16×" || r.Speed() != 16 {
			t.Errorf("got %+v", reply)
		}
		at(5*time.Second, 90*time.Second)
		if sc.source.Speed != 16 || sc.source.Kind != "simulated" || sc.source.Rows == 0 {
			t.Errorf("the source is %+v", sc.source)
		}
		r.Apply(speed("2", 0))
		at(time.Minute, 90*time.Second)
		if sc.source.Speed != 0 {
			t.Errorf("paused, the source is %+v", sc.source)
		}
		reports := sc.report
		r.Apply(speed("3", .25))
		at(40*time.Second, 100*time.Second)
		if n := sc.report - reports; n > 2*101 { // ten by the slower, virtual clock
			t.Errorf("%d reports in ten virtual seconds", n)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestRunnerDropsToWhatItCanDo(t *testing.T) {
	s, sc := console(t, DefaultSettings())
	now := time.Unix(0, 0)
	wall := Wall{
		// Every look at the clock costs 20 ms: one slice of events a tick.
		Now:  func() time.Time { now = now.Add(20 * time.Millisecond); return now },
		Tick: func(time.Duration) (<-chan time.Time, func()) { return nil, func() {} },
	}
	r, err := NewRunner(s, wall, 64)
	if err != nil {
		t.Fatal(err)
	}
	last := now
	for range 500 {
		now = now.Add(tickEvery)
		at := now
		if err := r.tick(at, at.Sub(last)); err != nil {
			t.Fatal(err)
		}
		last = at
	}
	took := now.Sub(time.Unix(0, 0))
	real := s.Elapsed().Seconds() / took.Seconds()
	if real > 60 || math.Abs(sc.source.Speed-real) > .25*real {
		t.Errorf("the source says %g×, %.1f× was reached", sc.source.Speed, real)
	}
	if r.Speed() != 64 {
		t.Errorf("the wish was forgotten: %g", r.Speed())
	}
	// A machine that slept an hour does not make up for it.
	before := s.Elapsed()
	if err := r.Apply(speed("slow", 1)); !err.Accepted {
		t.Fatal(err)
	}
	if err := r.tick(now, min(time.Hour, maxLag)); err != nil || s.Elapsed()-before > maxLag {
		t.Errorf("%v: went on by %s", err, s.Elapsed()-before)
	}
}

func TestRunnerStandsStillAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := small(1, 4)
		sc := script(t, NewRotate(cfg.Specs()))
		s := play(t, cfg, []trace.Row{row(0, "a", 600, 3, 1), row(time.Second, "a", 900, 3, 1)}, sc)
		r, err := NewRunner(s, bubbleWall(), 4)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if !sc.source.Done || sc.source.Rows != 2 || sc.source.Total != 2 || s.Elapsed() > 2*time.Second {
			t.Errorf("%+v at %s", sc.source, s.Elapsed())
		}
	})
}

func TestRunnerEndsWithTheRoutersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := small(1, 4)
		bad := &stubborn{Rotate: *NewRotate(cfg.Specs()), step: func(*model.StepInput, *model.StepOutput) error { return errBroken }}
		r, err := NewRunner(play(t, cfg, []trace.Row{row(0, "a", 600, 3, 1)}, bad), bubbleWall(), 4)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunnerRefuses(t *testing.T) {
	s, _ := console(t, DefaultSettings())
	r, err := NewRunner(s, bubbleWall(), 1)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		cmd  model.Command
		code model.RefusalCode
		says string
	}{
		"too fast":   {speed("a", 65), model.RefusedBounds, "choose 0 to pause, or 0.25 to 64"},
		"too slow":   {speed("b", .1), model.RefusedBounds, "speed 0.1 is out of bounds"},
		"backwards":  {speed("c", -1), model.RefusedBounds, ""},
		"no number":  {speed("d", math.NaN()), model.RefusedBounds, ""},
		"no id":      {speed("", 1), model.RefusedMalformed, "1 to 64 bytes"},
		"long id":    {speed(strings.Repeat("x", 65), 1), model.RefusedMalformed, ""},
		"other verb": {model.Command{ID: "e", Verb: model.VerbPin}, model.RefusedVerb, `does not know "pin"`},
	}
	for name, c := range cases {
		reply := r.Apply(c.cmd)
		if reply.Accepted || reply.Refusal == nil || reply.Refusal.Code != c.code || !strings.Contains(reply.Refusal.Error(), c.says) {
			t.Errorf("%s: %+v", name, reply)
		}
	}
	if r.Speed() != 1 {
		t.Errorf("a refused command set the speed to %g", r.Speed())
	}
	first := r.Apply(speed("same", 4))
	r.Apply(speed("other", 2))
	if again := r.Apply(speed("same", 8)); again.What != first.What || r.Speed() != 2 {
		t.Errorf("the same id acted twice: %+v, speed %g", again, r.Speed())
	}
	for i := range 3 * maxReplies {
		r.Apply(speed(strings.Repeat("i", i%60+1)+string(rune('a'+i%26)), 1))
	}
	if len(r.replies) > maxReplies || len(r.order) != len(r.replies) {
		t.Errorf("%d answers are remembered", len(r.replies))
	}
	if _, err := NewRunner(s, Wall{}, 1); !errors.Is(err, ErrRunner) {
		t.Errorf("without a clock: %v", err)
	}
	if _, err := NewRunner(s, bubbleWall(), 100); !errors.Is(err, ErrRunner) {
		t.Errorf("at speed 100: %v", err)
	}
}
