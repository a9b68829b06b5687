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
	// Ending is how such a stream ends where its engine has sent all of it.
	Ending Ending
	// Opaque says that the body cannot be read, since it is compressed: only
	// whether all of it came is seen.
	Opaque bool
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

// Ending is how a stream of events says that nothing is missing. What HTTP says of
// it is not enough: an engine whose generator died ends the body as if it were
// whole, and one without chunks by closing the connection.
type Ending int

// The endings.
const (
	// EndsWithBody: the stream has no mark, its end is the body's.
	EndsWithBody Ending = iota
	// EndsDone: data: [DONE], as all engines end chats and completions.
	EndsDone
	// EndsResponse: response.completed, response.incomplete or response.failed, or
	// [DONE] from engines that send that too.
	EndsResponse
)

// ErrNoEnding is the End.Err of a stream that came to its body's end without the
// mark that ends it.
var ErrNoEnding = errors.New("the stream ended without the event that ends it")

// End is what became of a body.
type End struct {
	// Complete says that the engine sent all of it, Err what went wrong when it
	// could not be read on, or that its ending is missing; neither: it was closed
	// before its end.
	Complete bool
	Err      error
	// Marked says that the mark of its ending was passed on: what happens to the
	// connection after that takes nothing away.
	Marked bool
	// Failed says that an event carried an error in place of tokens, or that the
	// document is one.
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
	event string // the name of the event in passing, of those that matter
	mark  bool   // the ending was read
	doc   keeper // of what is no stream of events
	usage []byte // backs end.Usage.JSON
	hide  hider
}

// New returns src, watched.
func New(src io.ReadCloser, opt Options) *Body {
	if opt.Every <= 0 {
		opt.Every = 16
	}
	if opt.Opaque {
		opt.Events, opt.HideUsage = false, false
	}
	b := &Body{src: src, opt: opt}
	b.end.Usage = NoUsage()
	return b
}

// Read reads on.
func (b *Body) Read(p []byte) (int, error) {
	// Who reads on has passed on what was read before.
	b.end.Marked = b.mark && b.hide.at == len(b.hide.out) && len(b.hide.held) == 0
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
		if !b.opt.Opaque {
			b.doc.add(p)
		}
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
	dataField  = []byte("data:")
	eventField = []byte("event:")
	doneMark   = []byte("[DONE]")
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
	switch {
	case whole && len(line) == 0:
		b.event = ""
		return
	case whole && bytes.HasPrefix(line, eventField):
		b.event = named(bytes.TrimSpace(line[len(eventField):]))
		b.end.Failed = b.end.Failed || b.event == kindError // Dynamo puts its text into a comment
		return
	case whole:
		data = payload(line)
		if len(data) == 0 {
			return
		}
		if bytes.Equal(data, doneMark) {
			b.mark = b.opt.Ending != EndsWithBody
			return
		}
	}
	what := judge(data)
	if !whole {
		what = b.judgeCut(data)
	}
	b.mark = b.mark || what.ends && b.opt.Ending == EndsResponse
	if !what.token {
		b.end.Failed = b.end.Failed || what.failed
		b.note(data, whole)
		return
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
	whole := errors.Is(err, io.EOF)
	switch {
	case !b.opt.Events:
		b.note(b.doc.buf, !b.doc.cut)
		b.end.Failed = whole && !b.doc.cut && isErrorDocument(b.doc.buf)
	case whole && len(b.lines.held.buf) > 0:
		// A last line without its end; of what broke off it would be half a line.
		b.line(b.lines.held.buf, !b.lines.held.cut)
	}
	b.end.Marked = b.end.Marked || whole && b.mark
	switch {
	case b.end.Marked || whole && (!b.opt.Events || b.opt.Ending == EndsWithBody):
		b.end.Complete = true
	case !whole:
		b.end.Err = err
	case !b.end.Failed: // an engine that has said why it stops owes nothing more
		b.end.Err = ErrNoEnding
	}
	if b.opt.End != nil {
		b.opt.End(b.end)
	}
}
