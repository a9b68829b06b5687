package tap

import (
	"bytes"
	"errors"
	"io"
)

// Options say what to watch for.
type Options struct {
	// Events says that the body is a stream of server-sent events; otherwise it is
	// one document.
	Events bool
	// HideUsage keeps the chunk back that has no choices and nothing but usage.
	HideUsage bool
	// First is called once, with the first event that carries a token. The data is
	// valid during the call only. A document has none.
	First func(data []byte)
	// Progress is called after every Every events that carry a token, with their
	// number so far. 0 means 16.
	Progress func(events int)
	Every    int
	// End is called once: at the end, at an error, or when the body is closed
	// before.
	End func(End)
}

// End is what became of a body.
type End struct {
	// Complete says that the engine sent all of it, Err what went wrong when it
	// could not be read on; neither: it was closed before its end.
	Complete bool
	Err      error
	// Failed says that an event carried an error in place of tokens.
	Failed bool
	// Events counts those that carried a token.
	Events int
	Usage  Usage
}

// Body is a response's body that is watched while it is read. One goroutine at a
// time may use it.
type Body struct {
	src  io.ReadCloser
	opt  Options
	end  End
	done bool

	lines lines
	doc   keeper // of what is no stream of events
	usage []byte // backs end.Usage.JSON
	hide  hider
}

// New returns src, watched.
func New(src io.ReadCloser, opt Options) *Body {
	if opt.Every <= 0 {
		opt.Every = 16
	}
	b := &Body{src: src, opt: opt}
	b.end.Usage = NoUsage()
	return b
}

// Read reads on.
func (b *Body) Read(p []byte) (int, error) {
	if b.opt.HideUsage && b.opt.Events {
		return b.hide.read(p, b)
	}
	n, err := b.src.Read(p)
	b.watch(p[:n])
	if err != nil {
		b.finish(err)
	}
	return n, err
}

// Close ends the body, wherever it is.
func (b *Body) Close() error {
	b.finish(nil)
	return b.src.Close()
}

// watch takes the next bytes.
func (b *Body) watch(p []byte) {
	if !b.opt.Events {
		b.doc.add(p)
		return
	}
	for len(p) > 0 {
		line, rest, whole, ok := b.lines.next(p)
		if !ok {
			return
		}
		b.line(line, whole)
		p = rest
	}
}

var (
	dataField = []byte("data:")
	doneMark  = []byte("[DONE]")
)

// payload is what a line of a stream carries, nil for none.
func payload(line []byte) []byte {
	data, ok := bytes.CutPrefix(line, dataField)
	if !ok {
		return nil
	}
	return bytes.TrimSpace(data)
}

// line takes one line of a stream of events. Engines put each event's data on
// one line.
func (b *Body) line(line []byte, whole bool) {
	data := line
	if whole {
		data = payload(line)
		if len(data) == 0 || bytes.Equal(data, doneMark) {
			return
		}
		if token, failed := judge(data); !token {
			b.end.Failed = b.end.Failed || failed
			b.note(data, true)
			return
		}
	}
	b.end.Events++
	if b.end.Events == 1 && b.opt.First != nil {
		b.opt.First(data)
	}
	if b.end.Events%b.opt.Every == 0 && b.opt.Progress != nil {
		b.opt.Progress(b.end.Events)
	}
	b.note(data, whole)
}

// note remembers the usage that a document speaks of.
func (b *Body) note(doc []byte, whole bool) {
	if u, ok := readUsage(doc, whole); ok {
		b.usage = append(b.usage[:0], u.JSON...)
		u.JSON = b.usage
		b.end.Usage = u
	}
}

// finish tells the end once.
func (b *Body) finish(err error) {
	if b.done {
		return
	}
	b.done = true
	b.end.Complete = errors.Is(err, io.EOF)
	if !b.end.Complete {
		b.end.Err = err
	}
	if !b.opt.Events {
		b.note(b.doc.buf, !b.doc.cut)
	} else if b.end.Complete && len(b.lines.held.buf) > 0 {
		// A last line without its end; of what broke off it would be half a line.
		b.line(b.lines.held.buf, !b.lines.held.cut)
	}
	if b.opt.End != nil {
		b.opt.End(b.end)
	}
}
