package trace

import (
	"slices"
	"time"

	"adpdeck/router/model"
)

// Measures describe traffic in the figures by which two streams are compared.
type Measures struct {
	Requests      int
	Conversations int // distinct keys; keyless requests are not counted
	MultiTurn     int // conversations of at least two turns
	InMultiTurn   int // requests in those
	LongestTurns  int
	Gap           Spread // between two turns of a conversation, in seconds
	Prompt        Spread // in tokens
	Output        Spread // in tokens
	// IdealHit is the share of prompt tokens that one endless cache would find.
	IdealHit float64
	// PerSecond is the mean arrival rate.
	PerSecond float64
}

// MultiTurnShare is the share of requests that belong to a conversation of at
// least two turns.
func (m *Measures) MultiTurnShare() float64 {
	if m.Requests == 0 {
		return 0
	}
	return float64(m.InMultiTurn) / float64(m.Requests)
}

// Spread is a distribution in a few figures; all 0 when there were no values.
type Spread struct{ Min, Mean, P50, P90, P99, Max float64 }

// Measure computes the measures of rows, which must be ordered by arrival.
func Measure(rows []Row) Measures {
	m := Measures{Requests: len(rows)}
	type conv struct {
		turns int
		last  time.Duration
	}
	convs := map[model.ConvKey]conv{}
	seen := map[uint64]struct{}{}
	var gaps, prompts, outputs []float64
	found, total := 0, 0
	for i := range rows {
		r := &rows[i]
		prompts = append(prompts, float64(r.PromptTokens))
		outputs = append(outputs, float64(r.OutputTokens))
		if !r.Conv.Keyless() {
			c := convs[r.Conv]
			if c.turns > 0 {
				gaps = append(gaps, (r.At - c.last).Seconds())
			}
			convs[r.Conv] = conv{turns: c.turns + 1, last: r.At}
		}
		total += r.PromptTokens
		for _, b := range r.ProbeBlocks() {
			if _, ok := seen[b]; !ok {
				break
			}
			found += r.BlockTokens
		}
		for _, b := range r.FullBlocks() {
			seen[b] = struct{}{}
		}
	}
	m.Conversations = len(convs)
	for _, c := range convs {
		m.LongestTurns = max(m.LongestTurns, c.turns)
		if c.turns > 1 {
			m.MultiTurn++
			m.InMultiTurn += c.turns
		}
	}
	m.Gap, m.Prompt, m.Output = spread(gaps), spread(prompts), spread(outputs)
	if total > 0 {
		m.IdealHit = float64(found) / float64(total)
	}
	if n := len(rows); n > 1 && rows[n-1].At > rows[0].At {
		m.PerSecond = float64(n) / (rows[n-1].At - rows[0].At).Seconds()
	}
	return m
}

func spread(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	slices.Sort(v)
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	at := func(q float64) float64 { return v[min(len(v)-1, int(q*float64(len(v))))] }
	return Spread{Min: v[0], Mean: sum / float64(len(v)), P50: at(.5), P90: at(.9), P99: at(.99), Max: v[len(v)-1]}
}
