package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"
)

// Bounds of what is read. A line beyond them is malformed; the rest goes on.
const (
	MaxLineBytes   = 64 << 20
	MaxRanks       = 1 << 16
	MaxPromptToken = 1 << 40 // tokens of one prompt
	MaxMatches     = 1 << 24 // ranks × requests with match lengths, of one step
)

// Options say how lines are worked on.
type Options struct {
	// Explain adds a "decisions" list, one decision record per request, to
	// each step of a router line.
	Explain bool
	// Parity reports upstream's exceptions by name where it raises them. Off,
	// nothing raises: see package adp.
	Parity bool
	// MaxCandidates bounds the candidates of one decision record; 0 keeps all.
	MaxCandidates int
	// Workers is the number of lines worked on at once; 0 is one per core.
	Workers int
}

// job is one line on its way through.
type job struct {
	number int
	text   []byte
	long   bool // the line is over MaxLineBytes, text is empty
	out    []byte
	bad    bool
	done   chan struct{}
}

// Run answers every line of in on out, in order. malformed counts the lines
// that were answered with an error line. The error is of reading or writing.
func Run(in io.Reader, out io.Writer, opt Options) (malformed int, err error) {
	workers := opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	work := make(chan *job, workers)
	order := make(chan *job, 4*workers)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for j := range work {
				j.answer(opt)
				close(j.done)
			}
		})
	}
	var readErr error
	wg.Go(func() {
		defer close(order)
		defer close(work)
		readErr = read(in, work, order, stop)
	})
	malformed, err = write(out, order)
	close(stop)
	for range order { // after a failed write: let the reader end
	}
	wg.Wait()
	if err == nil {
		err = readErr
	}
	return malformed, err
}

// read cuts in into lines and hands each to both channels until the end, an
// error, or stop.
func read(in io.Reader, work, order chan<- *job, stop <-chan struct{}) error {
	br := bufio.NewReaderSize(in, 1<<16)
	for number := 1; ; number++ {
		text, long, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read line %d: %w", number, err)
		}
		if number == 1 {
			text = bytes.TrimPrefix(text, utf8Mark)
		}
		if long || len(bytes.TrimSpace(text)) > 0 {
			j := &job{number: number, text: text, long: long, done: make(chan struct{})}
			select {
			case order <- j:
			case <-stop:
				return nil
			}
			work <- j
		}
		if err != nil {
			return nil
		}
	}
}

// utf8Mark is what some editors put before the first line.
var utf8Mark = []byte{0xEF, 0xBB, 0xBF}

// readLine returns the next line in memory of its own. One that is too long
// is read to its end and dropped.
func readLine(br *bufio.Reader) (text []byte, long bool, err error) {
	for {
		part, err := br.ReadSlice('\n')
		if long = long || len(text)+len(part) > MaxLineBytes; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, long, err
		}
	}
}

// write puts the answers out in order and flushes whenever no other answer is
// on its way, so that a program at the other end of a pipe is not kept waiting.
func write(out io.Writer, order <-chan *job) (malformed int, err error) {
	bw := bufio.NewWriterSize(out, 1<<16)
	for j := range order {
		<-j.done
		if j.bad {
			malformed++
		}
		if _, err := bw.Write(j.out); err != nil {
			return malformed, fmt.Errorf("write the answer to line %d: %w", j.number, err)
		}
		if len(order) == 0 {
			if err := bw.Flush(); err != nil {
				return malformed, fmt.Errorf("write the answer to line %d: %w", j.number, err)
			}
		}
	}
	if err := bw.Flush(); err != nil {
		return malformed, fmt.Errorf("write the last answer: %w", err)
	}
	return malformed, nil
}

// answer works on one line.
func (j *job) answer(opt Options) {
	err := fmt.Errorf("longer than %d bytes", MaxLineBytes)
	if !j.long {
		j.out, err = answerLine(j.number, j.text, opt)
	}
	j.text = nil
	if err == nil {
		return
	}
	j.bad = true
	j.out = append(j.out[:0], `{"line":`...)
	j.out = strconv.AppendInt(j.out, int64(j.number), 10)
	j.out = append(j.out, `,"error":"malformed","error_message":`...)
	j.out = append(appendString(j.out, err.Error()), "}\n"...)
}
