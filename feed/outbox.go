package feed

import "sync"

// outbox is what waits to be written to one client, bounded in messages and
// bytes. The hub only ever puts something in without waiting; the client's one
// writer takes it out. When the stream overflows, all of it is dropped and the
// client is marked for a fresh snapshot; replies are kept.
type outbox struct {
	maxMessages, maxBytes int
	wake                  chan struct{} // capacity 1: something to do

	mu        sync.Mutex // guards what follows
	stream    [][]byte
	replies   [][]byte
	bytes     int  // of stream, replies and the message being written
	writing   int  // bytes of the message being written
	fresh     bool // a snapshot is due before anything else of the stream
	dropped   uint64
	overflows int // in a row, without the queue having been empty between
	closing   *closing
}

// closing is why a connection ends: the code and the reason of the close frame.
type closing struct {
	code   int
	reason string
}

func newOutbox(maxMessages, maxBytes int) *outbox {
	return &outbox{
		maxMessages: maxMessages, maxBytes: maxBytes,
		wake: make(chan struct{}, 1), fresh: true,
	}
}

// push adds a message of the stream. It reports how often in a row the queue
// overflowed when this one made it overflow, and 0 otherwise. While a snapshot
// is due nothing is added: the snapshot will hold it.
func (o *outbox) push(msg []byte) (overflows int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fresh || o.closing != nil {
		return 0
	}
	if len(o.stream)+1 > o.maxMessages || o.bytes+len(msg) > o.maxBytes {
		o.dropStream()
		o.dropped++
		o.overflows++
		overflows = o.overflows
	} else {
		o.stream = append(o.stream, msg)
		o.bytes += len(msg)
	}
	nudge(o.wake)
	return overflows
}

// refresh drops the stream and marks a snapshot as due.
func (o *outbox) refresh() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropStream()
	nudge(o.wake)
}

func (o *outbox) dropStream() {
	for _, msg := range o.stream {
		o.bytes -= len(msg)
	}
	o.dropped += uint64(len(o.stream))
	o.stream, o.fresh = nil, true
}

// reply adds a reply; false when replies alone exceed the bounds, because the
// client sends commands and does not read the answers.
func (o *outbox) reply(msg []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing != nil {
		return true
	}
	if o.bytes+len(msg) > o.maxBytes {
		o.dropStream()
	}
	if o.bytes+len(msg) > o.maxBytes || len(o.replies) >= o.maxMessages {
		return false
	}
	o.replies = append(o.replies, msg)
	o.bytes += len(msg)
	nudge(o.wake)
	return true
}

// end asks the writer to send a close frame after the replies and to stop. The
// first reason stays.
func (o *outbox) end(code int, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing == nil {
		o.closing = &closing{code, reason}
		o.dropStream()
		o.fresh = false
	}
	nudge(o.wake)
}

// start clears the mark for a snapshot. It is called while the hub is held, so
// that what is pushed next follows the snapshot.
func (o *outbox) start() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropStream()
	o.fresh = false
}

// next is what the writer does, the last message having been written: a message, a snapshot that is due, or
// a closing; all empty when there is nothing.
func (o *outbox) next() (msg []byte, fresh bool, end *closing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(0)
	switch {
	case len(o.replies) > 0:
		msg, o.replies[0] = o.replies[0], nil
		o.replies = o.replies[1:]
	case o.closing != nil:
		return nil, false, o.closing
	case o.fresh:
		return nil, true, nil
	case len(o.stream) > 0:
		msg, o.stream[0] = o.stream[0], nil
		o.stream = o.stream[1:]
	default:
		o.overflows = 0
		return nil, false, nil
	}
	o.bytes -= len(msg)
	o.write(len(msg))
	return msg, false, nil
}

// begin notes that a message of so many bytes, which was not queued, is being
// written.
func (o *outbox) begin(bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(bytes)
}

func (o *outbox) write(bytes int) {
	o.bytes += bytes - o.writing
	o.writing = bytes
}

// size is what the outbox holds in messages and bytes.
func (o *outbox) size() (messages, bytes int, dropped uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.stream) + len(o.replies), o.bytes, o.dropped
}
