package feed_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"adpdeck/feed"
	"adpdeck/feed/feedtest"
	"adpdeck/router/model"
)

func TestAccept(t *testing.T) {
	const token = "s3cret-token"
	head := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	tests := map[string]struct {
		token  string
		head   http.Header
		proto  string
		url    string
		status int
	}{
		"no origin":              {status: 101},
		"own origin":             {head: head("Origin", "http://127.0.0.1:1"), status: 101},
		"foreign origin":         {head: head("Origin", "http://evil.example"), status: 403},
		"foreign port":           {head: head("Origin", "http://127.0.0.1:2"), status: 403},
		"null origin":            {head: head("Origin", "null"), status: 403},
		"empty origin":           {head: head("Origin", ""), status: 403},
		"two origins":            {head: head("Origin", "http://127.0.0.1:1", "Origin", "http://evil.example"), status: 403},
		"a name bound to us":     {head: head("Host", "evil.example:1", "Origin", "http://evil.example:1"), status: 403},
		"localhost":              {head: head("Host", "localhost:1", "Origin", "http://localhost:1"), status: 101},
		"token":                  {token: token, head: head("Authorization", "Bearer "+token), status: 101},
		"token, another name":    {token: token, head: head("Authorization", "Bearer "+token, "Host", "deck.example"), status: 101},
		"no token":               {token: token, status: 401},
		"wrong token":            {token: token, head: head("Authorization", "Bearer s3cret-tokeN"), status: 401},
		"longer token":           {token: token, head: head("Authorization", "Bearer "+token+"x"), status: 401},
		"basic":                  {token: token, head: head("Authorization", token), status: 401},
		"two headers":            {token: token, head: head("Authorization", "Bearer "+token, "Authorization", "Bearer "+token), status: 401},
		"token in the URL":       {token: token, url: url + "?token=" + token, status: 401},
		"token, foreign origin":  {token: token, head: head("Authorization", "Bearer "+token, "Origin", "http://evil.example"), status: 403},
		"another subprotocol":    {proto: "adpdeck.v0", status: 400},
		"another path":           {url: "ws://127.0.0.1:1/", status: 404},
		"token with nothing set": {head: head("Authorization", "Bearer x"), status: 101},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := serve(t, feedtest.State(1, 1, 1), feed.ServerOptions{Token: tt.token})
				d := websocket.Dialer{NetDialContext: r.net.Dial, Subprotocols: []string{feed.Protocol}}
				if tt.proto != "" {
					d.Subprotocols = []string{tt.proto}
				}
				target := url
				if tt.url != "" {
					target = tt.url
				}
				c, resp, err := d.Dial(target, tt.head)
				if resp == nil || resp.StatusCode != tt.status {
					t.Fatalf("response %v, error %v, want status %d", resp, err, tt.status)
				}
				if tt.status != 101 {
					body, _ := io.ReadAll(resp.Body)
					if strings.Contains(string(body), "snapshot") || len(body) == 0 {
						t.Errorf("body %q", body)
					}
				} else {
					if ext := resp.Header.Get("Sec-Websocket-Extensions"); ext != "" {
						t.Errorf("extensions %q", ext)
					}
					next(t, c, "snapshot")
					c.Close()
				}
				r.close()
			})
		})
	}
}

func TestClientRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 1, 1), feed.ServerOptions{Token: "right"})
		c := r.client(feed.ClientOptions{Token: "wrong"})
		v := until(t, c, "refused", func(v *feed.View) bool { return v.Link.Err != "" })
		if !strings.Contains(v.Link.Err, "401") || !strings.Contains(v.Link.Err, "Authorization") || v.State != nil {
			t.Errorf("link %+v", v.Link)
		}
		c.Close()
		c = r.client(feed.ClientOptions{Token: "right"})
		until(t, c, "live", live)
		c.Close()
		r.close()
	})
}

func TestListenRules(t *testing.T) {
	tests := map[string]struct {
		ip    string
		token string
		want  error
	}{
		"loopback":          {ip: "127.0.0.1"},
		"loopback 6":        {ip: "::1"},
		"everywhere":        {ip: "0.0.0.0", want: feed.ErrToken},
		"private":           {ip: "10.0.0.1", want: feed.ErrToken},
		"everywhere, token": {ip: "0.0.0.0", token: "t"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(context.Background())
				srv := feed.NewServer(feedtest.NewSource(feedtest.State(1, 1, 1)), feed.ServerOptions{Token: tt.token})
				stop()
				err := srv.Serve(ctx, at{feedtest.NewNetwork(1), &net.TCPAddr{IP: net.ParseIP(tt.ip), Port: 1}})
				if !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if tt.want == nil {
					if err := srv.Serve(ctx, feedtest.NewNetwork(1)); !errors.Is(err, feed.ErrServed) {
						t.Errorf("second Serve: %v", err)
					}
				}
			})
		})
	}
}

// at is a listener that claims another address.
type at struct {
	*feedtest.Network
	addr net.Addr
}

func (l at) Addr() net.Addr { return l.addr }

func TestTooManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 1, 1), feed.ServerOptions{MaxClients: 2})
		a, b := r.mustRaw(), r.mustRaw()
		if _, resp, _ := r.raw(nil, nil); resp == nil || resp.StatusCode != 503 {
			t.Errorf("third client: %v", resp)
		}
		a.Close()
		synctest.Wait()
		c := r.mustRaw()
		next(t, c, "snapshot")
		b.Close()
		c.Close()
		r.close()
	})
}

// TestStalledClients serves 100 clients of which 20 never read: the others get
// every change, the source is never waited for, and what waits for a stalled
// client stays within 4 MiB.
func TestStalledClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, stalled, changes = 100, 20, 400
		r := serve(t, feedtest.State(8, 8, 200), feed.ServerOptions{
			MaxClients: clients, ChangePeriod: 100 * time.Millisecond, WriteTimeout: time.Hour, PingPeriod: time.Hour, QueueMessages: 1 << 20, MaxOverflows: 1 << 20,
		})
		for range stalled {
			r.mustRaw()
		}
		counts := make([]int, clients-stalled)
		for i := range counts {
			c := r.mustRaw()
			go func() {
				for {
					_, text, err := c.ReadMessage()
					if err != nil {
						return
					}
					if bytes.HasPrefix(text, []byte(`{"kind":"change"`)) {
						counts[i]++
					}
				}
			}()
		}
		synctest.Wait()
		most, now := 0, time.Now()
		for n := range changes {
			ch := &model.Change{Version: uint64(n + 2)}
			for i := range 64 {
				ch.Ranks = append(ch.Ranks, feedtest.Rank(fmt.Sprint("w", i/8), i%8, uint64(n)))
			}
			r.src.Publish(ch)
			<-time.After(100 * time.Millisecond)
			synctest.Wait()
			most = max(most, r.srv.Stats().MaxQueuedBytes)
		}
		st := r.srv.Stats()
		if took := time.Since(now); took != changes*100*time.Millisecond {
			t.Errorf("publishing took %v of virtual time", took)
		}
		for i, n := range counts {
			if n < changes || n > changes+2 {
				t.Errorf("client %d got %d changes of %d", i, n, changes)
			}
		}
		t.Logf("%d clients, %d overflows, at most %d bytes queued for one; a change is %d bytes", st.Clients, st.Coalesced, most, st.Bytes/st.Frames)
		if st.Clients != clients || most > 4<<20 || most < 3<<20 || st.Coalesced < stalled {
			t.Errorf("at most %d bytes queued for one client; %+v", most, st)
		}
		r.close()
	})
}

// TestRhythm tells four changes a second, and what a command did at once or, when
// a change has just been told, a tenth of a second after that.
func TestRhythm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{})
		c := r.client(feed.ClientOptions{ViewPeriod: time.Millisecond})
		version := until(t, c, "live", live).State.Version
		tell := func() { version++; r.src.Publish(&model.Change{Version: version}) }
		told := func() uint64 { <-time.After(10 * time.Millisecond); synctest.Wait(); return c.View().State.Version }
		seq := c.View().Link.Seq
		for range 400 {
			tell()
			<-time.After(10 * time.Millisecond)
		}
		if n := told(); c.View().Link.Seq-seq < 15 || c.View().Link.Seq-seq > 17 {
			t.Errorf("%d changes in 4 s, want 4 a second; version %d", c.View().Link.Seq-seq, n)
		}
		<-time.After(600 * time.Millisecond)
		tell()
		if got := told(); got != version {
			t.Errorf("after a pause: version %d, want %d at once", got, version)
		}
		tell()
		if got := told(); got == version {
			t.Error("a second change within a tenth of a second")
		}
		<-c.Do(model.Command{ID: "c", Verb: model.VerbUndo})
		<-time.After(90 * time.Millisecond)
		if got := told(); got <= version { // the command made one more
			t.Errorf("a tenth of a second after a command: version %d, want more than %d", got, version)
		}
		c.Close()
		r.close()
	})
}

// TestSlowClient is coalesced into snapshots first, then closed with its code.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(8, 8, 10), feed.ServerOptions{ChangePeriod: 100 * time.Millisecond, QueueMessages: 8, MaxOverflows: 3, WriteTimeout: time.Minute})
		c := r.mustRaw()
		snapshots, code := 0, 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				_, text, err := c.ReadMessage()
				var closed *websocket.CloseError
				if errors.As(err, &closed) {
					code = closed.Code
				}
				if err != nil {
					return
				}
				if bytes.HasPrefix(text, []byte(`{"kind":"snapshot"`)) {
					snapshots++
				}
				<-time.After(2 * time.Second)
			}
		}()
		for n := 0; n < 3_000 && !over(done); n++ {
			ch := &model.Change{Version: uint64(n + 2)}
			for i := range 64 {
				ch.Ranks = append(ch.Ranks, feedtest.Rank(fmt.Sprint("w", i/8), i%8, uint64(n)))
			}
			r.src.Publish(ch)
			<-time.After(100 * time.Millisecond)
			synctest.Wait()
		}
		<-done
		if st := r.srv.Stats(); code != feed.CloseSlow || snapshots < 2 || st.Slow != 1 || st.Coalesced != 3 {
			t.Errorf("close code %d, %d snapshots, %+v", code, snapshots, st)
		}
		c.Close()
		r.close()
	})
}

func over(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// TestStalledIsCut cuts a client that does not read at all, after WriteTimeout.
func TestStalledIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(8, 8, 500), feed.ServerOptions{WriteTimeout: 3 * time.Second, PingPeriod: time.Hour})
		c := r.mustRaw() // the snapshot alone fills the network's buffer
		<-time.After(3*time.Second + time.Millisecond)
		synctest.Wait()
		if st := r.srv.Stats(); st.Clients != 0 || st.Stalled != 1 {
			t.Errorf("%+v", st)
		}
		c.Close()
		r.close()
	})
}

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{})
		polite := r.client(feed.ClientOptions{})
		until(t, polite, "live", live)
		r.mustRaw() // never answers the goodbye
		r.close()
		v := until(t, polite, "lost", func(v *feed.View) bool { return v.Link.Phase == feed.PhaseLost })
		if !strings.Contains(v.Link.Err, "1001") && !strings.Contains(v.Link.Err, "connect") {
			t.Errorf("link %+v", v.Link)
		}
		polite.Close()
	})
}

func TestCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{})
		a, b := r.mustRaw(), r.mustRaw()
		send := func(text string) {
			t.Helper()
			if err := a.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		code := func() model.RefusalCode {
			r := next(t, a, "reply").Reply
			if r.Refusal == nil {
				return ""
			}
			return r.Refusal.Code
		}
		send(`{"kind":"command","command":{"id":"","verb":"drain"}}`)
		if got := code(); got != model.RefusedMalformed {
			t.Errorf("no id: %q", got)
		}
		send(`{"kind":"command","command":{"id":"x","verb":7}}`)
		if got := next(t, a, "reply").Reply; got.ID != "x" || got.Refusal.Code != model.RefusedMalformed {
			t.Errorf("wrong type: %+v", got)
		}
		send(`{"kind":"weather"}`)
		send(`{"kind":"resync"}`)
		next(t, a, "snapshot")
		refused := 0
		for i := range 60 {
			send(fmt.Sprintf(`{"kind":"command","command":{"id":"c%d","verb":"drain"}}`, i))
		}
		for range 60 {
			if code() == model.RefusedBusy {
				refused++
			}
		}
		<-time.After(time.Second)
		send(`{"kind":"command","command":{"id":"later","verb":"drain"}}`)
		if got := next(t, a, "reply").Reply; got.ID != "later" || !got.Accepted {
			t.Errorf("after a second: %+v", got)
		}
		if st := r.srv.Stats(); refused != 20 || st.Busy != 20 || st.Commands != 41 || st.Unknown != 1 {
			t.Errorf("%d refused, want 20 of 60; %+v", refused, st)
		}
		_ = b.SetReadDeadline(time.Now().Add(time.Second))
		for {
			_, text, err := b.ReadMessage()
			if err != nil {
				break
			}
			if bytes.Contains(text, []byte(`"reply"`)) {
				t.Errorf("a reply to another: %s", text)
			}
		}
		send("\x00 not JSON")
		for {
			_, _, err := a.ReadMessage()
			if err != nil {
				if !websocket.IsCloseError(err, feed.CloseBadFrame) {
					t.Errorf("closed with %v", err)
				}
				break
			}
		}
		a.Close()
		b.Close()
		r.close()
	})
}

// TestRepliesUnread closes a client that sends commands and reads nothing.
func TestRepliesUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{CommandRate: 1e6, CommandBurst: 1e6, QueueMessages: 50, WriteTimeout: 5 * time.Second})
		r.src.Answer(func(cmd model.Command) model.Reply {
			return model.Reply{ID: cmd.ID, What: strings.Repeat("x", 100_000)}
		})
		c := r.mustRaw()
		for i := range 200 {
			if c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"kind":"command","command":{"id":"c%d"}}`, i)) != nil {
				break
			}
		}
		synctest.Wait()
		if st := r.srv.Stats(); st.Slow == 0 || st.MaxQueuedBytes > 4<<20 {
			t.Errorf("%+v", st)
		}
		c.Close()
		r.close()
	})
}

// TestResyncRate answers a flood of resyncs with one snapshot a second.
func TestResyncRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{})
		c := r.mustRaw()
		stop := time.Now().Add(10 * time.Second)
		go func() {
			for time.Now().Before(stop) && c.WriteMessage(websocket.TextMessage, []byte(`{"kind":"resync"}`)) == nil {
				<-time.After(time.Millisecond)
			}
		}()
		_ = c.SetReadDeadline(stop)
		n := 0
		for {
			_, text, err := c.ReadMessage()
			if err != nil {
				break
			}
			if bytes.HasPrefix(text, []byte(`{"kind":"snapshot"`)) {
				n++
			}
		}
		if n < 9 || n > 11 {
			t.Errorf("%d snapshots in 10 s", n)
		}
		c.Close()
		r.close()
	})
}

// TestRouterResync gives every client a snapshot when the router lost track.
func TestRouterResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{})
		c := r.client(feed.ClientOptions{})
		until(t, c, "live", live)
		s := feedtest.State(3, 2, 5)
		s.Version = 50
		r.src.SetState(s)
		v := until(t, c, "at the new state", func(v *feed.View) bool { return v.State.Version == 50 })
		if len(v.State.Ranks) != 6 || v.Link.Gaps != 0 {
			t.Errorf("%d ranks, %d gaps", len(v.State.Ranks), v.Link.Gaps)
		}
		c.Close()
		r.close()
	})
}

// TestSampling bounds the decisions of one change and counts what is left out.
func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 2, 2), feed.ServerOptions{})
		c := r.client(feed.ClientOptions{})
		until(t, c, "live", live)
		id, most := uint64(0), 0
		for range 100 {
			ch := &model.Change{}
			for range 500 {
				id++
				ch.Decisions = append(ch.Decisions, feedtest.Decision(id, 16))
				ch.Settled = append(ch.Settled, model.Settled{Decision: id}, model.Settled{Decision: id - min(id, 5_000)})
			}
			r.src.Publish(ch)
			<-time.After(100 * time.Millisecond)
			synctest.Wait()
			most = max(most, len(c.View().Decisions))
		}
		v := until(t, c, "at the last decision", func(v *feed.View) bool { n := len(v.Decisions); return n > 0 && v.Decisions[n-1].ID == id })
		if most > model.MaxDecisions || len(v.Settled) > len(v.Decisions) || v.LeftOut+uint64(len(v.Decisions)) != id && len(v.Decisions) < model.MaxDecisions {
			t.Errorf("%d decisions held, %d settled, %d left out of %d", len(v.Decisions), len(v.Settled), v.LeftOut, id)
		}
		for _, d := range v.Decisions {
			if _, ok := v.Settled[d.ID]; !ok {
				t.Errorf("decision %d has no outcome", d.ID)
				break
			}
		}
		t.Logf("%d decisions held, %d left out of %d", len(v.Decisions), v.LeftOut, id)
		c.Close()
		r.close()
	})
}

// TestCompressionBomb sends 64 MiB of zeros, compressed, to a server that has
// not agreed to compression.
func TestCompressionBomb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(1, 1, 1), feed.ServerOptions{})
		var bomb bytes.Buffer
		w, _ := flate.NewWriter(&bomb, flate.BestCompression)
		zeros := make([]byte, 1<<20)
		for range 64 {
			_, _ = w.Write(zeros)
		}
		w.Close()
		c, resp, err := r.raw(nil, func(d *websocket.Dialer) { d.EnableCompression = true })
		if err != nil || resp.Header.Get("Sec-Websocket-Extensions") != "" {
			t.Fatalf("compression was agreed to: %v, %v", resp, err)
		}
		next(t, c, "snapshot")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		frame := []byte{0x80 | 0x40 | 0x01, 0x80 | 127} // final, compressed, text; masked
		frame = binary.BigEndian.AppendUint64(frame, uint64(bomb.Len()))
		frame = append(frame, 0, 0, 0, 0) // a mask that changes nothing
		_, _ = c.NetConn().Write(append(frame, bomb.Bytes()...))
		var closed *websocket.CloseError
		for err = nil; err == nil; {
			_, _, err = c.ReadMessage()
		}
		runtime.ReadMemStats(&after)
		if !errors.As(err, &closed) || closed.Code != websocket.CloseProtocolError {
			t.Errorf("closed with %v", err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; bomb.Len() > 128<<10 || grown > 2<<20 {
			t.Errorf("a bomb of %d bytes made %d bytes be allocated", bomb.Len(), grown)
		}
		c.Close()

		c = r.mustRaw()
		_ = c.WriteMessage(websocket.TextMessage, make([]byte, feed.MaxMessageBytes+1))
		for err = nil; err == nil; {
			_, _, err = c.ReadMessage()
		}
		if !websocket.IsCloseError(err, feed.CloseTooBig) {
			t.Errorf("a message over the limit closed with %v", err)
		}
		c.Close()
		r.close()
	})
}

// TestHostileData carries whatever a key may hold.
func TestHostileData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := feedtest.State(1, 1, 0)
		ids := []string{"\x1b[31m", "\u202e\u200b", `"}],"convs":[{`, strings.Repeat("\x00", 256), strings.Repeat("é", 300_000), "<script>&\u2028"}
		for _, id := range ids {
			s.Convs = append(s.Convs, feedtest.Conv(id, s.At))
		}
		huge := feedtest.Conv(strings.Repeat("\x00", 300_000), s.At) // fits no message
		s.Convs = append(s.Convs, huge)
		r := serve(t, s, feed.ServerOptions{})
		c := r.client(feed.ClientOptions{})
		v := until(t, c, "live", live)
		held := map[string]bool{}
		for _, conv := range v.State.Convs {
			held[conv.Key.ID] = true
		}
		for _, id := range ids {
			if !held[id] {
				t.Errorf("id %.20q is missing", id)
			}
		}
		again := *huge
		r.src.Publish(&model.Change{Version: 9, Convs: []*model.Conv{&again}})
		until(t, c, "at the change", func(v *feed.View) bool { return v.State.Version == 9 })
		if st := r.srv.Stats(); st.LeftOut != 2 || len(v.State.Convs) != len(ids) {
			t.Errorf("%d conversations; %+v", len(v.State.Convs), st)
		}
		c.Close()
		r.close()
	})
}

// TestRealSockets runs once over TCP, with the address as an operator types it.
func TestRealSockets(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	src := feedtest.NewSource(feedtest.State(2, 8, 2_000))
	srv := feed.NewServer(src, feed.ServerOptions{})
	done := make(chan error)
	go func() { done <- srv.Serve(ctx, ln) }()
	c := feed.Dial(ctx, ln.Addr().String(), feed.ClientOptions{})
	for tick := time.Tick(5 * time.Millisecond); c.View().Link.Phase != feed.PhaseLive; <-tick {
	}
	got := <-c.Do(model.Command{ID: "one", Verb: model.VerbDrain})
	if b, _ := json.Marshal(got); !got.Accepted || len(c.View().State.Convs) != 2_000 {
		t.Errorf("reply %s", b)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.Close()
}
