package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Sentinels of Open and Read.
var (
	// ErrFormat is returned when the content is of no format that is understood.
	ErrFormat = errors.New("unknown format: understood are Mooncake JSONL (timestamp, input_length, output_length, hash_ids), " +
		"agent sessions JSONL (session_id, turn, timestamp, input_chars, output_chars, block_chars, hash_ids) " +
		"and Azure CSV (TIMESTAMP,ContextTokens,GeneratedTokens)")
	// ErrNoRows is returned when no row of the file can be used.
	ErrNoRows = errors.New("no row can be used")
	// ErrTooBig is returned when a file has more than MaxRows or MaxBlocks.
	ErrTooBig = errors.New("too big: split the file")
)

// peekBytes is how much of a file is looked at to recognise it.
const peekBytes = 256 << 10

// Open reads the trace file at path; see Read.
func Open(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w; name a trace file that can be read", err)
	}
	defer f.Close()
	return Read(f, filepath.Base(path))
}

// Read reads a whole trace from r and calls it name. It returns ErrFormat,
// ErrNoRows or ErrTooBig, wrapped with the name and what was seen, or the
// reader's own error. Bad rows are no error as long as one row is good.
func Read(r io.Reader, name string) (*Trace, error) {
	br := bufio.NewReaderSize(r, peekBytes)
	head, err := br.Peek(peekBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	if len(bytes.TrimSpace(bytes.TrimPrefix(head, utf8Mark))) == 0 && errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read trace %s: %w: it is empty", name, ErrNoRows)
	}
	format, ok := recognise(head)
	if !ok {
		return nil, fmt.Errorf("read trace %s, which begins with %q: %w", name, firstLine(head), ErrFormat)
	}
	t := &Trace{Name: name, Format: format}
	b := &builder{t: t}
	switch format {
	case FormatMooncake:
		err = b.readMooncake(&lineReader{br: br})
	case FormatSessions:
		err = b.readSessions(&lineReader{br: br})
	default:
		err = b.readAzure(&lineReader{br: br})
	}
	if err != nil {
		return nil, fmt.Errorf("read trace %s: %w", name, err)
	}
	if len(t.Rows) == 0 {
		if t.Bad.Count > 0 {
			return nil, fmt.Errorf("read trace %s: %w; %s", name, ErrNoRows, t.Bad.String())
		}
		return nil, fmt.Errorf("read trace %s: %w", name, ErrNoRows)
	}
	return t, nil
}

// recognise looks for the first line that has the marks of a format. Damaged
// lines before it do not matter.
func recognise(head []byte) (Format, bool) {
	for line := range bytes.Lines(bytes.TrimPrefix(head, utf8Mark)) {
		has := func(key string) bool { return bytes.Contains(line, []byte(`"`+key+`"`)) }
		switch {
		case has("session_id") && has("input_chars"):
			return FormatSessions, true
		case has("hash_ids") && has("input_length"),
			has("timestamp") && has("input_length") && has("output_length"):
			return FormatMooncake, true
		case bytes.EqualFold(bytes.TrimSpace(line), []byte(azureHeader)):
			return FormatAzure, true
		}
	}
	return "", false
}

var utf8Mark = []byte{0xEF, 0xBB, 0xBF}

func firstLine(head []byte) []byte {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return line[:min(len(line), 60)]
}

// lineReader cuts a stream into lines of at most MaxLineBytes.
type lineReader struct {
	br   *bufio.Reader
	line int // number of the line last returned, from 1
	buf  []byte
}

// next returns the next line without its end; it is valid until the next call.
// tooLong says that the line exceeded MaxLineBytes and was skipped. The error
// is io.EOF after the last line.
func (l *lineReader) next() (line []byte, tooLong bool, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.br.ReadSlice('\n')
		if len(l.buf)+len(part) > MaxLineBytes {
			tooLong = true
			l.buf = l.buf[:0]
		} else if !tooLong {
			l.buf = append(l.buf, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(part) == 0 && len(l.buf) == 0 && !tooLong) {
			return nil, false, err
		}
		l.line++
		line = l.buf
		if l.line == 1 {
			line = bytes.TrimPrefix(line, utf8Mark)
		}
		return bytes.TrimRight(line, "\r\n"), tooLong, nil
	}
}

// builder collects the rows of one file.
type builder struct {
	t      *Trace
	arena  []uint64 // where the blocks of the rows live, in large pieces
	blocks int      // blocks of all rows
}

// each calls use for every line that is not blank; use returns why the line is
// bad, or "". It stops with ErrTooBig when the bounds are passed.
func (b *builder) each(lr *lineReader, use func(line []byte) string) error {
	for {
		line, tooLong, err := lr.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", lr.line+1, err)
		}
		if tooLong {
			b.t.Bad.add(lr.line, fmt.Sprintf("longer than %d MiB", MaxLineBytes>>20))
			continue
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if why := use(line); why != "" {
			b.t.Bad.add(lr.line, why)
		}
		if len(b.t.Rows) > MaxRows {
			return fmt.Errorf("more than %d rows: %w", MaxRows, ErrTooBig)
		}
		if b.blocks > MaxBlocks {
			return fmt.Errorf("more than %d blocks in %d rows: %w", MaxBlocks, len(b.t.Rows), ErrTooBig)
		}
	}
}

// room returns a slice of n blocks that nothing else uses.
func (b *builder) room(n int) []uint64 {
	const piece = 1 << 16
	if len(b.arena) < n {
		b.arena = make([]uint64, max(piece, n))
	}
	s := b.arena[:n:n]
	b.arena = b.arena[n:]
	b.blocks += n
	return s
}

// chain stores the block ids of a prompt as chained blocks.
func (b *builder) chain(ids []uint64) []uint64 {
	s := b.room(len(ids))
	prev := uint64(0)
	for i, id := range ids {
		prev = Chain(prev, id)
		s[i] = prev
	}
	return s
}

// arrange orders the rows by arrival, stable, and counts from the earliest.
func (b *builder) arrange() {
	rows := b.t.Rows
	if len(rows) == 0 {
		return
	}
	byArrival := func(x, y Row) int { return int(min(1, max(-1, x.At-y.At))) }
	if !slices.IsSortedFunc(rows, byArrival) {
		slices.SortStableFunc(rows, byArrival)
	}
	if first := rows[0].At; first != 0 {
		for i := range rows {
			rows[i].At -= first
		}
	}
}

// tokens checks a length that was read under the name field.
func tokens(field string, n *int) string {
	switch {
	case n == nil:
		return field + " is missing"
	case *n < 1:
		return fmt.Sprintf("%s is %d, must be at least 1", field, *n)
	case *n > MaxTokens:
		return fmt.Sprintf("%s is %d, more than %d is not believed", field, *n, MaxTokens)
	}
	return ""
}

// maxMillis is the latest timestamp that is believed: ten years.
const maxMillis = 10 * 365.25 * 24 * 3600 * 1000

// millis checks a timestamp in milliseconds and returns it as a duration.
func millis(ms *float64) (time.Duration, string) {
	switch {
	case ms == nil:
		return 0, "timestamp is missing"
	case !(*ms >= 0 && *ms <= maxMillis):
		return 0, fmt.Sprintf("timestamp %g is not between 0 and ten years in milliseconds", *ms)
	}
	return time.Duration(*ms * float64(time.Millisecond)), ""
}
