package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Limits of one Prometheus page. Only lines of families that are looked for
// count.
const (
	// MaxSeries is how many lines are read: MaxRanks ranks of 16 families.
	MaxSeries = 1 << 16
	// MaxLineBytes is the longest line.
	MaxLineBytes = 16 << 10
	// MaxBadLines is after how many unreadable lines the rest is left unread.
	MaxBadLines = 256

	// chunkBytes bounds what the parser holds at a time: its form of a line is
	// many times as long as the line.
	chunkBytes = 32 << 10
)

// vocabulary is what is looked for on a page.
type vocabulary struct {
	// prefix is what nearly all families begin with; others that are looked for
	// are in families too.
	prefix   string
	families []string
	// labels are the labels that are kept.
	labels []string
}

// label is one label of a series; a label that the engine leaves out has no
// entry.
type label struct{ name, value string }

// series is one line of a page.
type series struct {
	labels []label
	value  float64
}

// get gives a label's value; absent and empty are the same in Prometheus.
func (s *series) get(name string) string {
	for i := range s.labels {
		if s.labels[i].name == name {
			return s.labels[i].value
		}
	}
	return ""
}

// samples are the lines of the families looked for, by family, in page order.
type samples map[string][]series

// scanner reads one page.
type scanner struct {
	vocabulary
	parser  expfmt.TextParser
	wanted  map[string]struct{}
	keep    map[string]struct{}
	out     samples
	refused *Refusals
	chunk   []byte
	ends    []int // where each line of chunk ends
	// last is the family of the line before: a family's lines are together.
	last   []byte
	lastOK bool
	lines  int // lines handed to the parser
	bad    int
	// marked says that the format has an end marker, ended that it was there.
	marked, ended bool
}

// read gives the series of v on a page of Prometheus text. Everything else,
// most of a page as a rule, is skipped unparsed: histograms and labels that
// nobody asked for cost little, and faults in them nothing.
func (v vocabulary) read(a Answer, refused *Refusals) (samples, error) {
	page, bad := a.open(formText)
	if bad != nil {
		return nil, bad
	}
	s := scanner{
		vocabulary: v, parser: expfmt.NewTextParser(model.UTF8Validation),
		wanted: set(v.families), keep: set(v.labels), out: make(samples, len(v.families)), refused: refused,
		marked: strings.HasPrefix(a.ContentType, "application/openmetrics-text"),
	}
	s.split(page)
	if len(s.out) == 0 {
		if refused.Count > 0 {
			first := refused.List[0]
			return nil, &first
		}
		return nil, refuse(NoFigures, "a metrics page without any of %s, …: is the kind of the engine right?", v.families[0])
	}
	return s.out, nil
}

func set(names []string) map[string]struct{} {
	m := make(map[string]struct{}, len(names))
	for _, n := range names {
		m[n] = struct{}{}
	}
	return m
}

// split cuts the page into lines and collects those that are looked for.
func (s *scanner) split(page []byte) {
	for len(page) > 0 && s.bad < MaxBadLines {
		line, rest, whole := bytes.Cut(page, []byte{'\n'})
		page = rest
		line = bytes.TrimRight(bytes.TrimLeft(line, " \t"), "\r \t")
		if len(line) == 0 || line[0] == '#' {
			s.ended = s.ended || string(line) == "# EOF"
			continue
		}
		if !whole {
			// A value may have lost digits: 27 of 270.
			s.refused.add(Truncated, "the page ends in the middle of a line, %s; that line is not used, and ranks may be missing", quoted(line))
			break
		}
		name, ok := s.wants(line)
		if !ok {
			continue
		}
		if s.lines == MaxSeries {
			s.refused.add(TooMany, "more than %d series; the rest of the page is not read", MaxSeries)
			break
		}
		if len(line) > MaxLineBytes {
			s.bad++
			s.refused.add(BadLine, "a line of %d bytes, over the limit of %d: %s", len(line), MaxLineBytes, quoted(line))
			continue
		}
		s.lines++
		s.chunk = append(s.thin(s.chunk, line, name), '\n')
		s.ends = append(s.ends, len(s.chunk))
		if len(s.chunk) >= chunkBytes {
			s.flush()
		}
	}
	s.flush()
	if s.marked && !s.ended && !s.refused.Has(Truncated) {
		s.refused.add(Truncated, "the page lacks its last line, # EOF: ranks may be missing")
	}
	if s.bad >= MaxBadLines {
		s.refused.add(TooMany, "%d unreadable lines; the rest of the page is not read", s.bad)
	}
}

// wants reports whether the line is of a family that is looked for, and how
// long the family's name is.
func (s *scanner) wants(line []byte) (name int, ok bool) {
	if line[0] != s.prefix[0] && line[0] != processStart[0] {
		return 0, false
	}
	if n := len(s.last); n < len(line) && line[n] == '{' && string(line[:n]) == string(s.last) {
		return n, s.lastOK
	}
	for name < len(line) && line[name] != '{' && line[name] != ' ' && line[name] != '\t' {
		name++
	}
	_, ok = s.wanted[string(line[:name])]
	s.last, s.lastOK = line[:name], ok
	return name, ok
}

// thin appends the line without the labels that nobody asked for: the parser's
// time grows with the square of their number, and an info metric has dozens. A
// line that is not written as client libraries write it is appended as it is,
// for the parser to judge.
func (s *scanner) thin(to, line []byte, name int) []byte {
	whole := len(to)
	if name == len(line) || line[name] != '{' {
		return append(to, line...)
	}
	to = append(to, line[:name+1]...)
	for rest := line[name+1:]; ; {
		if len(rest) > 0 && rest[0] == '}' {
			return append(to, rest...)
		}
		eq := bytes.IndexByte(rest, '=')
		if eq < 1 || eq+1 == len(rest) || rest[eq+1] != '"' {
			return append(to[:whole], line...)
		}
		end := eq + 1 + stringLen(rest[eq+1:])
		if end >= len(rest) || rest[end] != ',' && rest[end] != '}' {
			return append(to[:whole], line...)
		}
		if _, ok := s.keep[string(rest[:eq])]; ok {
			to = append(append(to, rest[:end]...), ',')
		}
		if rest = rest[end:]; rest[0] == ',' {
			rest = rest[1:]
		}
	}
}

// flush parses the collected lines. The parser stops at the first fault, so a
// chunk with one is parsed up to it and again after it.
func (s *scanner) flush() {
	first := 0
	for first < len(s.ends) && s.bad < MaxBadLines {
		err := s.parse(first, len(s.ends))
		if err == nil {
			break
		}
		at := s.fault(err, first)
		if first < at && s.parse(first, at) != nil {
			// The fault was earlier than reported; one by one, then.
			for i := first; i < at; i++ {
				s.spoilt(i, s.parse(i, i+1))
			}
		}
		s.spoilt(at, err)
		first = at + 1
	}
	s.chunk, s.ends = s.chunk[:0], s.ends[:0]
}

// fault gives the index of the line that err speaks of.
func (s *scanner) fault(err error, first int) int {
	var pe expfmt.ParseError
	if errors.As(err, &pe) && pe.Line >= 1 && first+pe.Line <= len(s.ends) {
		return first + pe.Line - 1
	}
	return first
}

func (s *scanner) spoilt(i int, err error) {
	if err == nil {
		return
	}
	s.bad++
	msg := err.Error()
	var pe expfmt.ParseError
	if errors.As(err, &pe) {
		msg = pe.Msg // its line number is none of the page's
	}
	s.refused.add(BadLine, "%s: %s", quoted(s.line(i)), msg)
}

func (s *scanner) line(i int) []byte {
	start := 0
	if i > 0 {
		start = s.ends[i-1]
	}
	return s.chunk[start : s.ends[i]-1]
}

// parse parses the lines from first up to end and keeps them all, or none.
func (s *scanner) parse(first, end int) error {
	start := 0
	if first > 0 {
		start = s.ends[first-1]
	}
	found, err := s.parser.TextToMetricFamilies(bytes.NewReader(s.chunk[start:s.ends[end-1]]))
	if err != nil {
		return err
	}
	for name, family := range found {
		kept := s.out[name]
		for _, m := range family.GetMetric() {
			// Without TYPE lines, which were skipped, every metric is untyped.
			one := series{value: m.GetUntyped().GetValue()}
			for _, pair := range m.GetLabel() {
				if _, ok := s.keep[pair.GetName()]; ok && pair.GetValue() != "" && one.get(pair.GetName()) == "" {
					one.labels = append(one.labels, label{pair.GetName(), pair.GetValue()})
				}
			}
			kept = append(kept, one)
		}
		s.out[name] = kept
	}
	return nil
}

// processStart is the family that Prometheus' own client libraries offer of
// the process.
const processStart = "process_start_time_seconds"

// number checks a figure: finite, 0 or more, below what a float counts
// exactly. what names it for a refusal.
func number(v float64, refused *Refusals, what func() string) (float64, bool) {
	if v >= 0 && v <= 1<<53 {
		return v, true
	}
	refused.add(BadNumber, "%s is %s; it counts as unknown", what(), spell(v))
	return 0, false
}

func spell(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return "infinite"
	}
	return fmt.Sprintf("%g", v)
}
