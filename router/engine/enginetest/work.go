package enginetest

import (
	"context"
	"errors"
	"time"

	"adpdeck/router/model"
)

// errCrashed ends requests whose engine restarted or was killed.
var errCrashed = errors.New("the engine is gone")

// job is a request as an API route hands it to the ranks.
type job struct {
	id         string
	route      model.Route
	model      string
	prompt     []uint32
	want       int  // tokens of the answer, 0 for an embedding
	natural    bool // the answer ends by itself: its last token is <|end|>
	lora, salt string
	conv       string
	choice     choice
}

// work is a job under way. Its fields belong to the engine's lock; the handler
// reads them through next.
type work struct {
	job
	rank     *rank // nil while TensorRT-LLM's queue holds it
	seed     uint64
	arrived  time.Time
	began    time.Time // when its first prefill began
	first    time.Time // when its first token came
	last     time.Time
	tokens   []uint32 // prompt and answer; only appended to
	hashes   []uint64 // of the full blocks of tokens, as far as needed
	blocks   []int32
	computed int // tokens whose KV lies in blocks
	take     int // of a prompt in the present step
	decodes  bool
	cached   int // prompt tokens found when it first began
	begun    bool
	ended    bool
	left     bool // the handler is done with it
	err      error
	sent     int // tokens of the answer that the handler took
	bell     chan struct{}
}

// answered is how many tokens of the answer exist.
func (w *work) answered() int { return len(w.tokens) - len(w.prompt) }

// ring tells the handler that something changed.
func (w *work) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// token is the n-th token of the answer: its id and its text.
func (w *work) token(n int) (uint32, string) {
	if w.natural && n == w.want-1 {
		return tokenEnd, ""
	}
	s := word(mix(w.seed + uint64(n)))
	return pieceID(s), s
}

// mix scrambles n (splitmix64's finaliser).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// digest folds a prompt into a number, so that the same prompt gets the same
// answer.
func digest(seed uint64, ids []uint32) uint64 {
	h := mix(seed)
	for _, id := range ids {
		h = (h ^ uint64(id)) * 0x100000001b3
	}
	return mix(h)
}

// news is what next brings: the text of new tokens, and whether that was all.
type news struct {
	text  string
	ids   []uint32
	ended bool
}

// next waits for tokens that the handler has not seen. Its error is ctx's, or
// says that the engine broke off.
func (e *Engine) next(ctx context.Context, w *work) (news, error) {
	for {
		e.mu.Lock()
		n, upTo := news{ended: w.ended}, w.answered()
		if w.err != nil {
			e.mu.Unlock()
			return n, w.err
		}
		if h := e.habits.Load(); h.CrashAfterTokens > 0 {
			upTo = max(w.sent, min(upTo, h.CrashAfterTokens))
		}
		n.ids = w.tokens[len(w.prompt)+w.sent : len(w.prompt)+upTo]
		from := w.sent
		w.sent = upTo
		e.mu.Unlock()
		if len(n.ids) > 0 || n.ended {
			for i := from; i < upTo; i++ {
				_, s := w.token(i)
				n.text += s
			}
			return n, nil
		}
		select {
		case <-w.bell:
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
}
