package scrape

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"
)

// MaxRows is how many rows of TensorRT-LLM's list are read, a thousand
// iterations of 64 ranks; of lists of ranks, models and workers it is
// MaxListed.
const (
	MaxRows   = 1 << 16
	MaxListed = 1 << 14
)

// plain gives a body as JSON that Go can read. Python writes NaN and Infinity
// where JSON has nothing to say; they become null, which is unknown, and are
// counted among the refusals.
func plain(body []byte, refused *Refusals) []byte {
	if !bytes.Contains(body, []byte("NaN")) && !bytes.Contains(body, []byte("Infinity")) {
		return body
	}
	out, replaced := make([]byte, 0, len(body)), 0
	for i := 0; i < len(body); {
		switch n := nonFinite(body[i:]); {
		case n > 0:
			out = append(out, "null"...)
			i += n
			replaced++
		case body[i] == '"':
			end := i + stringLen(body[i:])
			out = append(out, body[i:end]...)
			i = end
		default:
			out = append(out, body[i])
			i++
		}
	}
	if replaced > 0 {
		refused.add(BadNumber, "%d figures are NaN or infinite; they count as unknown", replaced)
	}
	return out
}

// nonFinite is the length of a number at the beginning of b that is none.
func nonFinite(b []byte) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if len(b) >= len(word) && string(b[:len(word)]) == word {
			return len(word)
		}
	}
	return 0
}

// stringLen is the length of the string that b begins with, quotes included.
func stringLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// rows hands each element of the JSON list in body, at most so many, to take. An element of
// another shape costs itself alone, until MaxBadLines are refused; what comes
// after an end that is too early is lost, and noted. The error says that body is no list.
func rows(body []byte, most int, refused *Refusals, take func(i int, row json.RawMessage)) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	if first, err := dec.Token(); err != nil || first != json.Delim('[') {
		return refuse(NotJSON, "a JSON list was expected")
	}
	bad := refused.Count + MaxBadLines
	for i := 0; dec.More(); i++ {
		if refused.Count >= bad {
			refused.add(TooMany, "%d rows that cannot be used; the rest is not read", MaxBadLines)
			return nil
		}
		if i == most {
			refused.add(TooMany, "more than %d rows; the rest is not read", most)
			return nil
		}
		var row json.RawMessage
		if err := dec.Decode(&row); err != nil {
			broken(refused, err, i)
			return nil
		}
		take(i, row)
	}
	if _, err := dec.Token(); err != nil {
		broken(refused, err, -1)
	}
	return nil
}

func broken(refused *Refusals, err error, row int) {
	if cut(err) {
		refused.add(Truncated, "the answer ends in the middle of the list; only the rows before the end are used")
		return
	}
	refused.add(BadLine, "row %d cannot be read, and none after it: %s", row, fault(err))
}

func cut(err error) bool {
	var syntax *json.SyntaxError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input"
}

// decode reads one JSON value. Its error quotes nothing of the body, which may
// hold secrets.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	var shape *json.UnmarshalTypeError
	switch {
	case err == nil, errors.As(err, &shape) && shape.Field != "":
		// A field of another shape is as good as absent; the others were read.
		return nil
	case cut(err):
		return refuse(Truncated, "the answer ends in the middle of its JSON")
	}
	return refuse(NotJSON, "the answer is not the JSON expected: %s", fault(err))
}

// fault puts a JSON error in words without the value at fault.
func fault(err error) string {
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return "a fault at byte " + strconv.FormatInt(syntax.Offset, 10)
	case errors.As(err, &shape):
		return "a " + shape.Value + " at byte " + strconv.FormatInt(shape.Offset, 10)
	}
	return "a fault"
}

// jsonNumber is a number in JSON that may be absent, null or something else.
type jsonNumber struct {
	value  float64
	given  bool
	spoilt bool // there, and no number
}

// UnmarshalJSON never fails: a spoilt field must not cost its row.
func (n *jsonNumber) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	n.value, n.given, n.spoilt = v, err == nil, err != nil
	return nil
}

// get gives the figure where there is a usable one and notes one that is not.
func (n jsonNumber) get(refused *Refusals, what func() string) (float64, bool) {
	if n.spoilt {
		refused.add(BadNumber, "%s is no number; it counts as unknown", what())
		return 0, false
	}
	if !n.given {
		return 0, false
	}
	return number(n.value, refused, what)
}

// whole gives a size that is 1 or more, 0 for anything else.
func (n jsonNumber) whole() int {
	if !n.given || n.value < 1 || n.value > 1<<48 {
		return 0
	}
	return int(n.value)
}

// rank gives a rank, false where the field holds none.
func (n jsonNumber) rank() (int, bool) {
	if !n.given || n.value < 0 || n.value > MaxRank || n.value != float64(int(n.value)) {
		return 0, false
	}
	return int(n.value), true
}

// jsonTime is a time as seconds or as ISO 8601 text, zero for anything else.
type jsonTime struct{ time.Time }

// UnmarshalJSON never fails, as jsonNumber's.
func (t *jsonTime) UnmarshalJSON(b []byte) error {
	if v, err := strconv.ParseFloat(string(b), 64); err == nil {
		if v > 0 && v < 1e11 {
			t.Time = time.UnixMicro(int64(v * 1e6)).UTC()
		}
		return nil
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if at, err := time.Parse(layout, s); err == nil {
			t.Time = at.UTC()
			return nil
		}
	}
	return nil
}
