package feed

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

func indexState(ranks int) *model.State {
	s := &model.State{At: time.Unix(5, 0).UTC(), Version: 3, Settings: model.DefaultSettings(), IndexTotals: &model.IndexTotals{
		Blocks: 7, EventsPerSec: 2.5, Shared: []model.SharedPrefix{{Hash: "5be01904", Tokens: 64, Ranks: 2, Hits: 9, LastAt: time.Unix(4, 0).UTC()}},
	}}
	for i := range ranks {
		s.Index = append(s.Index, model.IndexRank{Target: model.Target{Worker: "w0", Rank: i}, Feed: model.FeedLive, Device: i, Hit: 0.5, Reachable: 0.75, Agreed: 1})
	}
	s.Findings = []model.Finding{{Code: "silent", Target: model.Target{Worker: "w0", Rank: 1}, Message: "says nothing \u202e", Next: "look"}}
	return s
}

// TestIndexThroughTheWire: what a router says of its index arrives, whole or
// in parts, and changes replace what they name.
func TestIndexThroughTheWire(t *testing.T) {
	want := indexState(3000)
	var m Merger
	var parts *model.State
	snap := newSnapshot("e", 1, want)
	for more := true; more; {
		var msg []byte
		var err error
		if msg, more, err = snap.next(); err != nil {
			t.Fatal(err)
		}
		var f snapshotFrame
		if err := json.Unmarshal(msg, &f); err != nil {
			t.Fatal(err)
		}
		if parts == nil {
			parts = f.State
		} else {
			join(parts, f.State)
		}
	}
	m.Reset(parts)
	got := m.State()
	if !reflect.DeepEqual(got.Index, want.Index) || !reflect.DeepEqual(got.IndexTotals, want.IndexTotals) || !reflect.DeepEqual(got.Findings, want.Findings) {
		t.Fatalf("snapshot: %d rows, totals %+v, findings %+v", len(got.Index), got.IndexTotals, got.Findings)
	}
	row := want.Index[2]
	row.Device, row.Feed = 99, model.FeedGap
	for name, ch := range map[string]*model.Change{
		"row":      {Index: []model.IndexRank{row}},
		"totals":   {IndexTotals: &model.IndexTotals{Blocks: 8}},
		"findings": {FindingsChanged: true},
	} {
		before := m.State()
		msgs, leftOut, err := encodeChange("e", 2, ch)
		if err != nil || leftOut != 0 || len(msgs) != 1 {
			t.Fatalf("%s: %d messages, %d left out, %v", name, len(msgs), leftOut, err)
		}
		var f changeFrame
		if err := json.Unmarshal(msgs[0], &f); err != nil {
			t.Fatal(err)
		}
		m.Apply(f.Change)
		if before.Index[2].Device == 99 && name == "row" {
			t.Fatal("a published state was written")
		}
	}
	got = m.State()
	if got.Index[2] != row || len(got.Index) != 3000 || got.IndexTotals.Blocks != 8 || len(got.Findings) != 0 {
		t.Fatalf("changes: row %+v, totals %+v, findings %v", got.Index[2], got.IndexTotals, got.Findings)
	}
}

// TestFindingsFitOneMessage however long the foreign text in them is: they are
// replaced as a whole, so they may not be split over several.
func TestFindingsFitOneMessage(t *testing.T) {
	ch := &model.Change{FindingsChanged: true}
	for i := range model.MaxFindings {
		ch.Findings = append(ch.Findings, model.Finding{Code: "unreadable", Message: strings.Repeat("\x01", 2000), Next: fmt.Sprint(i)})
	}
	msgs, _, err := encodeChange("e", 1, ch)
	if err != nil || len(msgs) != 1 || len(msgs[0]) > MaxMessageBytes {
		t.Fatalf("%d messages, %v", len(msgs), err)
	}
	var f changeFrame
	if err := json.Unmarshal(msgs[0], &f); err != nil || len(f.Change.Findings) == 0 || f.Change.Findings[0].Next != "0" {
		t.Fatalf("%v", err)
	}
}
