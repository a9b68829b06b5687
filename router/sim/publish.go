package sim

import (
	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

const (
	// maxRun is the most blocks of one published event, maxPayload about how
	// long a batch may grow before another is begun, in bytes.
	maxRun     = 1024
	maxPayload = 1 << 20
)

// change is one block that came into a cache or left it.
type change struct {
	key     uint64
	parent  uint64 // of a stored block, meaningful when child
	removed bool
	child   bool
}

// diary lists what changed in a rank's cache since it was last published.
type diary struct {
	changes []change
	seq     uint64 // of the last batch published
}

func (d *diary) stored(key uint64, parent *block) {
	c := change{key: key}
	if parent != nil {
		c.parent, c.child = parent.key, true
	}
	d.changes = append(d.changes, c)
}

func (d *diary) removed(key uint64) {
	d.changes = append(d.changes, change{key: key, removed: true})
}

// publisher encodes what the ranks' caches went through, as engines do: array
// form on even ranks and map form on odd ones, the hashes of each third worker
// unsigned, signed and as bytes.
type publisher struct {
	*vocab
	batches, events, bytes int64

	// Scratch.
	payload []byte
	list    []event.Event
	hashes  []event.Hash
	ids     []uint32
}

// publish hands a worker's changes to the router, a batch for each rank that
// has any.
func (s *Sim) publish(w *worker) {
	p := s.publisher
	for i, k := range w.ranks {
		d := k.cache.diary
		if len(d.changes) == 0 {
			continue
		}
		enc := event.Encoder{Form: event.Form(i % 2), Hash: event.HashForm(w.at % 3)}
		for from := 0; from < len(d.changes); {
			from = p.collect(d.changes, from)
			at := s.Now()
			seconds := float64(at.UnixMicro()) / 1e6
			p.payload = enc.AppendBatch(p.payload[:0], seconds, i, p.list)
			p.batches++
			p.events += int64(len(p.list))
			p.bytes += int64(len(p.payload))
			s.router.Events(w.id, i, d.seq, p.payload)
			d.seq++
		}
		d.changes = d.changes[:0]
	}
}

// collect makes events of the changes from the given one on, until the batch is
// long enough, and returns where it stopped. Neighbours become one event where
// they can: a chain of stored blocks, a run of removed ones.
func (p *publisher) collect(changes []change, from int) int {
	p.list, p.hashes, p.ids = p.list[:0], p.hashes[:0], p.ids[:0]
	for size := 0; from < len(changes) && size < maxPayload; {
		to := from + 1
		first := &changes[from]
		most := min(len(changes), from+p.run())
		for to < most && changes[to].follows(&changes[to-1]) {
			to++
		}
		e := event.Event{Kind: event.Removed, Group: event.NoGroup, Rank: event.NoRank}
		h := len(p.hashes)
		for _, c := range changes[from:to] {
			p.hashes = append(p.hashes, event.Hash(c.key))
		}
		e.Hashes = p.hashes[h:len(p.hashes):len(p.hashes)]
		if !first.removed {
			e.Kind, e.BlockTokens = event.Stored, int32(p.blockTokens)
			e.HasParent, e.Parent = first.child, event.Hash(first.parent)
			t := len(p.ids)
			for _, c := range changes[from:to] {
				p.ids = p.append(p.ids, c.key)
			}
			e.Tokens = p.ids[t:len(p.ids):len(p.ids)]
		}
		size += 9*len(e.Hashes) + 3*len(e.Tokens)
		p.list = append(p.list, e)
		from = to
	}
	return from
}

// run is the most blocks of one event.
func (p *publisher) run() int { return max(1, min(maxRun, maxPayload/(3*p.blockTokens))) }

// follows reports whether c can stand in one event with the change before it.
func (c *change) follows(before *change) bool {
	if c.removed || before.removed {
		return c.removed && before.removed
	}
	return c.child && c.parent == before.key
}

// tell hands on what a step changed: to the router's index, how far answers
// have come where that counts, and in lockstep mode what is left to prefill.
func (s *Sim) tell() {
	for _, w := range s.workers {
		if !w.stepped {
			continue
		}
		w.stepped = false
		if s.publisher != nil {
			s.publish(w)
		}
		if s.router.TracksOutput() {
			s.progress(w)
		}
		if s.router.Mode() == model.ModeLockstep {
			s.report(w)
		}
	}
}

// progress tells the router of the answers that fill one more block.
func (s *Sim) progress(w *worker) {
	for _, k := range w.ranks {
		for _, r := range k.decode {
			generated := r.generated(k.tick)
			if n := (r.prompt + generated + s.cfg.BlockTokens - 1) / s.cfg.BlockTokens; n != r.blocks {
				r.blocks = n
				s.router.Output(r.id, generated)
			}
		}
	}
}
