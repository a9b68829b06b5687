package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
	"adpdeck/router/prefix/event"
)

// mirror is a Router that knows the ranks' caches from their events alone, as
// a slow and obvious index: which blocks each rank holds, by the engine's name,
// and the hash of each block's tokens.
type mirror struct {
	Router
	t      testing.TB
	mode   model.RouterMode
	dec    *event.Decoder
	batch  event.Batch
	hasher prefix.Hasher
	next   map[string]uint64
	held   map[string]map[uint64]bool
	locals map[uint64]uint64 // by engine name, as the events say
	asked  []model.Request
	told   int // reports
	forms  map[byte]int
}

func newMirror(t testing.TB, r Router, blockTokens int) *mirror {
	h, err := prefix.NewHasher(blockTokens, prefix.Seed("", ""))
	if err != nil {
		t.Fatal(err)
	}
	return &mirror{
		Router: r, t: t, dec: new(event.Decoder), hasher: h, next: map[string]uint64{},
		held: map[string]map[uint64]bool{}, locals: map[uint64]uint64{}, forms: map[byte]int{},
	}
}

func (m *mirror) Mode() model.RouterMode {
	if m.mode != "" {
		return m.mode
	}
	return m.Router.Mode()
}

func (m *mirror) Submit(r *model.Request) (model.Target, error) {
	keep := *r
	keep.Locals = slices.Clone(r.Locals)
	m.asked = append(m.asked, keep)
	return m.Router.Submit(r)
}

func (m *mirror) Report(string, int, int, []model.RankState, []model.RankLoad) { m.told++ }

func (m *mirror) Events(worker string, rank int, seq uint64, payload []byte) {
	name := fmt.Sprintf("%s/%d", worker, rank)
	if seq != m.next[name] {
		m.t.Errorf("%s published batch %d, want %d", name, seq, m.next[name])
	}
	m.next[name] = seq + 1
	if err := m.dec.Batch(payload, &m.batch); err != nil {
		m.t.Fatalf("%s: %v", name, err)
	}
	if m.batch.Seen == 0 || m.batch.Seen != len(m.batch.Events) || int(m.batch.Rank) != rank {
		m.t.Fatalf("%s: %d events, %d readable, rank %d", name, m.batch.Seen, len(m.batch.Events), m.batch.Rank)
	}
	if m.held[name] == nil {
		m.held[name] = map[uint64]bool{}
	}
	held := m.held[name]
	for i := range m.batch.Events {
		e := &m.batch.Events[i]
		switch e.Kind {
		case event.Stored:
			if e.HasParent && !held[uint64(e.Parent)] {
				m.t.Fatalf("%s stored blocks after %x, which it does not hold", name, e.Parent)
			}
			locals := m.hasher.Locals(nil, e.Tokens)
			for j, h := range e.Hashes {
				if held[uint64(h)] {
					m.t.Fatalf("%s stored %x twice", name, h)
				}
				held[uint64(h)] = true
				m.locals[uint64(h)] = uint64(locals[j])
			}
		case event.Removed:
			for _, h := range e.Hashes {
				if !held[uint64(h)] {
					m.t.Fatalf("%s removed %x, which it does not hold", name, h)
				}
				delete(held, uint64(h))
			}
		default:
			m.t.Fatalf("%s published %s", name, e.Kind)
		}
	}
}

// agree holds what the events told against the caches themselves.
func (m *mirror) agree(s *Sim) {
	m.t.Helper()
	for _, w := range s.workers {
		for i, k := range w.ranks {
			held := m.held[fmt.Sprintf("%s/%d", w.id, i)]
			if len(held) != k.cache.resident {
				m.t.Fatalf("%s/%d holds %d blocks, its events say %d", w.id, i, k.cache.resident, len(held))
			}
			for key := range held {
				if k.cache.index.get(key) < 0 {
					m.t.Fatalf("%s/%d does not hold %x", w.id, i, key)
				}
			}
		}
	}
}

// TestEventsTellTheCaches runs random traffic over small caches: at any time
// the events published so far describe exactly what each rank holds.
func TestEventsTellTheCaches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := small(rapid.IntRange(1, 4).Draw(rt, "ranks"), 8)
		cfg.Workers = rapid.IntRange(1, 4).Draw(rt, "workers")
		cfg.Blocks = rapid.IntRange(18, 60).Draw(rt, "blocks")
		cfg.KVEvents = true
		rows := randomRows(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 60).Draw(rt, "rows"))
		e, err := NewEngine(cfg.Specs(), settingsFor(model.PolicyKVAware, ""))
		if err != nil {
			rt.Fatal(err)
		}
		m := newMirror(t, e, cfg.BlockTokens)
		s := play(t, cfg, rows, m)
		for !s.Done() {
			if _, err := s.Advance(s.Elapsed()+50*time.Millisecond, 0); err != nil {
				rt.Fatal(err)
			}
			m.agree(s)
		}
		for i, q := range m.asked {
			full := rows[i].FullBlocks()
			if len(q.Locals) != len(full) || q.BlockTokens != 512 || q.ExpectedOutput != rows[i].OutputTokens {
				rt.Fatalf("request %d came with %d hashes of %d blocks: %+v", i, len(q.Locals), len(full), q)
			}
			for j, b := range full {
				if l, ok := m.locals[b]; ok && l != q.Locals[j] {
					rt.Fatalf("block %x hashes to %x in a request and to %x in an event", b, q.Locals[j], l)
				}
			}
		}
	})
}

// TestEventsChangeNothing plays the same traffic with and without events: no
// figure and no decision may differ.
func TestEventsChangeNothing(t *testing.T) {
	var reports [2]Report
	for i := range reports {
		cfg := small(3, 8)
		cfg.Workers, cfg.Blocks, cfg.KVEvents = 2, 40, i == 1
		e, err := NewEngine(cfg.Specs(), settingsFor(model.PolicyKVAware, ""))
		if err != nil {
			t.Fatal(err)
		}
		reports[i] = run(t, play(t, cfg, randomRows(5, 400), e))
	}
	reports[1].Index = nil
	if got, want := reports[1], reports[0]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("with events\n%+v\nwithout\n%+v", got, want)
	}
}

// TestLockstepIsToldEveryStep counts the reports of each mode.
func TestLockstepIsToldEveryStep(t *testing.T) {
	for mode, each := range map[model.RouterMode]bool{model.ModeLockstep: true, model.ModeKV: false} {
		cfg := small(2, 8)
		m := newMirror(t, NewRotate(cfg.Specs()), cfg.BlockTokens)
		m.mode = mode
		s := play(t, cfg, randomRows(1, 30), m)
		if err := s.Run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if steps := int(s.Report(0).Steps); (m.told >= steps) != each || !each && m.told != 0 {
			t.Errorf("%s: %d reports in %d steps", mode, m.told, steps)
		}
	}
}

// TestTokensOfBlocks checks that a prompt's lead is what its first block says,
// that hashes are remembered, and that ids stay within the vocabulary.
func TestTokensOfBlocks(t *testing.T) {
	for _, size := range []int{1, 16, 64, 65, 512} {
		v, err := newVocab(size)
		if err != nil {
			t.Fatal(err)
		}
		ids := v.append(nil, 7)
		if len(ids) != size || !slices.Equal(ids, v.append(nil, 7)) {
			t.Errorf("a block of %d tokens has %d, or others the second time", size, len(ids))
		}
		if slices.Max(ids) >= vocabulary || size > 1 && slices.Equal(ids, v.append(nil, 8)) {
			t.Errorf("blocks of %d tokens: ids up to %d, or two blocks alike", size, slices.Max(ids))
		}
		for i, l := range appendLead[int32](nil, 7, size) {
			if uint32(l) != ids[i] {
				t.Errorf("block size %d: token %d is %d in the lead, %d in the block", size, i, l, ids[i])
			}
		}
		want := uint64(v.hasher.Locals(nil, ids)[0])
		for _, when := range []string{"first", "again, remembered"} {
			if got := v.local(7); got != want {
				t.Errorf("block size %d hashes %s to %x, want %x", size, when, got, want)
			}
		}
	}
}

// TestLongRunsAreCut publishes more than fits into one event and one batch.
func TestLongRunsAreCut(t *testing.T) {
	v, err := newVocab(512)
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{vocab: v}
	var changes []change
	for i := range uint64(3000) {
		changes = append(changes, change{key: i + 1, parent: i, child: i > 0})
	}
	blocks, batches := 0, 0
	for from := 0; from < len(changes); batches++ {
		from = p.collect(changes, from)
		tokens := 0
		for _, e := range p.list {
			blocks += len(e.Hashes)
			tokens += len(e.Tokens)
		}
		if tokens*3 > 2*maxPayload {
			t.Errorf("a batch has %d tokens", tokens)
		}
	}
	if blocks != len(changes) || batches < 3 {
		t.Errorf("%d blocks in %d batches, want %d in 3 or more", blocks, batches, len(changes))
	}
}
