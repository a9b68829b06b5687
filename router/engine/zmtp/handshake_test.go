package zmtp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/engine/zmtp"
)

// canned is a peer that has said all it will say; what is written to it is lost.
type canned struct {
	net.Conn
	r io.Reader
}

func (c canned) Read(p []byte) (int, error)       { return c.r.Read(p) }
func (c canned) Write(p []byte) (int, error)      { return len(p), nil }
func (c canned) Close() error                     { return nil }
func (c canned) RemoteAddr() net.Addr             { return nil }
func (c canned) SetDeadline(time.Time) error      { return nil }
func (c canned) SetReadDeadline(time.Time) error  { return nil }
func (c canned) SetWriteDeadline(time.Time) error { return nil }

func says(parts ...[]byte) canned { return canned{r: bytes.NewReader(bytes.Join(parts, nil))} }

func greeting(major, minor byte, mechanism string) []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xff, 0x7f, major, minor
	copy(g[12:32], mechanism)
	return g
}

func command(name, data string) []byte {
	body := append([]byte{byte(len(name))}, name+data...)
	return append([]byte{4, byte(len(body))}, body...)
}

func property(name, value string) string {
	return string(rune(len(name))) + name + "\x00\x00\x00" + string(rune(len(value))) + value
}

func TestHandshake(t *testing.T) {
	null := greeting(3, 1, "NULL")
	pub := command("READY", property("Socket-Type", "PUB"))
	tests := map[string]struct {
		peer []byte
		is   error
		says string
	}{
		"3.1":                  {peer: append(null, pub...)},
		"3.0":                  {peer: append(greeting(3, 0, "NULL"), pub...)},
		"a later version":      {peer: append(greeting(4, 2, "NULL"), pub...)},
		"XPUB":                 {peer: append(null, command("READY", property("Socket-Type", "XPUB"))...)},
		"names in other case":  {peer: append(null, command("READY", property("socket-type", "PUB"))...)},
		"further properties":   {peer: append(null, command("READY", property("X-Note", "hi")+property("Socket-Type", "PUB")+property("Identity", ""))...)},
		"nothing":              {is: io.ErrUnexpectedEOF, says: "closed the connection before its greeting"},
		"HTTP":                 {peer: []byte("HTTP/1.1 400 Bad Request\r\n"), is: zmtp.ErrProtocol, says: `begins with "HTTP/1.1": is this the port of another protocol?`},
		"ZMTP 1":               {peer: []byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x00"), is: zmtp.ErrProtocol, says: "speaks ZMTP 1"},
		"ZMTP 2":               {peer: greeting(1, 0, "")[:12], is: zmtp.ErrProtocol, says: "libzmq 4.0 or newer"},
		"greeting cut off":     {peer: null[:40], is: io.ErrUnexpectedEOF},
		"PLAIN":                {peer: greeting(3, 1, "PLAIN"), is: zmtp.ErrMechanism, says: `wants "PLAIN", only NULL is spoken`},
		"mechanism of garbage": {peer: greeting(3, 1, "\x1b[2J"), is: zmtp.ErrMechanism, says: `"\x1b[2J"`},
		"no READY":             {peer: null, is: io.ErrUnexpectedEOF, says: "before READY"},
		"message first":        {peer: append(null, 0, 1, 1), is: zmtp.ErrProtocol, says: "a message before READY"},
		"PING first":           {peer: append(null, command("PING", "\x00\x00")...), is: zmtp.ErrProtocol, says: `the command "PING" before READY`},
		"ERROR":                {peer: append(null, command("ERROR", "\x04nope")...), is: zmtp.ErrProtocol, says: `refuses: "nope"`},
		"ERROR without reason": {peer: append(null, command("ERROR", "")...), is: zmtp.ErrProtocol, says: "no reason given"},
		"no type":              {peer: append(null, command("READY", "")...), is: zmtp.ErrProtocol, says: "no Socket-Type"},
		"wrong type":           {peer: append(null, command("READY", property("Socket-Type", "ROUTER"))...), is: zmtp.ErrSocketType, says: `"ROUTER" socket, a SUB talks to PUB`},
		"property cut off":     {peer: append(null, command("READY", "\x0bSocket-Type\x00\x00\x00\x09PUB")...), is: zmtp.ErrProtocol, says: "cut off"},
		"property no length":   {peer: append(null, command("READY", "\x0bSocket")...), is: zmtp.ErrProtocol, says: "cut off"},
		"property too long":    {peer: append(null, command("READY", "\x0bSocket-Type\xff\xff\xff\xffPUB")...), is: zmtp.ErrProtocol, says: "cut off"},
		"empty command":        {peer: append(null, 4, 0), is: zmtp.ErrProtocol, says: "name is cut off"},
		"huge READY":           {peer: append(null, 6, 0, 0, 0, 0, 0, 1, 0, 0), is: zmtp.ErrTooLarge, says: "frame of 65536 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := zmtp.Handshake(says(tt.peer), zmtp.Config{Type: zmtp.SUB})
			if !errors.Is(err, tt.is) || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v saying %q", err, tt.is, tt.says)
			}
			if (err == nil) != (c != nil) {
				t.Error("want either a connection or an error")
			}
		})
	}
}

// A peer that takes the connection and says nothing, or says it drop by drop, is
// given up in time.
func TestHandshakeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer theirs.Close()
			for _, b := range greeting(3, 1, "NULL") {
				time.Sleep(100 * time.Millisecond)
				if _, err := theirs.Write([]byte{b}); err != nil {
					return
				}
			}
		}()
		go io.Copy(io.Discard, theirs)
		began := time.Now()
		_, err := zmtp.Dial(context.Background(), zmtp.Endpoint{Network: "tcp", Address: "engine:1"}, zmtp.Config{Type: zmtp.SUB}, once(ours))
		if !errors.Is(err, zmtp.ErrSilent) || !strings.Contains(err.Error(), "handshake with tcp://engine:1: peer is silent for 3s") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		<-ended
	})
}

func TestDialEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := zmtp.Dial(ctx, zmtp.Endpoint{}, zmtp.Config{Type: zmtp.SUB}, once(ours))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
	})
}

func TestParseEndpoint(t *testing.T) {
	tests := map[string]struct {
		want zmtp.Endpoint
		says string
	}{
		"tcp://10.0.0.1:5557":               {want: zmtp.Endpoint{Network: "tcp", Address: "10.0.0.1:5557"}},
		"tcp://[::1]:5557":                  {want: zmtp.Endpoint{Network: "tcp", Address: "[::1]:5557"}},
		"ipc:///run/kv":                     {want: zmtp.Endpoint{Network: "unix", Address: "/run/kv"}},
		"ipc://@abstract":                   {want: zmtp.Endpoint{Network: "unix", Address: "@abstract"}},
		"":                                  {says: "want tcp://HOST:PORT"},
		"localhost:5557":                    {says: "want tcp://HOST:PORT"},
		"tcp://*:5557":                      {says: `the host is "*", which is no host to dial`},
		"tcp://:5557":                       {says: "no host to dial"},
		"tcp://a;b:5557":                    {says: "no host to dial"},
		"tcp://host":                        {says: "want tcp://HOST:PORT"},
		"tcp://::1:5557":                    {says: "brackets"},
		"tcp://host:0":                      {says: `the port is "0"`},
		"tcp://host:65536":                  {says: `the port is "65536"`},
		"tcp://host:+1":                     {says: `the port is "+1"`},
		"inproc://kv":                       {says: `"inproc" is not spoken`},
		"ipc://":                            {says: "needs the path"},
		"ipc://" + strings.Repeat("x", 108): {says: "107 bytes"},
	}
	for in, tt := range tests {
		e, err := zmtp.ParseEndpoint(in)
		if e != tt.want || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %+v, %v; want %+v, %q", in, e, err, tt.want, tt.says)
		}
		if err == nil && e.String() != in {
			t.Errorf("%q becomes %q", in, e)
		}
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add(append(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "PUB"))...))
	f.Add(append(greeting(3, 0, "PLAIN"), 0, 0))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	for _, l := range recorded(f, "sub-pub") {
		f.Add(l.data)
	}
	f.Fuzz(func(t *testing.T, peer []byte) {
		c, err := zmtp.Handshake(says(peer), zmtp.Config{Type: zmtp.SUB, Limits: zmtp.Limits{FrameBytes: 1 << 16}})
		if (err == nil) != (c != nil) {
			t.Fatal("want either a connection or an error")
		}
		for err == nil {
			_, err = c.Read()
		}
	})
}
