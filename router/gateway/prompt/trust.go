package prompt

import (
	"sync"
	"time"
)

// Rules of trust in tails: how often a tail must have been equal to its whole
// before it is believed, and after how many uses one is compared again.
const (
	enough     = 4
	checkEvery = 64
)

// restTime is how long a tokeniser that failed is left alone.
const restTime = 10 * time.Second

// maxModels and maxBases bound what is remembered of models, and of the settings
// of each one's template.
const (
	maxModels = 1024
	maxBases  = 64
)

// models is what is known of each model's tokeniser.
type models struct {
	mu sync.Mutex
	by map[string]*modelState
}

func (s *models) of(name string) *modelState {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.by[name]
	if m == nil {
		if s.by == nil || len(s.by) >= maxModels {
			s.by = map[string]*modelState{} // names are the clients': begin anew
		}
		m = &modelState{}
		s.by[name] = m
	}
	return m
}

// modelState is what is known of one model's tokeniser.
type modelState struct {
	mu     sync.Mutex
	agreed int // comparisons in a row without a difference, -1 after one
	uses   int // since the last comparison
	until  time.Time
	slow   time.Duration // what the newest call took
	bases  map[uint64]base
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

func (m *modelState) rest(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until = now.Add(restTime)
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

func (m *modelState) base(key uint64) (base, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.bases[key]
	return b, ok
}

func (m *modelState) keep(key uint64, b base) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bases == nil || len(m.bases) >= maxBases {
		m.bases = map[uint64]base{}
	}
	m.bases[key] = b
}
