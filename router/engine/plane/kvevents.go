package plane

import (
	"slices"

	"github.com/tinylib/msgp/msgp"
)

// MaxEvents is how many events one payload may hold.
const MaxEvents = 1 << 16

// Events are the KV events of one worker in a payload.
type Events struct {
	Worker uint64
	// Count is their number, Ranks the ranks they name, rising.
	Count int
	Ranks []int
	// Payload is a msgpack list of them, undecoded, in the order sent. Where the
	// message had only this worker's it points into the message.
	Payload []byte
}

// KVEvents sorts the payload of TopicKVEvents, a list of router events or (from
// older workers) a single one, by worker, the first named first.
func KVEvents(payload []byte) ([]Events, error) {
	if msgp.NextType(payload) == msgp.MapType {
		payload = append([]byte{0x91}, payload...) // a list of one
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(payload)
	if err != nil {
		return nil, refuse(BadMsgpack, "a list of router events was expected: %v", err)
	}
	if n > MaxEvents {
		return nil, refuse(BadLength, "a list of %d events, over the limit of %d", n, MaxEvents)
	}
	var all []Events
	at := map[uint64]int{}
	var bodies [][][]byte
	for i := range n {
		worker, rank, after, err := head(rest)
		if err != nil {
			return nil, refuse(err.Reason, "event %d: %s", i, err.Detail)
		}
		k, there := at[worker]
		if !there {
			k = len(all)
			at[worker] = k
			all, bodies = append(all, Events{Worker: worker}), append(bodies, nil)
		}
		e := &all[k]
		e.Count++
		e.Ranks = append(e.Ranks, rank)
		bodies[k] = append(bodies[k], rest[:len(rest)-len(after)])
		rest = after
	}
	if len(rest) > 0 {
		return nil, refuse(BadMsgpack, "%d bytes after the events", len(rest))
	}
	for k := range all {
		slices.Sort(all[k].Ranks)
		all[k].Ranks = slices.Compact(all[k].Ranks)
	}
	if len(all) == 1 {
		all[0].Payload = payload
		return all, nil
	}
	for k := range all {
		all[k].Payload = slices.Concat(slices.Insert(bodies[k], 0, msgp.AppendArrayHeader(nil, uint32(all[k].Count)))...)
	}
	return all, nil
}

// head reads whose event is at the head of p, and gives what follows it.
func head(p []byte) (worker uint64, at int, rest []byte, bad *Refusal) {
	named := false
	rest, err := object(p, func(key string, v []byte) (err error) {
		switch key {
		case "worker_id":
			named = true
			worker, err = unsigned(key, v)
		case "event":
			_, err = object(v, func(key string, v []byte) (err error) {
				if key == "dp_rank" {
					at, err = rank(key, v)
				}
				return err
			})
		}
		return err
	})
	if err != nil {
		return 0, 0, nil, asRefusal(err)
	}
	if !named {
		return 0, 0, nil, refuse(BadField, "a router event without worker_id")
	}
	return worker, at, rest, nil
}
