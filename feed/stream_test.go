package feed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

// feedAll applies messages in turn and returns the first error.
func feedAll(s *stream, msgs ...string) error {
	for _, m := range msgs {
		if _, err := s.apply([]byte(m)); err != nil {
			return err
		}
	}
	return nil
}

func TestSnapshotBounds(t *testing.T) {
	list := func(name, value string, n int) string {
		return fmt.Sprintf(`"%s":[%s%s]`, name, strings.Repeat(value+",", n-1), value)
	}
	part := func(n int, body string) string {
		return fmt.Sprintf(`{"kind":"snapshot","epoch":"e","seq":1,"part":%d,"more":true,"state":{%s}}`, n, body)
	}
	tests := map[string]struct{ list, value string }{
		"conversations": {"convs", `{}`}, "ranks": {"ranks", `{}`}, "workers": {"workers", `{}`},
		"revisions": {"revisions", `{}`}, "events": {"events", `{}`}, "parts": {"none", `1`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var s stream
			if err := feedAll(&s, `{"kind":"hello","epoch":"e"}`); err != nil {
				t.Fatal(err)
			}
			n, size := 1, 200
			if tt.list == "none" {
				size = 1
			}
			for ; n <= maxSnapshotParts+1; n++ {
				if _, err := s.apply([]byte(part(n, list(tt.list, tt.value, size)))); err != nil {
					if !errors.Is(err, errDecode) {
						t.Errorf("part %d: %v", n, err)
					}
					break
				}
			}
			if n > maxSnapshotParts+1 || s.parts != nil || s.synced {
				t.Errorf("%d parts were collected", n)
			}
		})
	}
}

// TestRankBound holds the ranks of a state that a server makes grow for ever.
func TestRankBound(t *testing.T) {
	var m Merger
	m.Reset(&model.State{})
	for i := range 4 {
		ch := &model.Change{}
		for k := range maxTargets / 2 {
			ch.Ranks = append(ch.Ranks, model.Rank{Target: model.Target{Worker: "w", Rank: i*maxTargets/2 + k}})
		}
		m.Apply(ch)
	}
	if n := len(m.State().Ranks); n != maxTargets {
		t.Errorf("%d ranks, want %d", n, maxTargets)
	}
}

// TestDecisionRing keeps published windows as they were.
func TestDecisionRing(t *testing.T) {
	var s stream
	s.hello.Epoch = "e"
	var windows []View
	for id := uint64(1); id <= 5*model.MaxDecisions; id++ {
		if err := s.decisions(&decisionsFrame{
			Epoch: "e", Decisions: []*model.Decision{{ID: 2 * id}}, Settled: []model.Settled{{Decision: 2 * id}, {Decision: 2*id + 1}},
		}); err != nil {
			t.Fatal(err)
		}
		if id%701 == 0 {
			var v View
			s.fill(&v)
			windows = append(windows, v)
		}
	}
	for i, v := range windows {
		last := uint64(i+1) * 701 * 2
		n := len(v.Decisions)
		if n != min(701*(i+1), model.MaxDecisions) || v.Decisions[n-1].ID != last || v.Decisions[0].ID != last-2*uint64(n-1) {
			t.Fatalf("window %d: %d decisions from %d to %d", i, n, v.Decisions[0].ID, v.Decisions[n-1].ID)
		}
		if len(v.Settled) != n || v.LeftOut != last/2-1 {
			t.Fatalf("window %d: %d settled, %d left out", i, len(v.Settled), v.LeftOut)
		}
	}
	if err := feedAll(&s, `{"kind":"decisions","epoch":"e","decisions":[{"id":4}]}`); err != nil || s.newest != 10*model.MaxDecisions {
		t.Errorf("an old decision: newest %d, error %v", s.newest, err)
	}
	if err := feedAll(&s, `{"kind":"hello","epoch":"f"}`); err != nil || len(s.ring)+len(s.settled) != 0 || s.newest != 0 {
		t.Errorf("a new epoch keeps %d decisions", len(s.ring))
	}
}

// TestReplyTooLong leaves out what does not fit, and says so.
func TestReplyTooLong(t *testing.T) {
	r := model.Reply{ID: "x", Accepted: true, Version: 7, What: "pin 4,096 conversations"}
	for range model.MaxCommandConvs {
		r.Items = append(r.Items, model.ItemResult{Conv: model.ConvKey{ID: strings.Repeat("\x00", model.MaxIDBytes)}})
	}
	f, err := decode(encodeReply(r))
	got, ok := f.(*replyFrame)
	if err != nil || !ok || got.Reply.ID != "x" || !got.Reply.Accepted || !strings.Contains(got.Reply.What, "4096 results left out") {
		t.Errorf("%+v, %v", f, err)
	}
	r = model.Reply{ID: "y", Refusal: &model.Refusal{Code: model.RefusedConflict, Message: strings.Repeat("x", MaxMessageBytes)}}
	f, err = decode(encodeReply(r))
	if got, ok = f.(*replyFrame); err != nil || !ok || got.Reply.Refusal.Code != model.RefusedConflict {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestUnencodable(t *testing.T) {
	far := time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC) // no RFC 3339 year
	if _, _, err := encodeChange("e", 1, &model.Change{At: far}); err == nil {
		t.Error("a change at a time that cannot be written was written")
	}
	msgs, leftOut, err := encodeChange("e", 1, &model.Change{Convs: []*model.Conv{{LastAt: far}, {Key: model.ConvKey{ID: "a"}}}})
	if err != nil || leftOut != 1 || len(msgs) != 1 || !json.Valid(msgs[0]) {
		t.Errorf("%d messages, %d left out, %v", len(msgs), leftOut, err)
	}
	if _, _, err := newSnapshot("e", 1, &model.State{At: far}).next(); err == nil {
		t.Error("a snapshot at a time that cannot be written was written")
	}
	long := make([]*model.Decision, 3)
	for i := range long {
		long[i] = &model.Decision{ID: uint64(i + 1), Why: strings.Repeat("x", 100_000)}
	}
	got, sent := encodeDecisions("e", 1, long, 5, nil)
	if len(got) != 1 || len(sent) != 1 || sent[0] != 3 || !bytes.Contains(got[0], []byte(`"left_out":7,`)) {
		t.Errorf("%d messages, sent %v: %.80s", len(got), sent, got[0])
	}
}

func FuzzPlay(f *testing.F) {
	for _, s := range []string{
		`{"us":1,"frame":{"kind":"hello","epoch":"e"}}` + "\n" + `{"us":2,"frame":{"kind":"snapshot","epoch":"e","seq":1,"part":1,"state":{}}}` + "\n",
		`{"us":-1,"dropped":3}`, "\n\n{}\n", `{"us":9e99}`, `{"us":1,"frame":null}`, `{"us":1,"frame":7}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		p := &Player{speed: 1, pos: 1 << 62, since: time.Now(), in: bufio.NewReaderSize(bytes.NewReader(file), maxLineBytes)}
		for {
			line, err := p.readLine()
			if err != nil && !errors.Is(err, errLongLine) {
				break
			}
			if !p.play(context.Background(), line) {
				t.Fatal("stopped")
			}
		}
		p.publish()
	})
}

func FuzzServerTake(f *testing.F) {
	for _, s := range []string{`{"kind":"command","command":{"id":"x","verb":"pin"}}`, `{"kind":"resync"}`, `{"kind":"command"}`, `{"kind":"command","command":{"id":7}}`, "x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		p := newPeer(NewServer(nil, ServerOptions{Epoch: "e"}))
		limit := bucket{rate: 1, burst: 2}
		for range 3 {
			p.take(msg, &limit)
		}
		if len(p.commands) > 2 {
			t.Error("the rate limit let more through")
		}
		for {
			out, _, end := p.box.next()
			if out == nil || end != nil {
				break
			}
			if f, err := decode(out); err != nil || f == nil {
				t.Errorf("answered %.100q: %v", out, err)
			}
		}
	})
}
