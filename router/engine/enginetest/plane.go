package enginetest

import (
	"time"

	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/prefix"
	"adpdeck/router/prefix/event"
)

// planeTopic is the topic of KV events on Dynamo's event plane.
const planeTopic = "kv-events"

// putRouterEvents publishes what a worker of a Dynamo frontend says of a rank's
// cache: a list of router events in the event plane's envelope.
func (k *rank) putRouterEvents(events []event.Event, now time.Time) {
	p := k.pub
	payload := msgp.AppendArrayHeader(nil, uint32(len(events)))
	for i := range events {
		payload = k.appendRouterEvent(payload, &events[i], k.eventID)
		k.eventID++
	}
	p.put(envelope(k.e.instance(k.worker), p.seq, now, planeTopic, payload))
}

// envelope is a payload as the event plane carries it.
func envelope(publisher, seq uint64, now time.Time, topic string, payload []byte) []byte {
	e := msgp.AppendMapHeader(nil, 5)
	e = msgp.AppendUint64(msgp.AppendString(e, "publisher_id"), publisher)
	e = msgp.AppendUint64(msgp.AppendString(e, "sequence"), seq)
	e = msgp.AppendInt64(msgp.AppendString(e, "published_at"), now.UnixMilli())
	e = msgp.AppendString(msgp.AppendString(e, "topic"), topic)
	return msgp.AppendBytes(msgp.AppendString(e, "payload"), payload)
}

func (k *rank) appendRouterEvent(p []byte, ev *event.Event, id uint64) []byte {
	p = msgp.AppendMapHeader(p, 3)
	p = msgp.AppendUint64(msgp.AppendString(p, "worker_id"), k.e.instance(k.worker))
	p = msgp.AppendString(msgp.AppendString(p, "storage_tier"), "device")
	p = msgp.AppendMapHeader(msgp.AppendString(p, "event"), 3)
	p = msgp.AppendUint64(msgp.AppendString(p, "event_id"), id)
	p = msgp.AppendInt(msgp.AppendString(p, "dp_rank"), k.number())
	p = msgp.AppendMapHeader(msgp.AppendString(p, "data"), 1)
	if ev.Kind == event.Removed {
		p = msgp.AppendMapHeader(msgp.AppendString(p, "removed"), 1)
		p = msgp.AppendArrayHeader(msgp.AppendString(p, "block_hashes"), uint32(len(ev.Hashes)))
		for _, h := range ev.Hashes {
			p = msgp.AppendUint64(p, uint64(h))
		}
		return p
	}
	p = msgp.AppendMapHeader(msgp.AppendString(p, "stored"), 2)
	p = msgp.AppendString(p, "parent_hash")
	if ev.HasParent {
		p = msgp.AppendUint64(p, uint64(ev.Parent))
	} else {
		p = msgp.AppendNil(p)
	}
	p = msgp.AppendArrayHeader(msgp.AppendString(p, "blocks"), uint32(len(ev.Hashes)))
	for i, local := range k.e.hasher.WithSeed(prefix.Seed(ev.LoRA, ev.Salt)).Locals(nil, ev.Tokens) {
		p = msgp.AppendMapHeader(p, 2)
		p = msgp.AppendUint64(msgp.AppendString(p, "block_hash"), uint64(ev.Hashes[i]))
		p = msgp.AppendUint64(msgp.AppendString(p, "tokens_hash"), uint64(local))
	}
	return p
}
