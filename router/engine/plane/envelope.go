package plane

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// TopicKVEvents is the topic that adpdeck reads.
const TopicKVEvents = "kv-events"

// Limits of one message. Dynamo's own are far below: 128 events of 8,192
// blocks in all.
const (
	MaxMessageBytes = 16 << 20
	MaxTopicBytes   = 1024
)

const (
	frameVersion = 1
	headerBytes  = 5
)

// Envelope is one message of the plane.
type Envelope struct {
	// Publisher names the process that sent it, Sequence counts its messages.
	Publisher, Sequence uint64
	// PublishedAt is the publisher's wall clock, zero where not said.
	PublishedAt time.Time
	Topic       string
	// Payload is msgpack; it points into the message.
	Payload []byte
}

// ParseZMQ reads the frames of a ZMQ message. The envelope must name the same
// publisher, sequence and topic as the frames before it; the topic frame may be
// a longer, scoped one that ends with the envelope's.
func ParseZMQ(frames [][]byte) (Envelope, error) {
	if len(frames) != 4 || len(frames[1]) != 8 || len(frames[2]) != 8 {
		return Envelope{}, refuse(BadFrames, "%d frames; want topic, 8-byte publisher, 8-byte sequence and frame: is this the event plane, or an engine's own publisher?", len(frames))
	}
	frame := frames[3]
	if len(frame) < headerBytes {
		return Envelope{}, refuse(BadLength, "a frame of %d bytes has no header", len(frame))
	}
	if frame[0] != frameVersion {
		return Envelope{}, refuse(BadVersion, "frame version %d; %d is known", frame[0], frameVersion)
	}
	body := frame[headerBytes:]
	if said := binary.BigEndian.Uint32(frame[1:headerBytes]); uint64(said) != uint64(len(body)) {
		return Envelope{}, refuse(BadLength, "a frame that says %d bytes has %d", said, len(body))
	}
	e, err := ParseNATS(body)
	if err != nil {
		return Envelope{}, err
	}
	publisher, sequence := binary.BigEndian.Uint64(frames[1]), binary.BigEndian.Uint64(frames[2])
	if e.Publisher != publisher || e.Sequence != sequence {
		return Envelope{}, refuse(Mismatch, "the frames say publisher %d, message %d, the envelope %d, %d", publisher, sequence, e.Publisher, e.Sequence)
	}
	if topic := string(frames[0]); topic != "" && e.Topic != topic && !strings.HasSuffix(topic, "."+e.Topic) {
		return Envelope{}, refuse(Mismatch, "the topic frame says %.80q, the envelope %.80q", topic, e.Topic)
	}
	return e, nil
}

// ParseNATS reads a NATS message: the bare envelope.
func ParseNATS(data []byte) (Envelope, error) {
	var e Envelope
	if len(data) > MaxMessageBytes {
		return e, refuse(BadLength, "a message of %d bytes, over the limit of %d", len(data), MaxMessageBytes)
	}
	var has struct{ publisher, sequence, topic, payload bool }
	rest, err := object(data, func(key string, v []byte) (err error) {
		switch key {
		case "publisher_id":
			has.publisher = true
			e.Publisher, err = unsigned(key, v)
		case "sequence":
			has.sequence = true
			e.Sequence, err = unsigned(key, v)
		case "published_at":
			e.PublishedAt, err = millis(key, v)
		case "topic":
			has.topic = true
			e.Topic, err = str(key, v, MaxTopicBytes)
		case "payload":
			has.payload = true
			e.Payload, err = bin(key, v)
		}
		return err
	})
	switch {
	case err != nil:
		return Envelope{}, err
	case len(rest) > 0:
		return Envelope{}, refuse(BadMsgpack, "%d bytes after the envelope", len(rest))
	case !has.publisher || !has.sequence || !has.topic || !has.payload:
		return Envelope{}, refuse(BadField, "an envelope without publisher_id, sequence, topic or payload")
	}
	return e, nil
}

// Subject is the NATS subject of a topic: of a component, or of one endpoint
// of it where endpoint is not empty. Segments are percent-encoded as Dynamo
// does it, all but letters, digits, - and _.
func Subject(namespace, component, endpoint, topic string) string {
	s := "namespace." + segment(namespace) + ".component." + segment(component)
	if endpoint != "" {
		s += ".endpoint." + segment(endpoint)
	}
	return s + "." + segment(topic)
}

func segment(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return b.String()
}

func millis(key string, v []byte) (time.Time, error) {
	if msgp.IsNil(v) {
		return time.Time{}, nil
	}
	ms, err := unsigned(key, v)
	if err != nil || ms > 1<<50 {
		return time.Time{}, err
	}
	return time.UnixMilli(int64(ms)).UTC(), nil
}
