package prompt

import (
	"context"
	"slices"
	"time"
)

// engine lets the engine tokenise the prompt and fills p. It reports false where
// nothing but the text is left to go by.
func (j *job) engine(ctx context.Context, p *Prompt) bool {
	m := j.r.models.of(j.kind())
	now := j.r.opt.Clock.Now()
	if m.resting(now) {
		return j.remembered(p, m)
	}
	done := make(chan Prompt, 1)
	wait := m.quick(j.r.opt.Wait)
	own, begun := *j, *p // the call may outlast the request
	if !j.r.begin(func(ctx context.Context) {
		defer close(done)
		took := time.Now()
		err := own.tokenize(ctx, m, begun, func(q Prompt) {
			m.took(time.Since(took))
			done <- q
		})
		m.ended(err, j.r.opt.Clock.Now())
	}) {
		return j.remembered(p, m)
	}
	if !wait {
		return j.remembered(p, m)
	}
	t := time.NewTimer(j.r.opt.Wait)
	defer t.Stop()
	select {
	case q, ok := <-done:
		if ok {
			*p = q
			return true
		}
	case <-t.C:
		m.took(2 * j.r.opt.Wait)
	case <-ctx.Done():
	}
	return j.remembered(p, m)
}

// begin runs a call beside the request, unless too many run already.
func (r *Reader) begin(call func(context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	select {
	case r.slots <- struct{}{}:
	default:
		return false
	}
	r.calls.Go(func() {
		defer func() { <-r.slots }()
		ctx, cancel := context.WithTimeout(r.ctx, r.opt.Limit)
		defer cancel()
		call(ctx)
	})
	return true
}

// known returns the tokens of the conversation's beginning that this prompt begins
// with too, and where it ends in text: where tokenisers begin anew in this prompt
// as they did in the last.
func (j *job) known() (tokens []uint32, at int, ok bool) {
	f := &j.form
	tokens, at, ok = j.r.memory.known(j.source.Conv, j.hasher, f.text)
	if ok && f.plain {
		ok = at == len(f.text) || f.text[at] == '\n'
	} else if ok {
		_, ok = slices.BinarySearch(f.ends, at)
	}
	if !ok {
		return nil, 0, false
	}
	return tokens, at, true
}

// remembered fills p with what is known of the conversation's beginning.
func (j *job) remembered(p *Prompt, m *modelState) bool {
	if m.distrusted() {
		return false
	}
	known, at, ok := j.known()
	if !ok {
		return false
	}
	p.How = Remembered
	p.Locals = plainLocals(j.hasher.Locals(nil, known))
	p.BlockTokens, p.Known = j.hasher.BlockTokens(), len(p.Locals)
	p.Tokens = len(known) + guess(len(j.form.text)-at) + j.more
	return true
}

// tokenize asks for the tokens, hands the prompt on and then, without anybody
// waiting, compares tails with wholes where that is due.
func (j *job) tokenize(ctx context.Context, m *modelState, p Prompt, hand func(Prompt)) error {
	known, at, _ := j.known()
	if m.trusted() {
		tokens, hd, err := j.pieces(ctx, m, known, at, nil)
		if err == nil {
			p.How = Tokenized
			if at > 0 {
				p.How = Tail
			}
			j.fill(&p, tokens, hd)
			hand(p)
			if !m.due() {
				return nil
			}
			whole, err := j.whole(ctx)
			if err != nil {
				return err
			}
			if !m.compared(slices.Equal(whole, tokens)) {
				j.fill(&p, whole, head{})
			}
			return nil
		}
	}
	whole, err := j.whole(ctx)
	if err != nil {
		return err
	}
	p.How = Tokenized
	j.fill(&p, whole, head{})
	hand(p)
	if m.distrusted() {
		return nil
	}
	tokens, hd, err := j.pieces(ctx, m, known, at, whole)
	if err != nil {
		return nil // the whole was tokenised; its beginning is just not remembered
	}
	if j.form.plain || at > 0 {
		if !m.compared(slices.Equal(whole, tokens)) {
			return nil
		}
	}
	j.fill(&p, whole, hd)
	return nil
}
