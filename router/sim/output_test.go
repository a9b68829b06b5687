package sim

import (
	"context"
	"testing"

	"adpdeck/router/model"
)

// listener is a Router that hears how far answers have come.
type listener struct {
	Router
	asks    bool
	asked   map[int64]model.Request
	heard   map[int64]int
	reports int
	t       *testing.T
}

func (l *listener) TracksOutput() bool { return l.asks }

func (l *listener) Submit(r *model.Request) (model.Target, error) {
	l.asked[r.ID] = *r
	return l.Router.Submit(r)
}

func (l *listener) Output(id int64, generated int) {
	q := l.asked[id]
	blocks := func(generated int) int { return (q.PromptTokens + generated + 511) / 512 }
	if generated < 1 || generated > q.ExpectedOutput || l.heard[id] > 0 && blocks(generated) != blocks(l.heard[id])+1 {
		l.t.Errorf("request %d of %d and %d tokens: %d generated after %d", id, q.PromptTokens, q.ExpectedOutput, generated, l.heard[id])
	}
	l.heard[id] = generated
	l.reports++
}

func (l *listener) Done(id int64, o model.Outcome) {
	q := l.asked[id]
	if n := l.heard[id]; l.asks && o == model.OutcomeOK && (q.PromptTokens+n+511)/512 < (q.PromptTokens+q.ExpectedOutput-1+511)/512 {
		l.t.Errorf("request %d ended with %d of %d tokens told", id, n, q.ExpectedOutput)
	}
	l.Router.Done(id, o)
}

// TestAnswersAreTold: where the router asks for it, it hears of each block that
// an answer fills, in order and to the end, and of nothing where it does not.
func TestAnswersAreTold(t *testing.T) {
	for _, asks := range []bool{true, false} {
		cfg := small(3, 8)
		cfg.KVEvents = true
		l := &listener{Router: NewRotate(cfg.Specs()), asks: asks, asked: map[int64]model.Request{}, heard: map[int64]int{}, t: t}
		s := play(t, cfg, randomRows(3, 200), l)
		if err := s.Run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if asks && (len(l.heard) < 150 || l.reports <= len(l.heard)) || !asks && l.reports > 0 {
			t.Errorf("asks %v: %d reports on %d of %d requests", asks, l.reports, len(l.heard), len(l.asked))
		}
	}
}
