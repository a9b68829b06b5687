package feed

import (
	"testing"
	"time"

	"adpdeck/router/model"
)

func TestOutbox(t *testing.T) {
	ten := make([]byte, 10)
	o := newOutbox(3, 100)
	if _, fresh, _ := o.next(); !fresh {
		t.Fatal("a new outbox wants no snapshot")
	}
	if o.push(ten) != 0 {
		t.Error("overflow while a snapshot is due")
	}
	if n, bytes, _ := o.size(); n != 0 || bytes != 0 {
		t.Error("a message was queued before the snapshot that will hold it")
	}
	o.start()
	for range 3 {
		o.push(ten)
	}
	if !o.reply(ten) {
		t.Error("a reply was refused")
	}
	if over := o.push(ten); over != 1 {
		t.Errorf("overflow %d, want 1", over)
	}
	if n, bytes, dropped := o.size(); n != 1 || bytes != 10 || dropped != 4 {
		t.Errorf("%d messages of %d bytes, %d dropped; want the reply and 4", n, bytes, dropped)
	}
	if msg, _, _ := o.next(); len(msg) != 10 {
		t.Error("the reply does not come first")
	}
	if _, bytes, _ := o.size(); bytes != 10 {
		t.Errorf("%d bytes while the reply is written, want 10", bytes)
	}
	if _, fresh, _ := o.next(); !fresh {
		t.Error("no snapshot is due after an overflow")
	}
	o.start()
	o.begin(50) // a part of the snapshot is being written
	if o.push(make([]byte, 51)) != 2 {
		t.Error("two overflows in a row are not counted, or what is written is not")
	}
	o.start()
	if msg, fresh, _ := o.next(); msg != nil || fresh {
		t.Error("something to do after all is done")
	}
	if o.push(make([]byte, 101)) != 1 {
		t.Error("overflows count on although the queue had been empty")
	}
	if o.reply(make([]byte, 101)) {
		t.Error("a reply over the bound was taken")
	}
	o.end(CloseSlow, "slow")
	o.end(CloseGoingAway, "later")
	if _, _, end := o.next(); end == nil || end.code != CloseSlow {
		t.Errorf("closing %+v, want the first", end)
	}
}

func TestBucket(t *testing.T) {
	b := bucket{rate: 20, burst: 40}
	now := time.Unix(0, 0)
	taken := 0
	for range 100 {
		if b.take(now) {
			taken++
		}
	}
	if taken != 40 {
		t.Errorf("%d at once, want the burst of 40", taken)
	}
	for i := range 1_000 { // a second in a thousand steps
		if b.take(now.Add(time.Duration(i+1) * time.Millisecond)) {
			taken++
		}
	}
	if taken < 59 || taken > 60 {
		t.Errorf("%d after a second, want 60", taken)
	}
	if b.take(now.Add(-time.Hour)) {
		t.Error("a clock set back gave a token")
	}
}

func TestBackoff(t *testing.T) {
	const least, most = time.Second, 8 * time.Second
	tests := map[string]struct {
		attempt int
		r       float64
		want    time.Duration
	}{
		"least":       {attempt: 1, r: 0, want: least},
		"first":       {attempt: 1, r: 0.5, want: 1500 * time.Millisecond},
		"second":      {attempt: 2, r: 0.5, want: 2500 * time.Millisecond},
		"at the most": {attempt: 9, r: 1, want: most},
		"forever":     {attempt: 1 << 40, r: 1, want: most},
		"zero":        {attempt: 0, r: 1, want: 2 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := backoff(tt.attempt, least, most, tt.r); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestLinkStates(t *testing.T) {
	now := time.Unix(1_000, 0)
	at := func(age time.Duration) time.Time { return now.Add(-age) }
	tests := map[string]struct {
		link        Link
		slow, stale bool
	}{
		"live":                {link: Link{Phase: PhaseLive, Period: time.Second, LastFrame: at(2 * time.Second)}},
		"slow":                {link: Link{Phase: PhaseLive, Period: time.Second, LastFrame: at(2001 * time.Millisecond)}, slow: true},
		"silent":              {link: Link{Phase: PhaseLive, Period: time.Second, LastFrame: at(3001 * time.Millisecond)}, slow: true, stale: true},
		"lost":                {link: Link{Phase: PhaseLost, Period: time.Second, LastFrame: now}, stale: true},
		"connecting":          {link: Link{Phase: PhaseConnecting}},
		"replay":              {link: Link{Phase: PhaseReplay, Period: time.Second, LastFrame: at(time.Hour)}},
		"replay after damage": {link: Link{Phase: PhaseReplay, Err: "line 3 is damaged"}, stale: true},
		"replay at its end":   {link: Link{Phase: PhaseReplay, Err: "ended", Replay: Replay{Ended: true}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if slow, stale := tt.link.Slow(now), tt.link.Stale(now); slow != tt.slow || stale != tt.stale {
				t.Errorf("slow %v, stale %v", slow, stale)
			}
		})
	}
}

func TestSentIDs(t *testing.T) {
	var s sentIDs
	for id := range uint64(3 * model.MaxDecisions) {
		s.add(id + 1)
	}
	if len(s.set) != model.MaxDecisions || s.has(1) || !s.has(3*model.MaxDecisions) || !s.has(2*model.MaxDecisions+1) {
		t.Errorf("%d held", len(s.set))
	}
}
