package adp

import "strconv"

func errListIndex() error {
	return &ParityError{Name: "IndexError", Message: "list index out of range"}
}

func errEmptyHeap() error {
	return &ParityError{Name: "IndexError", Message: "index out of range"}
}

func errKey(rank int) error {
	return &ParityError{Name: "KeyError", Message: strconv.Itoa(rank)}
}

func errZeroDivision() error {
	return &ParityError{Name: "ZeroDivisionError", Message: "float division by zero"}
}

func errInfinity() error {
	return &ParityError{Name: "OverflowError", Message: "cannot convert float infinity to integer"}
}

func errNaN() error {
	return &ParityError{Name: "ValueError", Message: "cannot convert float NaN to integer"}
}

// smallSort is the length from which CPython's sort works in several runs.
const smallSort = 64

// relaxError is the TypeError that sorting by the raw relax flag raises when
// one of at least two flags is unset, nil when none is. Which two types the
// message names depends on the first comparison that meets an unset flag:
// CPython scans for a run, comparing each flag with the one before it, extends
// a short run by insertion, and starts again where the run ends.
func relaxError(reqs []Request) error {
	first := -1
	for i := range reqs {
		if _, unset := reqs[i].raw(); unset {
			first = i
			break
		}
	}
	if first < 0 || len(reqs) < 2 {
		return nil
	}
	left, right := "NoneType", "bool"
	if first == runStart(reqs, first) && first+1 < len(reqs) {
		right = "NoneType"
		if _, unset := reqs[first+1].raw(); !unset {
			left = "bool"
		}
	}
	return &ParityError{
		Name:    "TypeError",
		Message: "'<' not supported between instances of '" + left + "' and '" + right + "'",
	}
}

// runStart is where the sort's run that holds index at begins; all flags
// before at are set.
func runStart(reqs []Request, at int) int {
	n, odd := len(reqs), 0
	for n >= smallSort {
		odd |= n & 1
		n >>= 1
	}
	minRun := n + odd
	less := func(i int) bool { // flag i < flag i-1
		a, _ := reqs[i].raw()
		b, _ := reqs[i-1].raw()
		return !a && b
	}
	start := 0
	for start < at {
		end := start + 1
		if end < at {
			down := less(end)
			for end++; end < at && less(end) == down; end++ {
			}
		}
		next := max(end, start+minRun)
		if end == at || next > at {
			return start
		}
		start = next
	}
	return start
}
