package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"adpdeck/router/model"
)

// Protocol is the websocket subprotocol; a peer that does not speak it is
// refused. Path is where a server answers.
const (
	Protocol = "adpdeck.v1"
	Path     = "/feed"
)

// Bounds of the wire.
const (
	// MaxMessageBytes is the longest message either side reads.
	MaxMessageBytes = 1 << 20
	// partBytes is where the server ends a part and begins the next.
	partBytes = 256 << 10
	// maxValues bounds the commas and opening brackets of one message, so that
	// decoding never takes much more memory than the message.
	maxValues = 1 << 16
	// Bounds of a snapshot while its parts are collected.
	maxSnapshotParts = 1024
	maxSnapshotBytes = 64 << 20
)

// The kinds of frame.
const (
	kindHello     = "hello"
	kindSnapshot  = "snapshot"
	kindChange    = "change"
	kindDecisions = "decisions"
	kindEvent     = "event"
	kindReply     = "reply"
	kindCommand   = "command"
	kindResync    = "resync"
)

type helloFrame struct {
	Kind     string `json:"kind"`
	Epoch    string `json:"epoch"`
	Role     string `json:"role"`
	Server   string `json:"server"`
	PeriodMs int64  `json:"period_ms"`
}

type snapshotFrame struct {
	Kind  string       `json:"kind"`
	Epoch string       `json:"epoch"`
	Seq   uint64       `json:"seq"`
	Part  int          `json:"part"`
	More  bool         `json:"more,omitempty"`
	State *model.State `json:"state"`
}

type changeFrame struct {
	Kind   string        `json:"kind"`
	Epoch  string        `json:"epoch"`
	Seq    uint64        `json:"seq"`
	Change *model.Change `json:"change"`
}

type decisionsFrame struct {
	Kind      string            `json:"kind"`
	Epoch     string            `json:"epoch"`
	Seq       uint64            `json:"seq"`
	LeftOut   uint64            `json:"left_out,omitempty"`
	Decisions []*model.Decision `json:"decisions,omitempty"`
	Settled   []model.Settled   `json:"settled,omitempty"`
}

type eventFrame struct {
	Kind   string        `json:"kind"`
	Epoch  string        `json:"epoch"`
	Seq    uint64        `json:"seq"`
	Events []model.Event `json:"events"`
}

type replyFrame struct {
	Kind  string       `json:"kind"`
	Reply *model.Reply `json:"reply"`
}

type commandFrame struct {
	Kind    string         `json:"kind"`
	Command *model.Command `json:"command,omitempty"`
}

// errDecode is wrapped by every complaint about the content of a message.
var errDecode = errors.New("damaged frame")

// decode reads one message into the struct of its kind. It returns nil and no
// error for a kind that it does not know. No input makes it panic or take much
// more memory than the message itself.
func decode(msg []byte) (any, error) {
	if err := checkShape(msg); err != nil {
		return nil, err
	}
	kind, err := kindOf(msg)
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindHello:
		return into(msg, &helloFrame{}, func(f *helloFrame) bool { return f.Epoch != "" && f.PeriodMs >= 0 })
	case kindSnapshot:
		return into(msg, &snapshotFrame{}, func(f *snapshotFrame) bool {
			return f.State != nil && f.Part > 0 && noNil(f.State.Convs)
		})
	case kindChange:
		return into(msg, &changeFrame{}, func(f *changeFrame) bool {
			return f.Change != nil && noNil(f.Change.Convs) && noNil(f.Change.Decisions)
		})
	case kindDecisions:
		return into(msg, &decisionsFrame{}, func(f *decisionsFrame) bool { return noNil(f.Decisions) })
	case kindEvent:
		return into(msg, &eventFrame{}, func(*eventFrame) bool { return true })
	case kindReply:
		return into(msg, &replyFrame{}, func(f *replyFrame) bool { return f.Reply != nil })
	case kindCommand:
		return into(msg, &commandFrame{}, func(f *commandFrame) bool { return f.Command != nil })
	case kindResync:
		return &commandFrame{Kind: kindResync}, nil
	default:
		return nil, nil
	}
}

func into[F any](msg []byte, f *F, whole func(*F) bool) (any, error) {
	if err := json.Unmarshal(msg, f); err != nil {
		return nil, fmt.Errorf("%w: %v", errDecode, err)
	}
	if !whole(f) {
		return nil, fmt.Errorf("%w: a field is missing or null", errDecode)
	}
	return f, nil
}

func noNil[T any](list []*T) bool {
	for _, p := range list {
		if p == nil {
			return false
		}
	}
	return true
}

// kindOf finds the kind without decoding twice: servers write it first.
func kindOf(msg []byte) (string, error) {
	if rest, ok := bytes.CutPrefix(msg, []byte(`{"kind":"`)); ok {
		if kind, _, ok := bytes.Cut(rest, []byte(`"`)); ok && !bytes.ContainsRune(kind, '\\') {
			return string(kind), nil
		}
	}
	var f struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(msg, &f); err != nil {
		return "", fmt.Errorf("%w: %v", errDecode, err)
	}
	return f.Kind, nil
}

// checkShape refuses a message that is too long or holds too many values. Both
// ends use it, so a server never sends what its client would refuse.
func checkShape(msg []byte) error {
	if len(msg) > MaxMessageBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", errDecode, len(msg), MaxMessageBytes)
	}
	if values(msg) > maxValues {
		return fmt.Errorf("%w: more than %d values", errDecode, maxValues)
	}
	return nil
}

// values counts the commas and opening brackets outside of strings.
func values(msg []byte) int {
	n, quoted := 0, false
	for i := 0; i < len(msg); i++ {
		switch msg[i] {
		case '"':
			quoted = !quoted
		case '\\':
			if quoted {
				i++
			}
		case ',', '{', '[':
			if !quoted {
				n++
			}
		}
	}
	return n
}
