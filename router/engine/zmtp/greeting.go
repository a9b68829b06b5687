package zmtp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

const (
	greetingBytes  = 64
	signatureBytes = 10
	// mostReadyBytes is the largest READY or ERROR; libzmq's have 25 to 41.
	mostReadyBytes = 4 << 10
)

// appendGreeting appends this side's greeting.
func appendGreeting(p []byte, minor byte) []byte {
	at := len(p)
	p = append(p, make([]byte, greetingBytes)...)
	g := p[at:]
	g[0], g[9], g[10], g[11] = 0xff, 0x7f, 3, minor
	copy(g[12:32], "NULL")
	return p
}

// checkGreeting refuses what came of a greeting as soon as it shows that the
// peer is another protocol or an old version, as such a peer sends no more.
func checkGreeting(g []byte) error {
	switch {
	case len(g) == 0:
		return nil
	case g[0] != 0xff:
		return protocolError("the peer begins with %q: is this the port of another protocol?", g[:min(len(g), 8)])
	case len(g) >= signatureBytes && g[9]&1 == 0:
		return protocolError("the peer speaks ZMTP 1; libzmq 4.0 or newer is needed there")
	case len(g) > signatureBytes && g[10] < 3:
		return protocolError("the peer speaks ZMTP %d; libzmq 4.0 or newer is needed there", max(g[10], 1))
	}
	return nil
}

// readGreeting returns the minor version of a whole greeting, after checking
// that its mechanism is NULL.
func readGreeting(g []byte) (minor byte, err error) {
	name := bytes.TrimRight(g[12:32], "\x00")
	if string(name) != "NULL" {
		return 0, fmt.Errorf("%w: the peer wants %s, only NULL is spoken; start the publisher without authentication, "+
			"or reach it through a tunnel", ErrMechanism, strconv.QuoteToASCII(string(name)))
	}
	return g[11], nil
}

// SocketType says what a socket is for, by the name it has on the wire.
type SocketType string

// The types that a [Conn] can be.
const (
	SUB    SocketType = "SUB"
	DEALER SocketType = "DEALER"
	PUB    SocketType = "PUB"
	ROUTER SocketType = "ROUTER"
)

// peers lists which types a socket may talk to; the first is the usual one.
func (t SocketType) peers() []SocketType {
	switch t {
	case SUB:
		return []SocketType{PUB, "XPUB"}
	case PUB:
		return []SocketType{SUB, "XSUB"}
	case DEALER:
		return []SocketType{ROUTER, DEALER, "REP"}
	case ROUTER:
		return []SocketType{DEALER, "REQ", ROUTER}
	}
	return nil
}

// appendReady appends this side's READY. As libzmq does, only types that a
// ROUTER may answer tell an identity, here the empty one.
func appendReady(p []byte, t SocketType) []byte {
	props := appendProperty(nil, "Socket-Type", string(t))
	if t == DEALER || t == ROUTER {
		props = appendProperty(props, "Identity", "")
	}
	return appendCommand(p, "READY", props)
}

func appendProperty(p []byte, name, value string) []byte {
	p = append(append(p, byte(len(name))), name...)
	p = binary.BigEndian.AppendUint32(p, uint32(len(value)))
	return append(p, value...)
}

// readReady returns the peer's socket type out of the body of the first command.
func readReady(body []byte, own SocketType) (SocketType, error) {
	name, data, err := splitCommand(body)
	if err != nil {
		return "", err
	}
	switch name {
	case "READY":
	case "ERROR":
		return "", refusedError(data)
	default:
		return "", protocolError("the command %s before READY", strconv.QuoteToASCII(name))
	}
	var peer SocketType
	for len(data) > 0 {
		var key, value []byte
		if key, value, data, err = cutProperty(data); err != nil {
			return "", err
		}
		if strings.EqualFold(string(key), "Socket-Type") {
			peer = SocketType(value)
		}
	}
	if peer == "" {
		return "", protocolError("a READY that tells no Socket-Type")
	}
	want := own.peers()
	for _, w := range want {
		if peer == w {
			return peer, nil
		}
	}
	return "", fmt.Errorf("%w: the peer is a %s socket, a %s talks to %s; is this the port of the right endpoint?",
		ErrSocketType, strconv.QuoteToASCII(string(peer)), own, want[0])
}

func cutProperty(data []byte) (name, value, rest []byte, err error) {
	n := int(data[0])
	if len(data) < 1+n+4 || n == 0 {
		return nil, nil, nil, protocolError("a READY with a property that is cut off")
	}
	name, data = data[1:1+n], data[1+n:]
	size := binary.BigEndian.Uint32(data)
	data = data[4:]
	if uint64(size) > uint64(len(data)) {
		return nil, nil, nil, protocolError("a READY with a property that is cut off")
	}
	return name, data[:size], data[size:], nil
}

// refusedError words the peer's ERROR command.
func refusedError(data []byte) error {
	reason := []byte("no reason given")
	if len(data) > 0 && int(data[0]) <= len(data)-1 && data[0] > 0 {
		reason = data[1 : 1+int(data[0])]
	}
	return protocolError("the peer refuses: %s", strconv.QuoteToASCII(string(reason)))
}
