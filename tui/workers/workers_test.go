package workers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/fixture"
	"adpdeck/tui/view"
)

func sizes() [][2]int { return [][2]int{{40, 12}, {80, 24}, {120, 40}, {200, 60}} }

func on(worker string) func(*View, *view.Frame) {
	return func(v *View, f *view.Frame) {
		if !v.Seek(f, view.Subject{Target: model.Target{Worker: worker, Rank: model.NoRank}}) {
			panic("no worker " + worker)
		}
	}
}

// pair is the two workers of the mock-up.
func pair() *model.State {
	s := fixture.Fleet()
	s.Workers = s.Workers[:2]
	return s
}

func none() *model.State {
	s := fixture.Fleet()
	s.Workers, s.Ranks, s.Convs, s.Index = nil, nil, nil, nil
	return s
}

func draining() *model.State {
	s := fixture.Fleet()
	for i := range s.Ranks {
		if s.Ranks[i].Target.Worker == "w1" {
			s.Ranks[i].Availability = model.Draining
		}
	}
	return s
}

// disagreeing is the fleet with an engine that was started otherwise than its
// settings say.
func disagreeing() *model.State {
	s := fixture.Fleet()
	s.Findings = append(s.Findings, model.Finding{
		Code: model.FindingEngineDisagrees, Target: fixture.T("w1", model.NoRank), Since: s.At.Add(-3 * time.Minute),
		Message: "KV blocks of a rank: 4,000 in the settings, 5,120 by its metrics; ranks: 8 in the settings, 16 by its metrics; tokens in a KV block: 16 in the settings, 32 by its events",
		Next:    "correct the settings file, or the engine's start; the settings count until then",
	})
	return s
}

func TestFrames(t *testing.T) {
	for name, c := range map[string]struct {
		state *model.State
		then  func(*View, *view.Frame)
	}{
		"normal":     {pair(), on("w0")},
		"fleet":      {fixture.Fleet(), on("w0")},
		"silent":     {fixture.Fleet(), on("w1")},
		"ignored":    {fixture.Fleet(), on("d0")},
		"picks":      {fixture.Fleet(), on("t0")},
		"dead":       {fixture.Fleet(), on("x0")},
		"simulated":  {fixture.Fleet(), on("s0")},
		"disagrees":  {disagreeing(), on("w1")},
		"draining":   {draining(), on("w1")},
		"no_engines": {fixture.Normal(), on("w1")},
		"unreported": {fixture.Empty(), on("w0")},
		"empty":      {none(), func(*View, *view.Frame) {}},
		"stale":      {fixture.Fleet(), func(v *View, f *view.Frame) { on("d0")(v, f); fixture.Lose(f) }},
		"hostile":    {fixture.HostileFleet(), func(v *View, f *view.Frame) { on(f.State.Workers[0].ID)(v, f) }},
		"filtered":   {fixture.Fleet(), func(v *View, _ *view.Frame) { v.SetFilter("feeds:stale | ignored>0") }},
		"wide64":     {fixture.WideFleet(64), on("w40")},
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

func TestCommands(t *testing.T) {
	f := fixture.Frame(fixture.Fleet(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	on("w1")(v, f)
	if in, ok := v.Do(f, command.Open); !ok || in != view.Intent(view.Goto{View: command.Ranks, Filter: "worker:w1"}) {
		t.Errorf("enter: %#v", in)
	}
	in, _ := v.Do(f, command.Drain)
	s, ok := in.(view.Show)
	if !ok || s.Dialog.Title().String() != "Drain all of w1" {
		t.Fatalf("drain: %#v", in)
	}
	text := fixture.Text(s.Dialog.Draw(f, 68, 12))
	for _, want := range []string{"drained when both are 0", "18 of 18 ranks of other workers", "71 of 128 active, 1 queued, 330.6k tokens"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	in, done := s.Dialog.Key(f, view.Key{Name: "y", Runes: []rune("y")})
	send, ok := in.(view.Send)
	if !ok || !done || send.Command.Verb != model.VerbDrain || *send.Command.Target != fixture.T("w1", model.NoRank) {
		t.Errorf("sent %#v", in)
	}
	in, _ = v.Do(f, command.Ready)
	if send, ok := in.(view.Send); !ok || send.Command.Verb != model.VerbReady || *send.Command.Target != fixture.T("w1", model.NoRank) {
		t.Errorf("ready: %#v", in)
	}
	if got := v.CopyText(f); got != "w1" {
		t.Errorf("copied %q", got)
	}
}

// A worker of which some ranks drain can be drained and made ready.
func TestPartlyDraining(t *testing.T) {
	f := fixture.Frame(fixture.Fleet(), 80, 24)
	v := New()
	table := command.New()
	for worker, want := range map[string][2]string{
		"w0": {"", "it is ready"}, "w1": {"", ""},
	} {
		s := command.Situation{View: command.Workers, Link: command.LinkLive}
		on(worker)(v, f)
		v.Situate(f, &s)
		got := [2]string{table.Get(command.Drain).Reason(&s), table.Get(command.Ready).Reason(&s)}
		if got != want {
			t.Errorf("%s: %q, want %q", worker, got, want)
		}
	}
}

func TestFilters(t *testing.T) {
	f := fixture.Frame(fixture.Fleet(), 80, 24)
	for filter, want := range map[string]int{
		"state:down": 1, "state:up": 4, "state:simulated": 1, "feeds:silent": 1, "feeds:metrics:stale": 2, "feeds:approximate": 1, "engine:vllm": 2,
		"ignored>0": 1, "ignored>0 honoured<93%": 1, "draining>0": 1, "restarts>0": 1, "findings>0": 3, "active>0": 5, "ready<8": 5, "lora": 1,
	} {
		v := New()
		v.Draw(f, 80, 20)
		if err := v.list.SetFilter(filter); err != nil || len(v.list.Rows()) != want {
			t.Errorf("%s: %d rows, want %d (%v)", filter, len(v.list.Rows()), want, err)
		}
	}
}

// Every state of a feed has a shape of its own, in both sets of signs, one cell
// wide.
func TestFeedShapesDiffer(t *testing.T) {
	for name, ink := range map[string]cell.Ink{"unicode": fixture.Ink("mono"), "ascii": fixture.ASCII()} {
		seen := map[string]model.IndexFeed{}
		for _, s := range []model.IndexFeed{
			model.FeedLive, model.FeedStale, model.FeedGap, model.FeedSilent, model.FeedNone, model.FeedApproximate, "new",
		} {
			_, sign := dot(ink, s)
			if o, twice := seen[sign.String()]; twice || sign.Width() != 1 || ansi.StringWidth(sign.String()) != 1 {
				t.Errorf("%s: %s and %s are both %q, %d cells", name, s, o, sign, sign.Width())
			}
			seen[sign.String()] = s
		}
	}
}

// A sum of which a part is not known is not shown as if it were whole.
func TestUnknownStaysUnknown(t *testing.T) {
	s := fixture.Fleet()
	byID := map[string]*entry{}
	for _, e := range gather(s) {
		byID[e.ID] = e
	}
	if got := byID["t0"].activeText().String(); !strings.HasPrefix(got, "≥") || strings.Contains(got, "/") {
		t.Errorf("active of t0 is %q", got)
	}
	if v := byID["t0"].whole(byID["t0"].tokens); v == v {
		t.Errorf("tokens of t0 sort as %v", v)
	}
	if got := byID["w0"].activeText().String(); got != "92/128" {
		t.Errorf("active of w0 is %q", got)
	}
	if got := gather(fixture.Empty())[0].activeText().String(); got != "—" {
		t.Errorf("active of a worker without reports is %q", got)
	}
	if got := measured(0); got == got {
		t.Errorf("no time to the first token reads as %v", got)
	}
}

func TestNextOddNamesWhatIsWrong(t *testing.T) {
	f := fixture.Frame(fixture.Fleet(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	on("w0")(v, f)
	seen := map[string]bool{}
	for range 6 {
		in, _ := v.Do(f, command.Odd)
		seen[in.(view.Toast).Text.String()] = true
	}
	for _, want := range []string{
		"d0: d0 ignored the rank on responses: 31 of 37 ran elsewhere", "x0: down: GET http://10.0.1.14:8000/health: connection refused",
		"t0: 3 of 4 ranks have reported",
	} {
		if !seen[want] {
			t.Errorf("no %q among %v", want, seen)
		}
	}
	for text := range seen {
		if strings.HasPrefix(text, "s0") || strings.HasPrefix(text, "w0") {
			t.Errorf("%q is not odd", text)
		}
	}
}

func TestExportHasAValueForEachColumn(t *testing.T) {
	f := fixture.Frame(fixture.HostileFleet(), 80, 24)
	x := New().Export(f)
	for _, row := range x.Rows {
		if len(row) != len(x.Columns) {
			t.Fatalf("%d values for %d columns", len(row), len(x.Columns))
		}
	}
	if len(x.Rows) != 6 {
		t.Errorf("%d rows", len(x.Rows))
	}
}

// Where loads come from is said while they come, and old troubles of the other
// feeds are not.
func TestLiveFeedsSayTheirSource(t *testing.T) {
	s := pair()
	for i := range s.Workers[0].Feeds {
		s.Workers[0].Feeds[i].State, s.Workers[0].Feeds[i].Why = model.FeedLive, "why of "+s.Workers[0].Feeds[i].Name
	}
	f := fixture.Frame(s, 120, 40)
	v := New()
	on("w0")(v, f)
	got := ansi.Strip(strings.Join(v.Draw(f, 120, 34), "\n"))
	if want := "metrics: why of " + model.FeedMetrics; !strings.Contains(got, want) || strings.Count(got, "why of") != 1 {
		t.Errorf("want %q alone of the reasons:\n%s", want, got)
	}
}
