package convs

import (
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/view"
)

// TestTTL: only a binding that a turn made runs out, and only in the modes that
// choose a rank.
func TestTTL(t *testing.T) {
	now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	idle := func(d time.Duration) model.Conv {
		return model.Conv{Pin: model.PinAuto, LastAt: now.Add(-d - time.Minute), IdleSince: now.Add(-d)}
	}
	busy, fresh, moved := idle(time.Hour), idle(2*time.Second), idle(time.Minute)
	busy.Open, fresh.IdleSince, moved.Pin = 1, time.Time{}, model.PinMigrated
	for name, c := range map[string]struct {
		mode model.RouterMode
		conv model.Conv
		want string
	}{
		"just idle":        {model.ModeKV, idle(time.Second), "29m"},
		"lockstep":         {model.ModeLockstep, idle(25 * time.Minute), "5m"},
		"busy":             {model.ModeKV, busy, "30m"},
		"over":             {model.ModeKV, idle(30 * time.Minute), "over"},
		"no end known yet": {model.ModeKV, fresh, "28m"},
		"moved":            {model.ModeKV, moved, "—"},
		"engine's":         {model.ModeRoundRobin, idle(0), "—"},
	} {
		s := &model.State{Settings: model.Settings{RouterMode: c.mode, ClusterConfig: model.DefaultClusterConfig()}}
		if got := ttlOf(&view.Frame{State: s, Now: now}, &c.conv).String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	off := model.DefaultClusterConfig()
	off.SessionAffinityTTLSecs = nil
	s := &model.State{Settings: model.Settings{RouterMode: model.ModeKV, ClusterConfig: off}}
	conv := idle(time.Second)
	if got := ttlOf(&view.Frame{State: s, Now: now}, &conv).String(); got != "—" {
		t.Errorf("affinity off: %q", got)
	}
}
