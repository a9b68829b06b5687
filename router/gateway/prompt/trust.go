package prompt

import (
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"adpdeck/router/model"
)

// Rules of trust in tails: how often a tail must have been equal to its whole
// before it is believed, and after how many uses one is compared again.
const (
	enough     = 4
	checkEvery = 64
)

// restTime is how long a tokeniser that failed, or refused so many requests in a
// row, is left alone.
const (
	restTime    = 10 * time.Second
	maxRefusals = 8
)

// maxModels bounds what is remembered of tokenisers.
const maxModels = 1024

var (
	// ErrBusy is returned by Options.Tokenize where a tokeniser has enough to do.
	ErrBusy = errors.New("the tokeniser is busy")
	// ErrRefused is returned where it is well and refuses this request.
	ErrRefused = errors.New("the tokeniser refuses this")
)

// kind is what prompts have in common that are tokenised alike: what was learnt of one says nothing of
// another, and what one client sends spoils nothing for those who send another.
type kind struct {
	model    string
	route    model.Route
	settings uint64 // sum of what changes the template
}

// models is what is known of tokenisers. Names and settings are the clients', so
// that the least recently used goes first.
type models struct {
	mu sync.Mutex // guards by, not the states themselves
	by *simplelru.LRU[kind, *modelState]
}

func (s *models) of(k kind) *modelState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		// The size is positive, which is all that could be refused.
		s.by, _ = simplelru.NewLRU[kind, *modelState](maxModels, nil)
	}
	m, ok := s.by.Get(k)
	if !ok {
		m = &modelState{}
		s.by.Add(k, m)
	}
	return m
}

// settingsOfTemplate change how a chat is rendered, beside its messages and what
// belongs to its beginning.
var settingsOfTemplate = [...]string{"chat_template", "chat_template_kwargs", "add_special_tokens", "reasoning_effort"}

// kind is the prompt's.
func (j *job) kind() kind {
	k := kind{model: j.source.Conv.Model, route: j.source.Route}
	var h maphash.Hash
	h.SetSeed(j.r.memory.seed)
	for _, name := range settingsOfTemplate {
		if v := j.source.Doc.Get(name); v.Exists() {
			maphash.WriteComparable(&h, name)
			maphash.WriteComparable(&h, v.Raw)
			k.settings = h.Sum64()
		}
	}
	return k
}

// modelState is what is known of one model's tokeniser.
type modelState struct {
	mu      sync.Mutex
	agreed  int // comparisons in a row without a difference, -1 after one
	uses    int // since the last comparison
	refused int // requests in a row
	until   time.Time
	slow    time.Duration // what the newest call took
	base    *base         // nil: not asked for yet
}

func (m *modelState) trusted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agreed >= enough
}

func (m *modelState) distrusted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agreed < 0
}

// compared notes a comparison and returns whether tails may still be used.
func (m *modelState) compared(equal bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses = 0
	switch {
	case !equal:
		m.agreed = -1
	case m.agreed >= 0:
		m.agreed++
	}
	return m.agreed >= 0
}

// due reports that a tail is to be compared again.
func (m *modelState) due() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses++
	return m.uses >= checkEvery
}

func (m *modelState) resting(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.until)
}

// ended notes how a call ended: a tokeniser that cannot be had is left alone for a
// while, one that refused a request or had no time for it is not.
func (m *modelState) ended(err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.refused = 0
		return
	case errors.Is(err, ErrBusy):
		return
	case errors.Is(err, ErrRefused):
		if m.refused++; m.refused < maxRefusals {
			return
		}
	}
	m.refused, m.until = 0, now.Add(restTime)
}

// quick reports that waiting is worth it: the newest call was answered in time.
func (m *modelState) quick(wait time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slow <= wait
}

func (m *modelState) took(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow = d
}
