package trace

import (
	"math"
	"math/rand/v2"
)

// knot is a point of a distribution: the share q of the values is below v.
type knot struct{ q, v float64 }

// quantiles is a distribution by its quantiles, ordered by q from 0 to 1.
// Between two knots values are spread evenly on a logarithmic scale.
type quantiles []knot

// at returns the value below which the share q of the distribution lies.
func (d quantiles) at(q float64) float64 {
	for i := 1; i < len(d); i++ {
		if q > d[i].q && i < len(d)-1 {
			continue
		}
		lo, hi := d[i-1], d[i]
		f := (q - lo.q) / (hi.q - lo.q)
		return math.Exp(math.Log(lo.v) + f*(math.Log(hi.v)-math.Log(lo.v)))
	}
	return d[0].v
}

func (d quantiles) draw(r *rand.Rand) float64 { return d.at(r.Float64()) }

// shapes are the distributions that a generator draws from.
type shapes struct {
	first  quantiles // prompt of a first turn, in tokens
	growth quantiles // tokens that a turn adds beside the last answer
	output quantiles // answer, in tokens
	gap    quantiles // time to the next turn, in seconds
	turns  []int     // conversations by number of turns less one
}

// mooncakeShapes returns the distributions of the Mooncake conversation trace,
// measured after linking its rows.
func mooncakeShapes() shapes {
	return shapes{
		first: quantiles{
			{0, 891},
			{.01, 893},
			{.05, 899},
			{.1, 936},
			{.25, 2000},
			{.5, 5950},
			{.75, 14200},
			{.9, 26100},
			{.95, 38100},
			{.99, 86000},
			{1, 126195},
		},
		growth: quantiles{
			{0, 1}, {.12, 1.5}, {.25, 9}, {.5, 27}, {.75, 300}, {.9, 3300}, {.95, 6300}, {.99, 16000}, {1, 60000},
		},
		output: quantiles{
			{0, 1}, {.01, 3}, {.05, 10}, {.1, 24}, {.25, 156}, {.5, 350}, {.75, 472}, {.9, 597}, {.95, 698}, {.99, 1120}, {1, 2000},
		},
		gap: quantiles{
			{0, 6}, {.01, 12}, {.05, 27}, {.1, 42}, {.25, 66}, {.5, 126}, {.75, 273}, {.9, 480}, {.95, 612}, {.99, 1473}, {1, 3030},
		},
		turns: []int{
			6045, 1225, 392, 167, 92, 48, 23, 17, 6, 12, 5, 4, 4, 2, 4, 4, 2, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1,
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		},
	}
}

// turnCount draws the number of turns of a conversation.
func (s *shapes) turnCount(r *rand.Rand) int {
	total := 0
	for _, n := range s.turns {
		total += n
	}
	pick := r.IntN(total)
	for i, n := range s.turns {
		if pick < n {
			return i + 1
		}
		pick -= n
	}
	return 1
}

// meanTurns is the mean of turnCount.
func (s *shapes) meanTurns() float64 {
	convs, turns := 0, 0
	for i, n := range s.turns {
		convs += n
		turns += n * (i + 1)
	}
	return float64(turns) / float64(convs)
}
