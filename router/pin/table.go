package pin

import (
	"slices"
	"time"

	"adpdeck/router/model"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Note says who tied a conversation to its target, when, under which version
// and why. It is never written after it was made.
type Note struct {
	By      string
	At      time.Time
	Version uint64
	Reason  string
}

// Binding is where a conversation goes. The zero Binding, with Source PinNone,
// is no binding.
type Binding struct {
	Target model.Target
	Source model.PinKind // PinAuto or PinMigrated
	Note   *Note         // who migrated it; nil for PinAuto
}

// Entry is one binding with its conversation.
type Entry struct {
	Key     model.ConvKey
	Binding Binding
}

// Table is the LRU of bindings: at most Size of them, the oldest dropped
// first. Recency is that of the engine tier: a look-up does not touch it, a
// record does.
type Table struct {
	lru      *simplelru.LRU[model.ConvKey, Binding]
	size     int
	onChange func(key model.ConvKey, before, after Binding)
	dropped  []Entry
	keep     bool // collect dropped entries
}

// NewTable returns an empty table of at most size bindings; a size below 1
// means 1, as upstream clamps it. onChange, if not nil, is called after every
// change of what a conversation is bound to, drops included.
func NewTable(size int, onChange func(key model.ConvKey, before, after Binding)) *Table {
	if onChange == nil {
		onChange = func(model.ConvKey, Binding, Binding) {}
	}
	t := &Table{size: max(1, size), onChange: onChange}
	t.lru = t.newLRU()
	return t
}

func (t *Table) newLRU() *simplelru.LRU[model.ConvKey, Binding] {
	l, err := simplelru.NewLRU(t.size, t.evicted)
	if err != nil {
		panic(err) // the size is at least 1: cannot happen
	}
	return l
}

func (t *Table) evicted(key model.ConvKey, b Binding) {
	if t.keep {
		t.dropped = append(t.dropped, Entry{key, b})
	}
	t.onChange(key, b, Binding{})
}

// Get returns the binding of key without touching its recency.
func (t *Table) Get(key model.ConvKey) (Binding, bool) { return t.lru.Peek(key) }

// Set binds key and makes it the newest. A binding without a source removes.
// It returns the bindings that the size pushed out, oldest first.
func (t *Table) Set(key model.ConvKey, b Binding) (dropped []Entry) {
	if b.Source == model.PinNone {
		t.Remove(key)
		return nil
	}
	before, _ := t.lru.Peek(key)
	t.dropped, t.keep = nil, true
	t.lru.Add(key, b)
	t.keep = false
	if before != b {
		t.onChange(key, before, b)
	}
	return t.dropped
}

// record is Set for the hot path: it keeps no list of what was dropped.
func (t *Table) record(key model.ConvKey, b Binding) {
	before, _ := t.lru.Peek(key)
	t.lru.Add(key, b)
	if before != b {
		t.onChange(key, before, b)
	}
}

// Remove forgets the binding of key and reports whether there was one.
func (t *Table) Remove(key model.ConvKey) bool { return t.lru.Remove(key) }

// Len counts the bindings, Size is their bound.
func (t *Table) Len() int { return t.lru.Len() }

// Size returns the most bindings that the table holds.
func (t *Table) Size() int { return t.size }

// Resize changes the bound, at least 1, and returns the bindings that no
// longer fit, oldest first.
func (t *Table) Resize(size int) (dropped []Entry) {
	t.size = max(1, size)
	t.dropped, t.keep = nil, true
	t.lru.Resize(t.size)
	t.keep = false
	return t.dropped
}

// Restore puts dropped bindings back as the oldest ones, in their order. A
// conversation that has been bound again meanwhile keeps its newer binding,
// and only as many come back as there is room for, the newest of them. It
// rebuilds the table, so its cost is that of all bindings.
func (t *Table) Restore(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	var back []Entry
	seen := make(map[model.ConvKey]bool, len(entries))
	for _, e := range slices.Backward(entries) { // of two for one conversation the newer counts
		if !seen[e.Key] && !t.lru.Contains(e.Key) && e.Binding.Source != model.PinNone {
			seen[e.Key] = true
			back = append(back, e)
		}
	}
	slices.Reverse(back)
	if over := len(back) + t.lru.Len() - t.size; over > 0 {
		back = back[min(over, len(back)):]
	}
	if len(back) == 0 {
		return
	}
	old := t.lru
	t.lru = t.newLRU()
	for _, e := range back {
		t.lru.Add(e.Key, e.Binding)
	}
	for _, k := range old.Keys() {
		b, _ := old.Peek(k)
		t.lru.Add(k, b)
	}
	for _, e := range back {
		t.onChange(e.Key, Binding{}, e.Binding)
	}
}

// Entries returns all bindings, oldest first.
func (t *Table) Entries() []Entry {
	out := make([]Entry, 0, t.lru.Len())
	for _, k := range t.lru.Keys() {
		b, _ := t.lru.Peek(k)
		out = append(out, Entry{k, b})
	}
	return out
}

// View is the table as one worker's conversation router sees it: an opaque
// string for the conversation (Encode), a rank for the target. Bindings of
// other workers do not exist in it.
type View struct {
	table  *Table
	worker string
}

// View returns the table as worker sees it.
func (t *Table) View(worker string) *View { return &View{table: t, worker: worker} }

// Get returns the rank that conv is bound to at this worker, without touching
// its recency. A binding to the worker alone leaves the rank open.
func (v *View) Get(conv string) (rank int, ok bool) {
	key, ok := Decode(conv)
	if !ok {
		return 0, false
	}
	b, ok := v.table.lru.Peek(key)
	if !ok || b.Target.Worker != v.worker || b.Target.Rank == model.NoRank {
		return 0, false
	}
	return b.Target.Rank, true
}

// Record binds conv to rank at this worker and makes it the newest. Recording
// the rank that it is bound to keeps the binding's source. A binding to another
// worker was made by an operator after the request had been sent here: it
// stands.
func (v *View) Record(conv string, rank int) {
	key, ok := Decode(conv)
	if !ok {
		return
	}
	b, ok := v.table.lru.Peek(key)
	switch {
	case !ok || (b.Target.Worker == v.worker && b.Target.Rank != rank):
		b = Binding{Target: model.Target{Worker: v.worker, Rank: rank}, Source: model.PinAuto}
	case b.Target.Worker != v.worker:
		return
	}
	v.table.record(key, b)
}
