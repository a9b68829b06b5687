package feed

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// recordingFormat is the format that NewRecorder writes and the newest that
// OpenRecording reads.
const recordingFormat = 1

// RecorderOptions tune a recorder; zero fields take the defaults named.
type RecorderOptions struct {
	// Version is written into the header.
	Version string
	// SnapshotPeriod (30 s) is how often a whole snapshot is written: a player
	// that finds damage waits for the next.
	SnapshotPeriod time.Duration
	// QueueMessages (1024) and QueueBytes (16 MiB) bound what waits for the disk.
	QueueMessages, QueueBytes int
	// MaxBytes (4 GiB) is where a recording stops.
	MaxBytes int64
}

// Recorder writes every frame of a server to a file, with its time, as JSON
// lines. It never makes the server wait: what a slow disk cannot take is
// dropped, the count is written into the file and a snapshot follows. Give it
// to one server by ServerOptions.Recorder; Serve returns only when the last
// write has.
type Recorder struct {
	w   *bufio.Writer
	opt RecorderOptions
	box *outbox

	start   time.Time // of the recording
	written int64
	said    uint64 // dropped frames that the file tells of
	dropped atomic.Uint64

	mu  sync.Mutex // guards what follows
	err error
}

// recordHeader is the first line of a recording.
type recordHeader struct {
	Recording string    `json:"recording"` // Protocol
	Format    int       `json:"format"`
	Version   string    `json:"version,omitempty"`
	Start     time.Time `json:"start"`
}

// recordLine is any other line: a frame, or a number of frames dropped.
type recordLine struct {
	Us      int64           `json:"us"` // microseconds since Start
	Frame   json.RawMessage `json:"frame,omitempty"`
	Dropped uint64          `json:"dropped,omitempty"`
}

// NewRecorder makes a recorder that writes to w; the caller closes w after
// Serve has returned.
func NewRecorder(w io.Writer, opt RecorderOptions) *Recorder {
	orDuration(&opt.SnapshotPeriod, 30*time.Second)
	orInt(&opt.QueueMessages, 1024)
	orInt(&opt.QueueBytes, 16<<20)
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = 4 << 30
	}
	return &Recorder{w: bufio.NewWriterSize(w, 64<<10), opt: opt, box: newOutbox(opt.QueueMessages, opt.QueueBytes)}
}

// Err is why the recording stopped early, nil when it did not.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Dropped counts the frames that came faster than they could be written.
func (r *Recorder) Dropped() uint64 { return r.dropped.Load() }

// run records h until ctx ends, w fails or the file is full.
func (r *Recorder) run(ctx context.Context, h *hub) {
	r.start = time.Now()
	if err := r.record(ctx, h); err != nil {
		_ = r.w.Flush() // what is whole; the reason to stop counts more than this one
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}
	h.setTap(nil)
}

func (r *Recorder) record(ctx context.Context, h *hub) error {
	head, _ := json.Marshal(recordHeader{Protocol, recordingFormat, r.opt.Version, r.start})
	hello, _ := json.Marshal(helloFrame{kindHello, h.opt.Epoch, h.opt.Role, h.opt.Version, h.opt.Heartbeat.Milliseconds()})
	if err := r.put(append(head, '\n')); err != nil {
		return err
	}
	if err := r.line(`"frame":`, hello); err != nil {
		return err
	}
	h.setTap(r.box)
	tick := time.NewTicker(r.opt.SnapshotPeriod)
	defer tick.Stop()
	nudge(r.box.wake)
	for {
		select {
		case <-ctx.Done():
			return r.flush(h)
		case <-r.box.wake:
		case <-tick.C:
			if err := r.renew(h); err != nil {
				return err
			}
		}
		if err := r.flush(h); err != nil {
			return err
		}
	}
}

// flush writes all that waits.
func (r *Recorder) flush(h *hub) error {
	for {
		msg, fresh, _ := r.box.next()
		var err error
		switch {
		case fresh:
			err = r.snapshot(h.snapshot(r.box))
		case msg == nil:
			return r.w.Flush()
		default:
			err = r.line(`"frame":`, msg)
		}
		if err != nil {
			return err
		}
	}
}

// renew writes a snapshot behind what waits now, and before what comes later.
func (r *Recorder) renew(h *hub) error {
	snap, waiting := h.peek(r.box)
	for range waiting {
		msg, fresh, _ := r.box.next()
		if fresh {
			return nil // it overflowed meanwhile: flush writes a newer snapshot
		}
		if err := r.line(`"frame":`, msg); err != nil {
			return err
		}
	}
	return r.snapshot(snap)
}

func (r *Recorder) snapshot(snap *snapshot) error {
	if _, _, dropped := r.box.size(); dropped > r.said {
		if err := r.line(`"dropped":`, strconv.AppendUint(nil, dropped-r.said, 10)); err != nil {
			return err
		}
		r.said = dropped
		r.dropped.Store(dropped)
	}
	for {
		msg, more, err := snap.next()
		if err == nil {
			err = r.line(`"frame":`, msg)
		}
		if err != nil || !more {
			return err
		}
	}
}

// errFull is how a recording ends that reached RecorderOptions.MaxBytes.
type errFull int64

func (e errFull) Error() string {
	return "the recording is full at " + strconv.FormatInt(int64(e), 10) + " bytes: start another or raise the limit"
}

func (r *Recorder) line(member string, value []byte) error {
	line := make([]byte, 0, len(value)+48)
	line = strconv.AppendInt(append(line, `{"us":`...), time.Since(r.start).Microseconds(), 10)
	line = append(append(append(line, ','), member...), value...)
	return r.put(append(line, "}\n"...))
}

func (r *Recorder) put(line []byte) error {
	if r.written+int64(len(line)) > r.opt.MaxBytes {
		return errFull(r.opt.MaxBytes)
	}
	n, err := r.w.Write(line)
	r.written += int64(n)
	return err
}
