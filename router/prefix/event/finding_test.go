package event

import (
	"strings"
	"testing"
	"time"
)

func find(fs []Finding, k FindingKind) *Finding {
	for i := range fs {
		if fs[i].Kind == k {
			return &fs[i]
		}
	}
	return nil
}

type patient struct {
	t   *testing.T
	f   *Feed
	now time.Time
	seq uint64
}

func newPatient(t *testing.T, cfg Config) *patient {
	if cfg.BlockTokens == 0 {
		cfg.BlockTokens = 16
	}
	f, err := NewFeed(cfg, func(*Batch) {})
	if err != nil {
		t.Fatal(err)
	}
	return &patient{t: t, f: f, now: time.Unix(5000, 0)}
}

func (p *patient) send(rank int, es ...Event) {
	p.f.Live(p.now, 1, p.seq, (&Encoder{Form: MapForm}).AppendBatch(nil, float64(p.seq), rank, es))
	p.seq++
}

func (p *patient) wait(d time.Duration) { p.now = p.now.Add(d) }

// An engine with each fault, under traffic for half a minute, then repaired:
// the finding is there in time, says what is wrong, and goes away by itself.
func TestFindingsComeAndGo(t *testing.T) {
	good := sixteen()
	with := func(change func(e *Event)) Event {
		e := sixteen()
		change(&e)
		return e
	}
	garbage := func(p *patient) {
		p.f.Live(p.now, 1, p.seq, []byte("not msgpack"))
		p.seq++
	}
	sends := func(es ...Event) func(p *patient) { return func(p *patient) { p.send(0, es...) } }
	cases := map[string]struct {
		fault func(p *patient)
		kind  FindingKind
		says  []string
	}{
		"silent from the start": {func(*patient) {}, FindSilent, []string{"never sent a block event", "base port + rank"}},
		"wrong block size": {
			sends(with(func(e *Event) { e.BlockTokens, e.Hashes = 32, e.Hashes[:8] })),
			FindBlockSize,
			[]string{"32 tokens long, the router's 16", "block size to 32"},
		},
		"unreadable":     {garbage, FindUnreadable, []string{"could not be read", "bad_message"}},
		"barren":         {sends(with(func(e *Event) { e.Spec = SpecOther })), FindBarren, []string{"none could be used", "non_main_attention_kind"}},
		"no rank of his": {func(p *patient) { p.send(9, good) }, FindRank, []string{"rank 9", "start rank"}},
		"unlearned":      {sends(with(func(e *Event) { e.Spec, e.Group = SpecUnsaid, 3 })), FindGroup, []string{"group 3"}},
		"new kind":       {sends(with(func(e *Event) { e.Spec = SpecUnknown })), FindUnknownWords, []string{"does not know"}},
		"contradiction":  {sends(with(func(e *Event) { e.Parent = e.Hashes[3] })), FindContradiction, []string{"self_reference"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t, Config{Ranks: 8})
			if fs := p.f.Findings(p.now); fs != nil || p.f.State(p.now) != None {
				t.Fatalf("before anything: %v", fs)
			}
			for range 31 { // a request a second
				p.f.Routed(p.now, 10)
				c.fault(p)
				p.wait(time.Second)
			}
			x := find(p.f.Findings(p.now), c.kind)
			if x == nil {
				t.Fatalf("no finding %s in %v; refused %s", c.kind, p.f.Findings(p.now), p.f.Refused().LastError())
			}
			for _, s := range c.says {
				if !strings.Contains(x.Text+" / "+x.Next, s) {
					t.Errorf("%q / %q does not say %q", x.Text, x.Next, s)
				}
			}
			if p.now.Sub(x.Since) > 32*time.Second || x.Count == 0 {
				t.Errorf("since %v, count %d", x.Since, x.Count)
			}
			for range 31 {
				p.f.Routed(p.now, 10)
				p.send(0, good)
				p.wait(time.Second)
			}
			if fs := p.f.Findings(p.now); len(fs) != 0 || p.f.State(p.now) != Live {
				t.Errorf("after the repair: %v, state %s", fs, p.f.State(p.now))
			}
		})
	}
}

func TestSilenceNeedsWork(t *testing.T) {
	p := newPatient(t, Config{})
	p.send(0, sixteen())
	for range 100 { // everything it is sent is in its cache
		p.f.Routed(p.now, 0)
		p.wait(time.Second)
	}
	if p.f.State(p.now) != Live || p.f.Findings(p.now) != nil {
		t.Errorf("an idle rank is %s: %v", p.f.State(p.now), p.f.Findings(p.now))
	}
	p.f.Routed(p.now, 4)
	p.wait(29 * time.Second)
	if p.f.State(p.now) != Live {
		t.Error("silent too soon")
	}
	p.wait(time.Second)
	x := find(p.f.Findings(p.now), FindSilent)
	if p.f.State(p.now) != Silent || x == nil || !strings.Contains(x.Text, "for 30 s") || x.Count != 4 {
		t.Errorf("%s, %+v", p.f.State(p.now), x)
	}
}

func TestSequenceFindings(t *testing.T) {
	p := newPatient(t, Config{})
	p.seq = 40
	p.send(0, sixteen())
	if x := find(p.f.Findings(p.now), FindJoinedLate); x == nil || x.Level != Note || x.Count != 40 {
		t.Errorf("joined late: %+v", x)
	}
	p.send(0, Event{Kind: Cleared})
	if fs := p.f.Findings(p.now); fs != nil {
		t.Errorf("an emptied cache has no unknown past: %v", fs)
	}
	p.seq += 3
	p.send(0, sixteen())
	if p.f.State(p.now) != Gap || p.f.Findings(p.now) != nil {
		t.Error("a gap of no age is no finding yet")
	}
	p.wait(time.Second)
	p.f.Tick(p.now)
	x := find(p.f.Findings(p.now), FindDoubt)
	if x == nil || x.Count != 3 || p.f.State(p.now) != Doubt || p.f.Stats().Wipes != 0 || !strings.Contains(x.Text, "in 120 s") {
		t.Errorf("%+v, %+v", x, p.f.Stats())
	}
	p.wait(2 * time.Minute)
	p.f.Tick(p.now)
	x = find(p.f.Findings(p.now), FindLost)
	if x == nil || x.Count != 3 || p.f.State(p.now) != Live || p.f.Stats().Wipes != 0 {
		t.Errorf("%+v, %+v", x, p.f.Stats())
	}
	p.seq = 0
	p.f.Live(p.now, 2, 0, (&Encoder{}).AppendBatch(nil, 9, 0, []Event{sixteen()}))
	if fs := p.f.Findings(p.now); len(fs) != 1 || fs[0].Kind != FindRestarted {
		t.Errorf("%v", fs)
	}
	p.wait(keepNews)
	if fs := p.f.Findings(p.now); fs != nil {
		t.Errorf("news go old: %v", fs)
	}
	q := newPatient(t, Config{Replay: true})
	q.send(0, sixteen())
	q.seq++
	q.send(0, sixteen())
	q.wait(3 * time.Second)
	if x := find(q.f.Findings(q.now), FindGap); x == nil || !strings.Contains(x.Text, "from 1 on are missing for 3 s") {
		t.Errorf("%+v", x)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{
		"rank": {Rank: -1}, "beyond": {Rank: 8, Ranks: 8}, "size": {BlockTokens: -16}, "format": {Format: 9},
	} {
		if _, err := NewFeed(cfg, func(*Batch) {}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestWhatIsToldLateIsOwedOnce: a request whose blocks are known at its end owes
// nothing that its rank has spoken of meanwhile.
func TestWhatIsToldLateIsOwedOnce(t *testing.T) {
	start := time.Unix(1000, 0)
	f, err := NewFeed(Config{BlockTokens: 16}, func(*Batch) {})
	if err != nil {
		t.Fatal(err)
	}
	silent := func(at time.Time) bool {
		for _, x := range f.Findings(at) {
			if x.Kind == FindSilent {
				return true
			}
		}
		return false
	}
	f.Live(start.Add(time.Second), 1, 0, nil)
	f.RoutedSince(start.Add(2*time.Second), start, 4)
	if silent(start.Add(time.Minute)) {
		t.Error("it has spoken since the request came")
	}
	f.RoutedSince(start.Add(3*time.Second), start.Add(2*time.Second), 0)
	f.RoutedSince(start.Add(4*time.Second), start.Add(2*time.Second), 4)
	if silent(start.Add(33*time.Second)) || !silent(start.Add(34*time.Second)) {
		t.Error("it has been silent for 30 s")
	}
}
