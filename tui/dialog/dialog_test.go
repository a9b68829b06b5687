package dialog

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"adpdeck/router/model"
	"adpdeck/tui/fixture"
	"adpdeck/tui/view"
)

// press gives keys to a dialog and returns the last intent and whether it
// closed.
func press(f *view.Frame, d view.Dialog, keys ...string) (in view.Intent, done bool) {
	for _, k := range keys {
		key := view.Key{Name: k}
		if len([]rune(k)) == 1 {
			key.Runes = []rune(k)
		}
		if in, done = d.Key(f, key); done {
			return in, done
		}
	}
	return in, done
}

func frame() *view.Frame { return fixture.Frame(fixture.Normal(), 80, 24) }

func TestWhatFires(t *testing.T) {
	f := frame()
	one := f.State.Convs[3:4]
	at := fixture.T("w0", 5)
	for name, c := range map[string]struct {
		dialog view.Dialog
		keys   []string
		done   bool
		sent   bool
	}{
		"enter is cancel":            {NewEvict(f, one), []string{"enter"}, true, false},
		"n is cancel":                {NewEvict(f, one), []string{"l", "n"}, true, false},
		"the opening key is nothing": {NewEvict(f, one), []string{"E"}, false, false},
		"y":                          {NewEvict(f, one), []string{"y"}, true, true},
		"tab enter":                  {NewEvict(f, one), []string{"tab", "enter"}, true, true},
		"l enter":                    {NewPin(f, one, &at), []string{"l", "enter"}, true, true},
		"l h enter":                  {NewPin(f, one, &at), []string{"l", "h", "enter"}, true, false},
		"y in a reason is text":      {NewDrain(f, &f.State.Ranks[3]), []string{"r", "y"}, false, false},
		"reason, then y":             {NewDrain(f, &f.State.Ranks[3]), []string{"r", "x", "enter", "y"}, true, true},
		"many: y is not enough":      {NewEvict(f, f.State.Convs[:11]), []string{"y"}, false, false},
		"many: wrong count":          {NewEvict(f, f.State.Convs[:11]), []string{"1", "2", "enter"}, true, false},
		"many: tab finds no button":  {NewEvict(f, f.State.Convs[:11]), []string{"tab", "l", "enter"}, true, false},
		"many: the count":            {NewEvict(f, f.State.Convs[:11]), []string{"1", "1", "enter"}, true, true},
		"many: count, then cancel":   {NewEvict(f, f.State.Convs[:11]), []string{"1", "1", "h", "enter"}, true, false},
		"ten are few":                {NewEvict(f, f.State.Convs[:10]), []string{"y"}, true, true},
		"undo twice":                 {NewUndo(f, f.State.Revisions[2]), []string{"y"}, false, false},
		"undo":                       {NewUndo(f, f.State.Revisions[0]), []string{"y"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			in, done := press(f, c.dialog, c.keys...)
			_, sent := in.(view.Send)
			if done != c.done || sent != c.sent {
				t.Errorf("done %v, sent %v (%T); want %v, %v", done, sent, in, c.done, c.sent)
			}
			if s, ok := in.(view.Send); ok && s.Command.Expect != 1412 {
				t.Errorf("against version %d", s.Command.Expect)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	f := frame()
	convs := f.State.Convs
	w0, w1 := fixture.T("w0", model.NoRank), fixture.T("w1", model.NoRank)
	w04, w15 := fixture.T("w0", 4), fixture.T("w1", 5)
	for name, c := range map[string]struct {
		dialog view.Dialog
		keys   []string
		want   model.Command
	}{
		"pin to the next rank": {NewPin(f, convs[3:4], nil), []string{"j", "y"}, model.Command{Verb: model.VerbPin, Target: &w04, Convs: []model.ConvKey{convs[3].Key}}},
		"remove a pin":         {NewPin(f, convs[2:3], nil), []string{"g", "y"}, model.Command{Verb: model.VerbUnpin, Convs: []model.ConvKey{convs[2].Key}}},
		"migrate auto":         {NewMigrate(f, convs[3:4], nil), []string{"y"}, model.Command{Verb: model.VerbMigrate, Target: &w15, Convs: []model.ConvKey{convs[3].Key}}},
		"migrate, spread":      {NewMigrate(f, convs[3:5], nil), []string{"y"}, model.Command{Verb: model.VerbMigrate, Convs: []model.ConvKey{convs[3].Key, convs[4].Key}}},
		"ready":                {NewReady(f, &f.State.Ranks[4]), []string{"y"}, model.Command{Verb: model.VerbReady, Target: &w04}},
		"drain a worker":       {NewDrainWorker(f, "w0"), []string{"y"}, model.Command{Verb: model.VerbDrain, Target: &w0}},
		"ready a worker":       {NewReadyWorker(f, "w1"), []string{"y"}, model.Command{Verb: model.VerbReady, Target: &w1}},
		"undo":                 {NewUndo(f, f.State.Revisions[0]), []string{"y"}, model.Command{Verb: model.VerbUndo, Undo: 1412}},
		"clear":                {NewClear(f, &f.State.Ranks[4]), []string{"y"}, model.Command{Verb: model.VerbClear, Target: &w04}},
		"with a reason":        {NewDrain(f, &f.State.Ranks[4]), []string{"r", "o", "k", "enter", "y"}, model.Command{Verb: model.VerbDrain, Target: &w04, Reason: "ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := press(f, c.dialog, c.keys...)
			got, ok := in.(view.Send)
			if !ok {
				t.Fatalf("got %T", in)
			}
			c.want.Expect = 1412
			if g, w := text(got.Command), text(c.want); g != w {
				t.Errorf("got %s, want %s", g, w)
			}
		})
	}
}

// What is left decides what the dialog says: in the worker, in others, nothing.
func TestDrainSaysWhatIsLeft(t *testing.T) {
	only := func(keep ...model.Target) func(*model.State) {
		return func(s *model.State) {
			for i := range s.Ranks {
				if r := &s.Ranks[i]; !slices.Contains(keep, r.Target) {
					r.Availability = model.Draining
				}
			}
		}
	}
	direct := func(s *model.State) {
		only(fixture.T("w0", 4), fixture.T("w1", 0))(s)
		s.Settings.RouterMode = model.ModeDirect
	}
	none := func(*model.State) {}
	for name, c := range map[string]struct {
		change func(*model.State)
		whole  bool
		want   []string
	}{
		"a rank":                   {none, false, []string{"Drain w0/4", "7 of 8 ranks of w0 take new work", "the others run"}},
		"the last of its worker":   {only(fixture.T("w0", 4), fixture.T("w1", 0), fixture.T("w1", 1)), false, []string{"0 of 8 ranks of w0 take new work", "then w0 takes nothing new; 2 ranks of other workers do"}},
		"the last of all":          {only(fixture.T("w0", 4)), false, []string{"no rank would take new work: the router will refuse"}},
		"the last in mode direct":  {direct, false, []string{"in mode direct clients name w0: the router will refuse"}},
		"a worker":                 {only(fixture.T("w0", 4), fixture.T("w1", 0), fixture.T("w1", 1)), true, []string{"Drain all of w0", "8 ranks: 92 of 128 active", "2 of 8 ranks of other workers take new work", "do not fit"}},
		"a worker, room elsewhere": {func(s *model.State) { s.Ranks[8].MaxActive = 500 }, true, []string{"7 of 8 ranks of other workers take new work", "the others run"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fixture.Normal()
			c.change(s)
			f := fixture.Frame(s, 80, 24)
			d := NewDrain(f, &s.Ranks[4])
			if c.whole {
				d = NewDrainWorker(f, "w0")
			}
			text := d.Title().String() + "\n" + ansi.Strip(strings.Join(d.Draw(f, 70, 14), "\n"))
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in\n%s", want, text)
				}
			}
		})
	}
}

// text is a command in one line, for comparing.
func text(c model.Command) string {
	var b strings.Builder
	b.WriteString(string(c.Verb))
	if c.Target != nil {
		b.WriteString(" to " + c.Target.String())
	}
	for _, k := range c.Convs {
		b.WriteString(" " + k.ID)
	}
	b.WriteString(" reason=" + c.Reason)
	b.WriteString(" undo=" + string(rune('0'+c.Undo%10)))
	return b.String()
}

func TestMigrateLeavesBusyOnesOut(t *testing.T) {
	f := frame()
	busy := *f.State.Convs[4]
	busy.Open = 1
	convs := []*model.Conv{f.State.Convs[3], &busy}
	in, _ := press(f, NewMigrate(f, convs, nil), "i", "y")
	if s, ok := in.(view.Send); !ok || len(s.Command.Convs) != 1 || s.Command.Convs[0] != convs[0].Key {
		t.Errorf("got %+v", in)
	}
}

func TestApplySendsAllOrSaysWhyNot(t *testing.T) {
	f := frame()
	f.Staged = []model.FieldValue{{Field: model.FieldLoadBalanceWeight, Value: "4"}}
	in, done := press(f, NewApply(f), "y")
	if s, ok := in.(view.Send); !ok || !done || !s.ClearStaged || len(s.Command.Set) != 1 {
		t.Errorf("got %+v", in)
	}
	f.Staged = []model.FieldValue{{Field: model.FieldEnableBalance, Value: "true"}, {Field: model.FieldLowOccupancyTimeoutIters, Value: "60"}}
	if in, done := press(f, NewApply(f), "y"); done {
		t.Errorf("values that cannot stand together were sent: %+v", in)
	}
}

func TestAnotherPolicyForLiveTrafficIsTyped(t *testing.T) {
	f := frame()
	f.Staged = []model.FieldValue{{Field: model.FieldPolicy, Value: "default"}}
	if in, _ := press(f, NewApply(f), "y"); in == nil {
		t.Error("in a simulation y is enough")
	}
	s := *f.State
	s.Source.Kind = "live"
	f.State = &s
	if _, done := press(f, NewApply(f), "y"); done {
		t.Error("under live traffic y is not enough")
	}
	in, _ := press(f, NewApply(f), "d", "e", "f", "a", "u", "l", "t", "enter")
	if _, ok := in.(view.Send); !ok {
		t.Errorf("the policy was typed, and got %T", in)
	}
}

func TestChoiceStages(t *testing.T) {
	f := frame()
	in, done := press(f, NewChoice(f, model.FieldPolicy), "j", "enter")
	if s, ok := in.(view.Stage); !ok || !done || s.Values[0].Value != "conversation" {
		t.Errorf("got %+v", in)
	}
	in, _ = press(f, NewChoice(f, model.FieldPolicy), "enter")
	if _, ok := in.(view.Unstage); !ok {
		t.Errorf("the value in force is not staged, got %+v", in)
	}
}

func TestFootSaysWhenTheVersionMoved(t *testing.T) {
	f := frame()
	d := NewEvict(f, f.State.Convs[:1])
	s := *f.State
	s.Version = 1413
	f.State = &s
	if got := d.Foot(f).String(); got != "against v1412, now v1413" {
		t.Errorf("foot %q", got)
	}
	in, _ := press(f, d, "y")
	if in.(view.Send).Command.Expect != 1412 {
		t.Error("the command must name the version that was looked at")
	}
}

func TestAConversationThatLeavesWhileTheDialogIsOpenIsShownGone(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	c := f.State.Convs[0]
	x := NewEvict(f, f.State.Convs[:2])
	next := *f.State
	busy := *f.State.Convs[1]
	busy.Open, busy.CachedTokens = 1, 77_000
	next.Convs = []*model.Conv{&busy}
	f.State = &next
	text := fixture.Text(x.Draw(f, 68, 14))
	for _, want := range []string{c.Key.ID, "gone", "77.0k   busy"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
