package enginetest

import (
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

const (
	// maxRun is the most blocks of one event, maxBatchTokens about how many token
	// ids a batch holds before another is begun.
	maxRun         = 512
	maxBatchTokens = 1 << 17
)

// sending is how a batch leaves.
type sending uint8

const (
	sendOnce  sending = iota
	sendNever         // lost on the way; a replay still has it
	sendTwice
	sendLate // after the next one
)

// parcel is a batch in the outbox.
type parcel struct {
	Batch
	how sending
}

// publisher numbers the batches of a rank, or of a Dynamo worker. It belongs to
// the engine's lock; what leaves goes through the outbox.
type publisher struct {
	e    *Engine
	at   int // Batch.Publisher
	seq  uint64
	lose int // batches still to be lost (Engine.DropBatches)
}

// put gives a payload its number and sends it, as the habits will have it.
func (p *publisher) put(payload []byte) {
	b := parcel{Batch: Batch{Publisher: p.at, Topic: p.e.topic(), Seq: p.seq, Payload: payload}}
	p.seq++
	h, nth := p.e.habits.Load(), func(every int) bool { return every > 0 && p.seq%uint64(every) == 0 }
	switch {
	case p.lose > 0:
		p.lose--
		b.how = sendNever
	case nth(h.DropEvery):
		b.how = sendNever
	case nth(h.ReorderEvery):
		b.how = sendLate
	case nth(h.DuplicateEvery):
		b.how = sendTwice
	}
	p.e.outbox = append(p.e.outbox, b)
}

// restart begins anew: another process, which knows nothing of the old batches.
func (p *publisher) restart() { p.seq, p.lose = 0, 0 }

// publish sends what changed in the rank's cache since it was last asked.
func (k *rank) publish(now time.Time) {
	diary := k.cache.diary
	k.cache.diary = nil
	h := k.e.habits.Load()
	if len(diary) == 0 || h.EventsSilent || h.EventsRank0Only && k.local > 0 {
		return
	}
	for len(diary) > 0 {
		var events []event.Event
		diary = k.collect(&events, diary)
		switch {
		case k.e.cfg.Kind == model.EngineDynamo:
			k.putRouterEvents(events, now)
			continue
		case k.e.trt != nil:
			k.e.trt.keep(k, events)
		}
		enc := encoder(k.e.cfg.Kind, h)
		rank := k.number()
		if h.NoBatchRank {
			rank = event.NoRank
		}
		k.pub.put(enc.AppendBatch(nil, float64(now.UnixMicro())/1e6, rank, events))
	}
}

// collect makes events of the first changes and returns the rest: a chain of
// stored blocks is one event, and so is a run of removed ones.
func (k *rank) collect(to *[]event.Event, diary []change) []change {
	size, room := k.e.cfg.BlockTokens, maxBatchTokens
	for len(diary) > 0 && room > 0 {
		n, first := 1, diary[0]
		for n < min(len(diary), maxRun) && follows(&diary[n], &diary[n-1]) {
			n++
		}
		e := event.Event{Kind: event.Removed, Group: event.NoGroup, Rank: event.NoRank}
		if k.e.cfg.Kind == model.EngineVLLM {
			e.Group, e.Spec = 0, event.SpecMain
		}
		if first.cleared {
			*to, diary = append(*to, event.Event{Kind: event.Cleared, Group: event.NoGroup, Rank: event.NoRank}), diary[1:]
			continue
		}
		for _, c := range diary[:n] {
			e.Hashes = append(e.Hashes, event.Hash(c.hash))
			e.Tokens = append(e.Tokens, c.tokens...)
		}
		if !first.removed {
			e.Kind, e.BlockTokens = event.Stored, int32(size)
			e.HasParent, e.Parent = first.child, event.Hash(first.parent)
			e.LoRA, e.Salt = first.lora, first.salt
		}
		room -= n * size
		*to = append(*to, e)
		diary = diary[n:]
	}
	return diary
}

// follows reports whether c can stand in one event with the change before it.
func follows(c, before *change) bool {
	if c.cleared || before.cleared {
		return false
	}
	if c.removed || before.removed {
		return c.removed && before.removed
	}
	return c.child && c.parent == before.hash
}

// encoder is the encoding of a kind's present release, or of the habits.
func encoder(kind model.EngineKind, h *Habits) event.Encoder {
	enc := event.Encoder{Fields: h.Fields}
	switch kind {
	case model.EngineVLLM:
		enc.Form = event.MapForm
	case model.EngineSGLang:
		enc.Hash = event.SignedHash
		if enc.Fields == 0 {
			enc.Fields = 6 // tag, hashes, parent, tokens, block size, LoRA, medium
		}
	case model.EngineTRTLLM:
		enc.Form, enc.Hash = event.MapForm, event.SignedHash
	}
	switch h.Form {
	case "array":
		enc.Form = event.ArrayForm
	case "map":
		enc.Form = event.MapForm
	}
	switch h.Hash {
	case "unsigned":
		enc.Hash = event.UnsignedHash
	case "signed":
		enc.Hash = event.SignedHash
	case "bytes":
		enc.Hash = event.BytesHash
	}
	return enc
}
