package tui

import (
	"testing"

	"adpdeck/router/model"
	"adpdeck/tui/dialog"
	"adpdeck/tui/fixture"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// Every view and every dialog is exactly as large as it was asked to be, at
// every size of the screen, and holds no control byte but colours.
func TestEveryViewIsExactAtEverySize(t *testing.T) {
	for name, f := range map[string]*view.Frame{
		"hostile": fixture.Frame(fixture.Hostile(), 80, 24),
		"empty":   fixture.Frame(fixture.Empty(), 80, 24),
		"kv":      fixture.Frame(hostileIndex(), 80, 24),
		"fleet":   fixture.Frame(fixture.HostileFleet(), 80, 24),
		"engines": fixture.Frame(fixture.WideFleet(64), 80, 24),
		"stale":   fixture.Lose(fixture.Frame(fixture.Wide(64), 80, 24)),
	} {
		t.Run(name, func(t *testing.T) {
			views := Views()
			step := 7
			if name == "hostile" || name == "fleet" {
				step = 1
			}
			for w := 20; w <= 220; w += step {
				for h := 6 + w*7%5; h <= 70; h += 5 {
					sizeViews(t, f, views, w, h)
				}
			}
		})
	}
}

// hostileIndex is a state with an index whose names try to break the screen.
func hostileIndex() *model.State {
	s := fixture.KV()
	for i := range s.Index {
		s.Index[i].Target.Worker = "w\x1b[31m\n会話" + s.Index[i].Target.Worker
		s.Index[i].LastError = "\u202e\x9b31m"
	}
	s.Findings[0].Message, s.Findings[0].Target = "bad\x1b[2J \u2066 thing", s.Index[2].Target
	return s
}

func sizeViews(t *testing.T, f *view.Frame, views []view.View, w, h int) {
	s := layout.Divide(w, h)
	f.ScreenW, f.ScreenH, f.Form = w, h, s.Form
	f.Rev = 1
	for _, v := range views {
		if err := fixture.Check(v.Draw(f, s.Body.W, s.Body.H), s.Body.W, s.Body.H); err != nil {
			t.Fatalf("%s at %dx%d: %v", v.ID(), w, h, err)
		}
		if err := fixture.Check([]string{fixture.Status(v, f)}, w, 1); err != nil {
			t.Fatalf("status of %s at %dx%d: %v", v.ID(), w, h, err)
		}
	}
}

func TestEveryDialogIsExactAtEverySize(t *testing.T) {
	f := fixture.Frame(fixture.Hostile(), 80, 24)
	at := fixture.T("w1", 5)
	f.Staged = []model.FieldValue{
		{Field: model.FieldPolicy, Value: "conversation"},
		{Field: model.FieldLoadBalanceWeight, Value: "4"},
		{Field: model.FieldWeight, Target: &at, Value: "0.5"},
	}
	for w := 0; w <= 80; w++ {
		for h := w % 3; h <= 30; h += 3 {
			for _, d := range allDialogs(f) {
				if err := fixture.Check(d.Draw(f, w, h), w, h); err != nil {
					t.Fatalf("%s at %dx%d: %v", d.Title(), w, h, err)
				}
			}
		}
	}
}

func allDialogs(f *view.Frame) []view.Dialog {
	convs := f.State.Convs[:23]
	return []view.Dialog{
		dialog.NewPin(f, convs[:1], nil), dialog.NewPin(f, convs, nil), dialog.NewMigrate(f, convs[:3], nil),
		dialog.NewEvict(f, convs), dialog.NewUnpin(f, convs[:2]), dialog.NewDrain(f, &f.State.Ranks[3]),
		dialog.NewDrainWorker(f, f.State.Workers[0].ID), dialog.NewReadyWorker(f, f.State.Workers[1].ID),
		dialog.NewReady(f, &f.State.Ranks[10]), dialog.NewApply(f), dialog.NewChoice(f, model.FieldPolicy),
		dialog.NewUndo(f, f.State.Revisions[0]), dialog.NewDrainWorker(f, f.State.Workers[0].ID), dialog.NewReadyWorker(f, "w1"),
	}
}

// With ASCII signs nothing else is painted.
func TestASCIISignsOnly(t *testing.T) {
	for _, s := range []*model.State{fixture.Normal(), fixture.Fleet()} {
		f := fixture.Frame(s, 120, 40)
		f.Ink = fixture.ASCII()
		for _, v := range Views() {
			for _, line := range append(v.Draw(f, 120, 36), fixture.Status(v, f)) {
				for _, r := range line {
					if r >= 0x80 {
						t.Fatalf("%s paints %q in %q", v.ID(), r, line)
					}
				}
			}
		}
	}
}
