package zmtp

import (
	"encoding/binary"
	"time"
)

// AppendMessage appends one message of the given frames to p, as it goes over
// the wire.
func AppendMessage(p []byte, frames ...[]byte) []byte {
	for i, f := range frames {
		flags := byte(0)
		if i < len(frames)-1 {
			flags = flagMore
		}
		p = append(appendHeader(p, flags, len(f)), f...)
	}
	return p
}

func appendHeader(p []byte, flags byte, size int) []byte {
	if size > 255 {
		return binary.BigEndian.AppendUint64(append(p, flags|flagLong), uint64(size))
	}
	return append(p, flags, byte(size))
}

// appendCommand appends the command name, whose body is what data adds.
func appendCommand(p []byte, name string, data ...[]byte) []byte {
	size := 1 + len(name)
	for _, d := range data {
		size += len(d)
	}
	p = append(appendHeader(p, flagCommand, size), byte(len(name)))
	p = append(p, name...)
	for _, d := range data {
		p = append(p, d...)
	}
	return p
}

// splitCommand returns the name and the data of a command's body.
func splitCommand(body []byte) (name string, data []byte, err error) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, protocolError("a command of %d bytes whose name is cut off", len(body))
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

// AppendSubscribe appends the message that asks a publisher for all messages
// whose first frame begins with topic.
func AppendSubscribe(p []byte, topic string) []byte {
	p = append(appendHeader(p, 0, 1+len(topic)), 1)
	return append(p, topic...)
}

// appendPing appends a heartbeat that gives this side up after ttl of silence;
// the wire counts tenths of a second.
func appendPing(p []byte, ttl time.Duration) []byte {
	tenths := min(ttl/(100*time.Millisecond), 1<<16-1)
	return appendCommand(p, "PING", binary.BigEndian.AppendUint16(nil, uint16(tenths)))
}

const mostPingContext = 16 // bytes that a PONG must give back

// readPing returns what the peer's PING says.
func readPing(data []byte) (ttl time.Duration, context []byte, err error) {
	if len(data) < 2 {
		return 0, nil, protocolError("a PING without its time to live")
	}
	if len(data) > 2+mostPingContext {
		return 0, nil, protocolError("a PING with a context of %d bytes, %d are allowed", len(data)-2, mostPingContext)
	}
	return time.Duration(binary.BigEndian.Uint16(data)) * 100 * time.Millisecond, data[2:], nil
}
