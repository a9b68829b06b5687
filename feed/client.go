package feed

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/model"
)

// ClientOptions tune a client; zero fields take the defaults named.
type ClientOptions struct {
	// Token is sent as a bearer token in the Authorization header, never in the
	// URL. Empty sends none.
	Token string
	// PingPeriod (5 s): a link on which nothing arrives for two of them is cut. The
	// client pings as often, and at least every second.
	PingPeriod time.Duration
	// MinRetry (0.5 s) and MaxRetry (10 s) bound the wait before a new try, drawn
	// with full jitter from a range that doubles with each failure.
	MinRetry, MaxRetry time.Duration
	// SnapshotTimeout (10 s) is how long a connection may go without becoming
	// live before it is given up.
	SnapshotTimeout time.Duration
	// ViewPeriod (100 ms) is the least time between two views.
	ViewPeriod time.Duration
	// Dial replaces the TCP dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (o *ClientOptions) defaults() {
	orDuration(&o.PingPeriod, 5*time.Second)
	orDuration(&o.MinRetry, 500*time.Millisecond)
	orDuration(&o.MaxRetry, 10*time.Second)
	orDuration(&o.SnapshotTimeout, 10*time.Second)
	orDuration(&o.ViewPeriod, 100*time.Millisecond)
}

func orDuration(d *time.Duration, standard time.Duration) {
	if *d <= 0 {
		*d = standard
	}
}

// Client follows a feed. It connects and reconnects in the background until its
// context ends or Close is called. All methods may be called from any
// goroutine; View and Do never wait.
type Client struct {
	url    string
	opt    ClientOptions
	stop   context.CancelFunc
	done   sync.WaitGroup
	view   atomic.Pointer[View]
	retry  chan struct{} // capacity 1: try now
	moved  chan struct{} // capacity 1: something for a new view
	urgent chan struct{} // capacity 1: the phase changed, publish at once

	mu      sync.Mutex // guards what follows
	stream  stream
	link    Link
	pending pending
	session *session // the open connection, nil when there is none
}

// Dial returns at once and connects to url (ws://HOST:PORT/feed, wss:// or just
// HOST:PORT) in the background. What goes wrong is told by View().Link.Err.
func Dial(ctx context.Context, url string, opt ClientOptions) *Client {
	opt.defaults()
	ctx, stop := context.WithCancel(ctx)
	c := &Client{
		url: url, opt: opt, stop: stop,
		retry: make(chan struct{}, 1), moved: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		link: Link{Phase: PhaseConnecting, Since: time.Now()},
	}
	c.publish()
	c.done.Go(func() { c.run(ctx) })
	c.done.Go(func() { c.publishLoop(ctx) })
	return c
}

// View returns the newest view, never nil.
func (c *Client) View() *View { return c.view.Load() }

// RetryNow ends the present wait before the next try, if there is one.
func (c *Client) RetryNow() { nudge(c.retry) }

// Close cuts the link and returns when all goroutines have ended. Pending
// replies are closed without a value.
func (c *Client) Close() error {
	c.stop()
	c.done.Wait()
	return nil
}

// run connects, serves one connection, waits, and begins again.
func (c *Client) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.change(func(l *Link) { l.Attempt++; l.NextTry = time.Time{} })
		err := c.connect(ctx)
		if ctx.Err() != nil {
			err = errors.New("closed")
		}
		c.lost(err)
		if !c.wait(ctx) {
			return
		}
	}
}

// wait sleeps until the next try is due or asked for; false when ctx ended.
func (c *Client) wait(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	c.mu.Lock()
	attempt := c.link.Attempt
	c.mu.Unlock()
	d := backoff(attempt, c.opt.MinRetry, c.opt.MaxRetry, rand.Float64())
	c.change(func(l *Link) { l.NextTry = time.Now().Add(d) })
	select { // an old wish does not count
	case <-c.retry:
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.retry:
	case <-ctx.Done():
		return false
	}
	return true
}

// backoff is full jitter between least and the smaller of most and least
// doubled attempt times; r is uniform in [0,1).
func backoff(attempt int, least, most time.Duration, r float64) time.Duration {
	top := most
	if attempt < 16 {
		top = max(least, min(most, least<<max(attempt, 1)))
	}
	return least + time.Duration(r*float64(top-least))
}

// lost notes that the connection is gone and frees whoever waits for a reply.
func (c *Client) lost(why error) {
	c.mu.Lock()
	c.stream.lose(nil)
	c.session = nil
	c.link.Asked = time.Time{}
	c.pending.abandon()
	c.setPhase(why)
	c.mu.Unlock()
	nudge(c.urgent)
}

// setPhase derives the phase from the stream; the lock is held.
func (c *Client) setPhase(why error) {
	phase := PhaseLive
	if !c.stream.synced {
		phase = PhaseLost
		if c.stream.merger.State() == nil {
			phase = PhaseConnecting
		}
	}
	if phase != c.link.Phase {
		c.link.Phase, c.link.Since = phase, time.Now()
	}
	switch {
	case phase == PhaseLive:
		c.link.Err, c.link.Attempt = "", 0
	case why != nil:
		c.link.Err = why.Error()
	}
}

func (c *Client) change(f func(*Link)) {
	c.mu.Lock()
	f(&c.link)
	c.mu.Unlock()
	nudge(c.urgent)
}

// gather is how long a view waits for the other frames of the same change.
const gather = 3 * time.Millisecond

// publishLoop makes views: at once when the phase changed, otherwise at most
// one per ViewPeriod.
func (c *Client) publishLoop(ctx context.Context) {
	defer c.publish()
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.urgent:
		case <-c.moved:
			pause.Reset(gather)
			select {
			case <-ctx.Done():
				return
			case <-c.urgent:
			case <-pause.C:
			}
		}
		c.publish()
		pause.Reset(c.opt.ViewPeriod)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-c.urgent:
				c.publish()
			case <-pause.C:
				waiting = false
			}
		}
	}
}

func (c *Client) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := &View{Link: c.link}
	c.stream.fill(v)
	if old := c.view.Load(); old != nil {
		v.Rev = old.Rev + 1
	}
	c.view.Store(v)
}

func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Do sends a command and returns where its reply will come. The channel is
// closed without a value when there is no link or it is lost before the reply:
// the outcome is then unknown, and the same command, with the same id, may be
// sent again. What this side refuses comes back as a reply, not applied.
func (c *Client) Do(cmd model.Command) <-chan model.Reply {
	reply := make(chan model.Reply, 1)
	msg, refusal := encodeCommand(cmd)
	if refusal != nil {
		reply <- model.Reply{ID: cmd.ID, Refusal: refusal}
		return reply
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		close(reply)
		return reply
	}
	first, full := c.pending.add(cmd.ID, reply, time.Now())
	switch {
	case full:
		reply <- model.Reply{ID: cmd.ID, Refusal: busy("too many commands wait for their reply", "wait for one to be answered")}
	case first:
		select {
		case c.session.out <- msg:
		default:
			c.pending.drop(cmd.ID)
			reply <- model.Reply{ID: cmd.ID, Refusal: busy("the link takes no more commands", "try again in a moment")}
		}
	}
	return reply
}
