package zmtp

import "sync"

// queue holds messages between the goroutine that reads a socket and the one
// that delivers. It never makes the reader wait: a message that finds it full is
// dropped. Both sides work on batches whose memory is used again, so that a
// message costs one copy and no allocation.
type queue struct {
	most      int // messages
	mostBytes int
	wake      chan struct{} // capacity 1: pending is no longer empty

	mu      sync.Mutex // guards what follows
	pending batch
	dropped uint64
}

func newQueue(most, mostBytes int) *queue {
	return &queue{most: most, mostBytes: mostBytes, wake: make(chan struct{}, 1)}
}

// batch is messages one behind the other: the bytes of all their frames, where
// each frame ends, and for each message its connection and where its frames end.
type batch struct {
	data   []byte
	ends   []int
	marks  []mark
	frames [][]byte // scratch of message
	calm   int      // swaps in a row that used little of the memory
}

type mark struct {
	conn uint64
	end  int // in ends
}

// push copies a message into the queue, or drops it and returns false.
func (q *queue) push(conn uint64, frames [][]byte) bool {
	q.mu.Lock()
	b := &q.pending
	size := len(b.data)
	for _, f := range frames {
		size += len(f)
	}
	first := len(b.marks) == 0
	if len(b.marks) >= q.most || size > q.mostBytes && !first {
		q.dropped++
		q.mu.Unlock()
		return false
	}
	for _, f := range frames {
		b.data = append(b.data, f...)
		b.ends = append(b.ends, len(b.data))
	}
	b.marks = append(b.marks, mark{conn, len(b.ends)})
	q.mu.Unlock()
	if first {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// swap exchanges the batch that was delivered for the one that is pending.
func (q *queue) swap(done *batch) {
	done.reset()
	q.mu.Lock()
	q.pending, *done = *done, q.pending
	q.mu.Unlock()
}

// deliver hands on what is queued until stop closes, or ended does and nothing
// waits any more; nil never closes.
func (q *queue) deliver(stop, ended <-chan struct{}, hand func(Message)) {
	var b batch
	for last := false; !last; {
		select {
		case <-stop:
			return
		case <-q.wake:
		case <-ended:
			last = true
		}
		q.swap(&b)
		for i := range b.marks {
			select {
			case <-stop:
				return
			default:
			}
			hand(b.message(i))
		}
	}
}

// depth returns how many messages wait and how many were ever dropped.
func (q *queue) depth() (waiting int, dropped uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending.marks), q.dropped
}

// A batch keeps keepBatch of memory in quiet times. What a burst took on top is
// let go after calm swaps that needed little of it: under load the sizes of
// batches vary, and memory would only be made anew.
const (
	keepBatch = 1 << 20
	calmSwaps = 256
)

func (b *batch) reset() {
	if len(b.data) < cap(b.data)/4 && len(b.ends) <= cap(b.ends)/4 {
		b.calm++
	} else {
		b.calm = 0
	}
	if b.calm >= calmSwaps && cap(b.data)+16*cap(b.ends) > keepBatch {
		*b = batch{}
		return
	}
	b.data, b.ends, b.marks = b.data[:0], b.ends[:0], b.marks[:0]
}

// message returns message i, valid until the next call or reset.
func (b *batch) message(i int) Message {
	at := 0
	if i > 0 {
		at = b.marks[i-1].end
	}
	from := 0
	if at > 0 {
		from = b.ends[at-1]
	}
	b.frames = b.frames[:0]
	for _, to := range b.ends[at:b.marks[i].end] {
		b.frames = append(b.frames, b.data[from:to:to])
		from = to
	}
	return Message{Conn: b.marks[i].conn, Frames: b.frames}
}
