package event

import (
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// ErrMessage is wrapped by every error about a message as a whole: nothing in
// it could be used.
var ErrMessage = errors.New("not a batch of kv events")

// Decoder reads engines' messages. The zero Decoder is ready for use; keeping
// one spares allocations, since it remembers adapter names and salts. It holds
// no state of the engine and may serve several feeds, one call at a time.
type Decoder struct {
	names map[string]string
	w     wire
	d     draft
}

// maxNames is how many distinct names are remembered before all are forgotten.
const maxNames = 1024

// intern makes a string of s without allocating for names seen before.
func (d *Decoder) intern(s []byte) string {
	if len(s) == 0 {
		return ""
	}
	if name, ok := d.names[string(s)]; ok {
		return name
	}
	if d.names == nil || len(d.names) >= maxNames {
		d.names = make(map[string]string)
	}
	name := string(s)
	d.names[name] = name
	return name
}

// Batch decodes one msgpack payload into b, whose memory it reuses:
//
//	[ts, [event…], data_parallel_rank?]          as engines send it
//	{ts, events, data_parallel_rank}             accepted too
//	event = ["BlockStored", fields…] | {"type": "BlockStored", fields…}
//
// An event that cannot be used is counted in b.Refused and the rest goes on. The
// error, which wraps ErrMessage, says that no event could be reached at all; it
// is counted as BadMessage. A message that ends early gives what came before.
func (d *Decoder) Batch(payload []byte, b *Batch) error {
	b.Reset()
	if len(payload) > MaxBatchBytes {
		return d.refuseMessage(b, Refusal{
			Reason: BadMessage, Field: "length", Value: int64(len(payload)), Want: MaxBatchBytes,
		})
	}
	d.w = wire{b: payload}
	defer func() { d.w.b, d.d = nil, draft{} }() // the payload is the caller's
	switch d.w.next() {
	case msgp.ArrayType:
		return d.batchList(b)
	case msgp.MapType:
		return d.batchMap(b)
	}
	d.w.miss("batch")
	return d.refuseMessage(b, d.w.bad)
}

func (d *Decoder) refuseMessage(b *Batch, r Refusal) error {
	if r.Got == "" && r.Reason == CutShort {
		r.Got = "the message ends early"
	}
	r.Reason = BadMessage
	b.Refused.Add(r)
	return fmt.Errorf("%w: %s %s", ErrMessage, r.Field, r.Got)
}

func (d *Decoder) batchList(b *Batch) error {
	n, ok := d.w.list("batch")
	if ok && n < 2 {
		ok = d.w.fail(BadMessage, "batch", "fewer than two elements")
	}
	if ok {
		b.Time, ok = d.w.float()
	}
	if !ok {
		return d.refuseMessage(b, d.w.bad)
	}
	if d.w.next() != msgp.ArrayType {
		d.w.miss("events")
		return d.refuseMessage(b, d.w.bad)
	}
	if d.events(b) && n > 2 {
		d.rank(b)
	}
	return nil
}

func (d *Decoder) batchMap(b *Batch) error {
	n, ok := d.w.dict("batch")
	if !ok {
		return d.refuseMessage(b, d.w.bad)
	}
	found := false
	for range n {
		key, ok := d.w.text("a batch's key")
		if !ok {
			if found {
				d.refuse(b)
				return nil
			}
			return d.refuseMessage(b, d.w.bad)
		}
		switch string(key) {
		case "events":
			ok = !found && d.w.next() == msgp.ArrayType && d.events(b)
			found = true
		case "ts", "timestamp":
			b.Time, ok = d.w.float()
		case "data_parallel_rank", "attn_dp_rank", "dp_rank": // the second is SGLang's name
			ok = d.rank(b)
		default:
			ok = d.w.skip()
		}
		if !ok {
			break
		}
	}
	if !found {
		return d.refuseMessage(b, Refusal{Field: "events", Got: "is missing"})
	}
	return nil
}

// rank reads the batch's rank. A rank that is no small number is as good as
// none, and counted.
func (d *Decoder) rank(b *Batch) bool {
	if d.w.isNil() {
		return true
	}
	at := d.w.b
	rank, ok := d.w.count("data_parallel_rank", 1<<20)
	if !ok {
		d.refuse(b)
		d.w.b = at
		return d.w.skip()
	}
	b.Rank = int32(rank)
	return true
}

// refuse counts the failure that the wire holds, for the event at hand.
func (d *Decoder) refuse(b *Batch) {
	r := d.w.bad
	r.Index = max(0, b.Seen-1)
	b.Refused.Add(r)
}

// events decodes the list of events; false says that the message ended in it.
func (d *Decoder) events(b *Batch) bool {
	n, ok := d.w.list("events")
	if !ok {
		d.refuse(b)
		return false
	}
	b.reserve(min(int(n), len(d.w.b)/leastEventBytes))
	for range n {
		at, m := d.w.b, b.mark()
		b.Seen++
		if d.event(b, b.add()) {
			continue
		}
		d.refuse(b)
		b.drop()
		b.rewind(m)
		d.w.b = at
		if !d.w.skip() {
			if d.w.bad.Reason != CutShort || b.Refused.Count(CutShort) == 0 {
				d.refuse(b)
			}
			return false
		}
	}
	return true
}

func (d *Decoder) event(b *Batch, e *Event) bool {
	d.d = draft{group: NoGroup}
	var ok bool
	switch d.w.next() {
	case msgp.ArrayType:
		ok = d.array(b)
	case msgp.MapType:
		ok = d.mapping(b)
	default:
		if len(d.w.b) == 0 {
			return d.w.fail(CutShort, "", "")
		}
		return d.w.fail(NotAnEvent, "", article(d.w.next()))
	}
	return ok && d.finish(b, e)
}
