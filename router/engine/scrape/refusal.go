package scrape

import (
	"fmt"
	"strconv"
	"strings"
)

// Reason names a cause of a refusal, as a metric's label does.
type Reason string

// The reasons. The first group concerns an answer as a whole.
const (
	TooLarge    Reason = "too_large"    // more than MaxPageBytes
	BadStatus   Reason = "http_status"  // not a 2xx answer
	ContentType Reason = "content_type" // HTML, or another format than asked for
	Empty       Reason = "empty"        // nothing in it
	NotJSON     Reason = "not_json"     // JSON that cannot be read
	NoFigures   Reason = "no_figures"   // readable, but nothing this engine would say
	BadBatch    Reason = "bad_batch"    // not a batch of KV events

	Truncated   Reason = "truncated"    // the answer ends too early
	BadLine     Reason = "bad_line"     // a line or a row that cannot be read
	BadNumber   Reason = "bad_number"   // NaN, infinite, negative, out of range
	BadRank     Reason = "bad_rank"     // a rank that is no whole number from 0 up
	BadWorker   Reason = "bad_worker"   // a worker id that is no 64-bit number
	UnknownRank Reason = "unknown_rank" // a rank outside the worker's range
	NoRank      Reason = "no_rank"      // a figure for several ranks that names none
	Disagree    Reason = "disagree"     // two series of one rank, different figures
	NoTotal     Reason = "no_total"     // parts of a figure without the whole
	TooMany     Reason = "too_many"     // more series, rows or ranks than the limit
)

// Refusal is something that was not used: why, and in words for an operator.
// As an error it says that nothing of the answer could be used.
type Refusal struct {
	Reason Reason
	Detail string
}

// Error gives the detail; the reason is its key.
func (r *Refusal) Error() string { return r.Detail }

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// MaxRefused is how many refusals of one answer are kept in words; more are
// only counted.
const MaxRefused = 32

// Refusals are the parts of one answer that were not used.
type Refusals struct {
	// List holds the first MaxRefused of them, in the order found.
	List []Refusal
	// Count counts all.
	Count int
}

// add notes one refusal. The words are made only where they are kept, so that
// a page of nothing but faults costs little.
func (r *Refusals) add(reason Reason, format string, args ...any) {
	r.Count++
	if len(r.List) < MaxRefused {
		r.List = append(r.List, Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)})
	}
}

// merge notes all that o has.
func (r *Refusals) merge(o *Refusals) {
	r.Count += o.Count
	r.List = append(r.List, o.List[:min(len(o.List), MaxRefused-len(r.List))]...)
}

// Has reports whether anything kept was refused for the reason.
func (r *Refusals) Has(reason Reason) bool {
	for i := range r.List {
		if r.List[i].Reason == reason {
			return true
		}
	}
	return false
}

// quoted gives the beginning of what an engine sent, escaped.
func quoted[T string | []byte](s T) string {
	const most = 80
	if len(s) > most {
		return strconv.QuoteToASCII(strings.ToValidUTF8(string(s[:most]), "?")) + "…"
	}
	return strconv.QuoteToASCII(string(s))
}
