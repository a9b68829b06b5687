package zmtp_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/engine/zmtp"
)

// peer is a scripted publisher on the other end of a pipe, in a bubble.
type peer struct {
	t  *testing.T
	nc net.Conn
}

// shake makes a connection to a scripted publisher of the given minor version.
func shake(t *testing.T, cfg zmtp.Config, minor byte) (*zmtp.Conn, peer) {
	t.Helper()
	ours, theirs := net.Pipe()
	p := peer{t, theirs}
	go func() {
		p.want(greeting(3, 1, "NULL"))
		p.write(greeting(3, minor, "NULL"))
		p.want(command("READY", property("Socket-Type", "SUB")))
		p.write(command("READY", property("Socket-Type", "PUB")))
	}()
	cfg.Type = zmtp.SUB
	c, err := zmtp.Handshake(ours, cfg)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c, p
}

func (p peer) write(b []byte) {
	if _, err := p.nc.Write(b); err != nil {
		p.t.Errorf("peer: %v", err)
	}
}

func (p peer) want(b []byte) {
	have := make([]byte, len(b))
	if _, err := io.ReadFull(p.nc, have); err != nil || !bytes.Equal(have, b) {
		p.t.Errorf("peer read %x, %v; want %x", have, err, b)
	}
}

func TestPingIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := shake(t, zmtp.Config{}, 1)
		defer c.Close()
		go func() {
			p.write(command("PING", "\x00\x00some context here"[:2+16]))
			p.want(command("PONG", "some context her"))
			// libzmq may put a heartbeat between the frames of one message.
			p.write([]byte{1, 1, 'a'})
			p.write(command("PING", "\x00\x00"))
			p.want(command("PONG", ""))
			p.write([]byte{0, 1, 'b'})
			p.nc.Close()
		}()
		frames, err := c.Read()
		if err != nil || string(bytes.Join(frames, []byte("|"))) != "a|b" {
			t.Errorf("%q, %v", frames, err)
		}
		if _, err := c.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("error %v", err)
		}
	})
}

// Own heartbeats go out while nothing comes and while much comes; a peer that
// answers stays, one that falls silent is given up after Silence.
func TestHeartbeatFindsASilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := shake(t, zmtp.Config{Heartbeat: time.Second, Silence: 3 * time.Second}, 1)
		defer c.Close()
		began := time.Now()
		ping := command("PING", "\x00\x1e") // 30 tenths of a second
		var pings []time.Duration
		go func() {
			for have := make([]byte, len(ping)); ; {
				if _, err := io.ReadFull(p.nc, have); err != nil {
					return
				}
				if !bytes.Equal(have, ping) {
					t.Errorf("peer read %x, want %x", have, ping)
				}
				if pings = append(pings, time.Since(began)); len(pings) <= 2 {
					p.write(command("PONG", ""))
				}
			}
		}()
		go func() {
			time.Sleep(2050 * time.Millisecond)
			for range 20 { // a busy publisher is pinged all the same
				p.write([]byte{0, 0})
				time.Sleep(100 * time.Millisecond)
			}
		}()
		for range 20 {
			if _, err := c.Read(); err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.Read()
		if !errors.Is(err, zmtp.ErrSilent) || !strings.Contains(err.Error(), "no answer to PING") {
			t.Errorf("error %v", err)
		}
		// The last message came at 3.95 s.
		if took := time.Since(began); took < 6950*time.Millisecond || took > 7100*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		p.nc.Close()
		synctest.Wait()
		want := []time.Duration{1, 2, 3, 4, 5, 6, 7}
		for i, at := range pings {
			if i == len(want) || at < want[i]*time.Second || at > want[i]*time.Second+100*time.Millisecond {
				t.Fatalf("pings at %v", pings)
			}
		}
		if len(pings) < 6 {
			t.Errorf("pings at %v", pings)
		}
	})
}

func TestOldPeerIsNotPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := shake(t, zmtp.Config{Heartbeat: time.Second, Silence: 3 * time.Second}, 0)
		defer c.Close()
		go func() {
			time.Sleep(time.Hour)
			p.write([]byte{0, 1, 'x'}) // would block behind a PING
		}()
		if frames, err := c.Read(); err != nil || len(frames) != 1 {
			t.Errorf("%q, %v", frames, err)
		}
		if _, minor := c.Peer(); minor != 0 {
			t.Errorf("minor %d", minor)
		}
	})
}

// A peer that promised in its PING to speak within a time, and does not, is
// given up then.
func TestPeersTimeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := shake(t, zmtp.Config{}, 1)
		defer c.Close()
		began := time.Now()
		go func() {
			p.write(command("PING", "\x00\x05"))
			p.want(command("PONG", ""))
			time.Sleep(400 * time.Millisecond)
			p.write(command("PING", "\x00\x14"))
			p.want(command("PONG", ""))
		}()
		_, err := c.Read()
		if took := time.Since(began); !errors.Is(err, zmtp.ErrSilent) || took != 2500*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestPeerThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := shake(t, zmtp.Config{Write: time.Second}, 1)
		defer c.Close()
		err := c.Subscribe("kv")
		if !errors.Is(err, zmtp.ErrSilent) || !strings.Contains(err.Error(), "does not take what is written") {
			t.Errorf("error %v", err)
		}
	})
}

func TestBadCommands(t *testing.T) {
	for name, bytes := range map[string]string{
		"PING without ttl":      "040504" + hex.EncodeToString([]byte("PING")),
		"PING of a long tail":   "041804" + hex.EncodeToString([]byte("PING0123456789abcdefghi")),
		"name cut off":          "04020941",
		"empty":                 "0400",
		"ERROR after handshake": "040c05" + hex.EncodeToString([]byte("ERROR\x05sorry")),
	} {
		t.Run(name, func(t *testing.T) {
			body, err := hex.DecodeString(bytes)
			if err != nil {
				t.Fatal(err)
			}
			c, err := zmtp.Handshake(says(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "PUB")), body), zmtp.Config{Type: zmtp.SUB})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(); !errors.Is(err, zmtp.ErrProtocol) {
				t.Errorf("error %v", err)
			}
		})
	}
}
