package index

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/fixture"
	"adpdeck/tui/view"
)

func sizes() [][2]int { return [][2]int{{40, 12}, {80, 24}, {120, 40}, {200, 60}} }

func on(w string, r int) func(*View, *view.Frame) {
	return func(v *View, _ *view.Frame) { v.Select(fixture.T(w, r)) }
}

// hostile is KV with names and errors from outside that try to break the screen.
func hostile() *model.State {
	s := fixture.KV()
	for i := range s.Index[:8] {
		s.Index[i].Target.Worker = "w\x1b[31m\n0"
		s.Index[i].LastError = "bad \x9b31m\u202e tag\r\n"
	}
	s.Findings = append(s.Findings, model.Finding{
		Target: s.Index[0].Target, Since: s.At.Add(-time.Minute), Message: "w\x1b]0;x\a sends 会話\u202e", Next: "look\tat\x00it",
	})
	return s
}

// doubtful is KV with a rank that lost batches for good.
func doubtful() *model.State {
	s := fixture.KV()
	s.Index[12].Feed, s.Index[12].Doubtful, s.Index[12].Unplaced = model.FeedDoubt, 412, 7
	s.Findings[1].Code, s.Findings[1].Message = "in_doubt", "2 batches were lost before number 76396, so matches may be too long; what is not told again loses its credit in 89 s"
	s.Findings[1].Next = "nothing to do; if it recurs, raise the publisher's queue, or give it a replay endpoint with a longer buffer"
	return s
}

// refusing is KV with requests that wait and others that were turned away.
func refusing() *model.State {
	s := fixture.KV()
	s.Totals.InQueue, s.Totals.Refused = 17, model.Refused{NoEligible: 3, Overloaded: 1_204, QueueFull: 88, NoRoom: 5, LeftQueue: 2}
	return s
}

func totalsOnly() *model.State {
	s := fixture.KV()
	s.Index, s.Findings = nil, nil
	return s
}

func TestFrames(t *testing.T) {
	for name, c := range map[string]struct {
		state *model.State
		then  func(*View, *view.Frame)
	}{
		"normal":   {fixture.KV(), on("w0", 0)},
		"lost":     {fixture.KV(), on("w0", 3)},
		"causes":   {fixture.KV(), on("w1", 1)},
		"guessed":  {fixture.KV(), on("w0", 7)},
		"gap":      {fixture.KV(), on("w1", 4)},
		"doubt":    {doubtful(), on("w1", 4)},
		"refusing": {refusing(), on("w0", 3)},
		"silent":   {fixture.KV(), on("w1", 6)},
		"unheard":  {fixture.KV(), on("w1", 7)},
		"hostile":  {hostile(), func(v *View, f *view.Frame) { v.Select(f.State.Index[0].Target) }},
		"stale":    {fixture.KV(), func(_ *View, f *view.Frame) { fixture.Lose(f) }},
		"empty":    {totalsOnly(), on("w0", 0)},
		"no_index": {fixture.Normal(), on("w0", 0)},
		"filtered": {fixture.KV(), func(v *View, _ *view.Frame) { v.SetFilter("feed:gap | feed:silent") }},
		"sorted":   {fixture.KV(), func(v *View, _ *view.Frame) { v.SortBy("lost") }},
		"lockstep": {fixture.Indexed(model.ModeLockstep), on("w0", 5)},
	} {
		for _, s := range sizes() {
			t.Run(fmt.Sprintf("%s_%dx%d", name, s[0], s[1]), func(t *testing.T) {
				f := fixture.Frame(c.state, s[0], s[1])
				v := New()
				v.Draw(f, s[0], s[1])
				c.then(v, f)
				golden.RequireEqual(t, fixture.Screen(v, f))
			})
		}
	}
}

func TestEnterShowsTheRanksDecisions(t *testing.T) {
	f := fixture.Frame(fixture.KV(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	on("w1", 4)(v, f)
	in, ok := v.Do(f, command.Open)
	if g, is := in.(view.Goto); !ok || !is || g.View != command.Decisions || g.Filter != "rank:w1/4" {
		t.Errorf("got %#v", in)
	}
	if got := v.CopyText(f); got != "w1/4" {
		t.Errorf("copied %q", got)
	}
}

func TestXResyncsTheSelectedRank(t *testing.T) {
	f := fixture.Frame(fixture.KV(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	on("w1", 6)(v, f)
	in, ok := v.Do(f, command.Resync)
	s, is := in.(view.Send)
	if !ok || !is || s.Command.Verb != model.VerbResync || s.Command.Target == nil || *s.Command.Target != fixture.T("w1", 6) {
		t.Errorf("got %#v", in)
	}
}

// In little room, or where nothing is shared, the detail has all of it.
func TestSharedPrefixesNeedRoom(t *testing.T) {
	for _, c := range []struct {
		w, h int
		none bool
		want int
	}{{120, 40, false, 3}, {200, 60, false, 5}, {80, 24, false, 0}, {120, 24, false, 0}, {120, 40, true, 0}} {
		s := fixture.KV()
		if c.none {
			s.IndexTotals.Shared = nil
		}
		f := fixture.Frame(s, c.w, c.h)
		text := fixture.Screen(New(), f)
		if strings.Contains(text, "Most shared prefixes") != (c.want > 0) {
			t.Errorf("%d×%d: shown or not\n%s", c.w, c.h, text)
		}
		n := 0
		for _, x := range s.IndexTotals.Shared {
			if strings.Contains(text, x.Hash) {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%d×%d: %d prefixes, want %d", c.w, c.h, n, c.want)
		}
	}
}

func TestFilters(t *testing.T) {
	f := fixture.Frame(fixture.KV(), 80, 24)
	for filter, want := range map[string]int{
		"feed:live": 12, "feed:gap": 1, "feed:silent": 1, "feed:none": 1, "feed:approximate": 1, "gaps>0": 1, "age>10": 1, "lost>10%": 2, "worker:w0": 8,
	} {
		v := New()
		v.Draw(f, 80, 20)
		v.SetFilter(filter)
		if got := len(v.list.Rows()); got != want {
			t.Errorf("%s: %d rows, want %d", filter, got, want)
		}
	}
}

// Points of the causes add up to what was lost.
func TestLossIsSplitWithoutRest(t *testing.T) {
	s := fixture.KV()
	for i := range s.Index {
		e := &entry{IndexRank: &s.Index[i]}
		sum := 0.0
		for _, c := range causes(e.Lost) {
			sum += points(e, c)
		}
		if want := 100 * lostShare(e); want == want && e.Lost.Sum() > 0 && (sum < want-1e-9 || sum > want+1e-9) {
			t.Errorf("%s: %v points of %v", e.Target, sum, want)
		}
	}
	one := &entry{IndexRank: &s.Index[3]}
	if got := lostText(one, 3).String(); got != "lost 9 load, 6 pins, 2 cap" {
		t.Errorf("got %q", got)
	}
}

// Each state of a feed has a word of its own.
func TestFeedWordsDiffer(t *testing.T) {
	seen := map[string]model.IndexFeed{}
	for _, feed := range []model.IndexFeed{model.FeedLive, model.FeedGap, model.FeedDoubt, model.FeedSilent, model.FeedNone, model.FeedApproximate, "new"} {
		e := &entry{IndexRank: &model.IndexRank{Feed: feed}}
		_, word := feedOf(e)
		say := sentence(e, time.Time{}).String()
		if o, twice := seen[word.String()]; twice || say == "" {
			t.Errorf("%s and %s are both %q", feed, o, word)
		}
		seen[word.String()] = feed
	}
}

func TestNoIndexSaysWhatToSet(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	text := fixture.Screen(New(), f)
	for _, want := range []string{"keeps no index in mode round_robin", ":set router_mode kv"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
