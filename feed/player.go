package feed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/model"
)

// MaxSpeed is the fastest playback of a recording.
const MaxSpeed = 64.0

// maxLineBytes bounds one line of a recording: a message and its time.
const maxLineBytes = MaxMessageBytes + 256

// ErrNotRecording is returned, wrapped with the file's name, by OpenRecording
// for a file that a Recorder did not write.
var ErrNotRecording = errors.New("not a recording of an adpdeck feed")

// PlayerOptions tune a player; zero fields take the defaults named.
type PlayerOptions struct {
	Speed      float64       // 1: recorded seconds per second
	ViewPeriod time.Duration // 100 ms: the least time between two views
}

// Player plays a recording through the methods of a Client. A damaged line is
// skipped and counted, and the state counts as old until the next snapshot.
// All methods may be called from any goroutine.
type Player struct {
	opt   PlayerOptions
	start time.Time // of the recording
	view  atomic.Pointer[View]
	stop  context.CancelFunc
	done  sync.WaitGroup
	wake  chan struct{} // capacity 1: speed or pause changed

	mu     sync.Mutex // guards what follows
	speed  float64
	paused bool
	pos    time.Duration // recorded time at since
	since  time.Time     // wall time

	// Only run touches these.
	in     *bufio.Reader
	stream stream
	link   Link
	lineNo int
	shown  time.Time // of the newest view
	dirty  bool      // something changed since
}

// OpenRecording begins to play the file at path. The error says what is wrong
// with the file; damage further on is told by Link.Err and Link.Replay.
func OpenRecording(path string, opt PlayerOptions) (*Player, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	p, err := play(f, opt)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open recording %s: %w", path, err)
	}
	return p, nil
}

// play reads the header and starts; the player closes in.
func play(in io.ReadCloser, opt PlayerOptions) (*Player, error) {
	if opt.Speed <= 0 {
		opt.Speed = 1
	}
	orDuration(&opt.ViewPeriod, 100*time.Millisecond)
	p := &Player{
		opt: opt, speed: min(opt.Speed, MaxSpeed), since: time.Now(), wake: make(chan struct{}, 1),
		in: bufio.NewReaderSize(in, maxLineBytes),
	}
	line, err := p.readLine()
	var head recordHeader
	if bad := json.Unmarshal(line, &head); err != nil || bad != nil || head.Recording != Protocol {
		return nil, fmt.Errorf("%w: the first line is no header", ErrNotRecording)
	}
	if head.Format > recordingFormat {
		return nil, fmt.Errorf("recording has format %d, this version reads up to %d: use a newer adpdeck", head.Format, recordingFormat)
	}
	p.start = head.Start
	p.link = Link{Phase: PhaseReplay, Since: time.Now()}
	p.publish()
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.done.Go(func() {
		defer in.Close()
		p.run(ctx)
	})
	return p, nil
}

// View returns the newest view, never nil.
func (p *Player) View() *View { return p.view.Load() }

// Do sets the speed of playback for model.VerbSpeed (0 pauses) and refuses
// every other command.
func (p *Player) Do(cmd model.Command) <-chan model.Reply {
	reply := make(chan model.Reply, 1)
	answer := model.Reply{ID: cmd.ID}
	switch {
	case cmd.Verb != model.VerbSpeed:
		answer.Refusal = &model.Refusal{
			Code: model.RefusedVerb, Message: "this is a recording: nothing in it can be changed",
			Next: "attach to a running server to act",
		}
	case !(cmd.Speed >= 0 && cmd.Speed <= MaxSpeed):
		answer.Refusal = &model.Refusal{
			Code: model.RefusedBounds, Message: fmt.Sprintf("speed %v is out of bounds", cmd.Speed),
			Next: fmt.Sprintf("use 0 to %v", MaxSpeed),
		}
	default:
		if cmd.Speed > 0 {
			p.Speed(cmd.Speed)
		}
		p.Pause(cmd.Speed == 0)
		answer.Accepted, answer.What = true, fmt.Sprintf("playback ×%v", cmd.Speed)
	}
	reply <- answer
	return reply
}

// RetryNow does nothing: a file is not reconnected.
func (p *Player) RetryNow() {}

// Pause holds playback or lets it go on.
func (p *Player) Pause(paused bool) { p.steer(func() { p.paused = paused }) }

// Speed sets how many recorded seconds pass in one, above 0 up to MaxSpeed;
// others are brought into that range.
func (p *Player) Speed(x float64) {
	if x > 0 {
		p.steer(func() { p.speed = min(x, MaxSpeed) })
	}
}

func (p *Player) steer(set func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pos, p.since = p.now(), time.Now()
	set()
	nudge(p.wake)
}

// now is the recorded time reached; the lock is held.
func (p *Player) now() time.Duration {
	if p.paused {
		return p.pos
	}
	return p.pos + time.Duration(float64(time.Since(p.since))*p.speed)
}

// Close stops playback and closes the file.
func (p *Player) Close() error {
	p.stop()
	p.done.Wait()
	return nil
}

// errLongLine is returned by readLine for a line that no recorder wrote.
var errLongLine = errors.New("the line is too long")

// run plays line after line until the end, then only answers to steering.
func (p *Player) run(ctx context.Context) {
	for goOn := true; goOn; {
		line, err := p.readLine()
		switch {
		case errors.Is(err, errLongLine):
			p.damage(err)
		case err == io.EOF && len(line) > 0 && !json.Valid(line):
			p.finish(fmt.Sprintf("the recording ends amid line %d: its writer was cut off", p.lineNo))
			goOn = false
		case err == io.EOF && len(line) == 0:
			p.finish("the recording has ended")
			goOn = false
		case err != nil && err != io.EOF:
			p.finish(fmt.Sprintf("the recording cannot be read beyond line %d: %v", p.lineNo, err))
			goOn = false
		case !p.play(ctx, line):
			return
		}
	}
	for p.wait(ctx, math.MaxInt64) {
	}
}

// play waits for the line's time and applies it; false when ctx ended.
func (p *Player) play(ctx context.Context, raw []byte) bool {
	var line recordLine
	if json.Unmarshal(raw, &line) != nil {
		p.damage(errors.New("not a line of a recording"))
		return true
	}
	at := time.Duration(min(max(line.Us, 0), 1<<53)) * time.Microsecond
	if !p.wait(ctx, at) {
		return false
	}
	p.dirty = true
	p.link.Replay.Pos = max(p.link.Replay.Pos, at)
	p.link.Replay.Dropped += line.Dropped
	if line.Frame == nil {
		return true
	}
	got, err := p.stream.apply(line.Frame)
	switch {
	case errors.Is(err, errDecode):
		p.damage(err)
	case err != nil:
		p.link.Gaps++
		p.link.Err = fmt.Sprintf("line %d: %v; waiting for the next snapshot", p.lineNo, err)
	case got.current:
		p.link.LastFrame, p.link.Err = p.start.Add(at), ""
	}
	return true
}

// damage skips a line: what follows cannot be trusted before a snapshot.
func (p *Player) damage(why error) {
	_ = p.stream.lose(nil)
	p.dirty = true
	p.link.Replay.Skipped++
	p.link.Err = fmt.Sprintf("line %d is damaged (%v); waiting for the next snapshot", p.lineNo, why)
}

func (p *Player) finish(why string) {
	p.link.Replay.Ended, p.link.Err = true, why
	p.publish()
}

// wait returns when playback has reached at, false when ctx ended. Views are
// made on the way, at most one per ViewPeriod unless playback is steered.
func (p *Player) wait(ctx context.Context, at time.Duration) bool {
	for {
		p.mu.Lock()
		left, paused, speed := at-p.now(), p.paused, p.speed
		p.mu.Unlock()
		unseen := p.opt.ViewPeriod - time.Since(p.shown)
		if p.dirty && unseen <= 0 {
			p.publish()
		}
		if !paused && left <= 0 {
			return ctx.Err() == nil
		}
		nap := time.Hour
		if !paused {
			nap = time.Duration(min(float64(left)/speed, float64(nap))) + time.Microsecond
		}
		if p.dirty {
			nap = min(nap, unseen)
		}
		t := time.NewTimer(nap)
		select {
		case <-t.C:
		case <-p.wake:
			p.dirty, p.shown = true, time.Time{}
		case <-ctx.Done():
			t.Stop()
			return false
		}
		t.Stop()
	}
}

func (p *Player) publish() {
	p.mu.Lock()
	p.link.Replay.Speed, p.link.Replay.Paused = p.speed, p.paused
	p.mu.Unlock()
	v := &View{Link: p.link}
	p.stream.fill(v)
	if old := p.view.Load(); old != nil {
		v.Rev = old.Rev + 1
	}
	p.view.Store(v)
	p.shown, p.dirty = time.Now(), false
}

// readLine returns the next line without its newline, which stays valid until
// the next call; the last line may come with io.EOF. A line longer than
// maxLineBytes is read to its end and returned as errLongLine.
func (p *Player) readLine() ([]byte, error) {
	p.lineNo++
	line, err := p.in.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = p.in.ReadSlice('\n')
	}
	return nil, errLongLine
}
