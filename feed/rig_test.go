package feed_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"adpdeck/feed"
	"adpdeck/feed/feedtest"
	"adpdeck/router/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const url = "ws://127.0.0.1:1/feed"

// rig is a served source on a network in memory. It must be made in a bubble.
type rig struct {
	t    *testing.T
	src  *feedtest.Source
	srv  *feed.Server
	net  *feedtest.Network
	bad  *feedtest.Bad
	stop context.CancelFunc
	done chan error
}

func serve(t *testing.T, state *model.State, opt feed.ServerOptions) *rig {
	t.Helper()
	r := &rig{
		t: t, src: feedtest.NewSource(state), net: feedtest.NewNetwork(64 << 10),
		bad: feedtest.NewBad(), done: make(chan error, 1),
	}
	r.srv = feed.NewServer(r.src, opt)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- r.srv.Serve(ctx, r.net) }()
	synctest.Wait()
	return r
}

// close stops the server and checks that it says goodbye in time.
func (r *rig) close() {
	r.t.Helper()
	began := time.Now()
	r.stop()
	if err := <-r.done; err != nil {
		r.t.Errorf("serve: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		r.t.Errorf("the server took %v to stop", took)
	}
	if n := r.src.Subscribers(); n != 0 {
		r.t.Errorf("%d subscriptions left open", n)
	}
}

func (r *rig) client(opt feed.ClientOptions) *feed.Client {
	opt.Dial = r.bad.Dial(r.net.Dial)
	return feed.Dial(context.Background(), url, opt)
}

// raw opens a websocket without the client's manners.
func (r *rig) raw(head http.Header, change func(*websocket.Dialer)) (*websocket.Conn, *http.Response, error) {
	d := websocket.Dialer{NetDialContext: r.net.Dial, Subprotocols: []string{feed.Protocol}}
	target := url
	if change != nil {
		change(&d)
	}
	return d.Dial(target, head)
}

func (r *rig) mustRaw() *websocket.Conn {
	r.t.Helper()
	c, _, err := r.raw(nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// message is what tests read of a frame.
type message struct {
	Kind   string        `json:"kind"`
	Epoch  string        `json:"epoch"`
	Seq    uint64        `json:"seq"`
	More   bool          `json:"more"`
	State  *model.State  `json:"state"`
	Change *model.Change `json:"change"`
	Reply  *model.Reply  `json:"reply"`
}

// next reads the next frame of this kind, skipping others.
func next(t *testing.T, c *websocket.Conn, kind string) message {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	for {
		_, text, err := c.ReadMessage()
		if err != nil {
			t.Fatalf("waiting for %s: %v", kind, err)
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		if m.Kind == kind {
			return m
		}
	}
}

// until lets time pass until the view satisfies ok, at most a minute of it.
func until(t *testing.T, c interface{ View() *feed.View }, what string, ok func(*feed.View) bool) *feed.View {
	t.Helper()
	for range 6_000 {
		synctest.Wait()
		if v := c.View(); ok(v) {
			return v
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("never %s: link %+v", what, c.View().Link)
	return nil
}

func live(v *feed.View) bool { return v.Link.Phase == feed.PhaseLive }
