package tui

import (
	"testing"

	"adpdeck/router/model"
)

// TestKnobs: the header names what decides, in every mode.
func TestKnobs(t *testing.T) {
	for mode, want := range map[model.RouterMode][2]string{
		model.ModeRoundRobin:  {"default balance", "default balance"},
		model.ModeDirect:      {"mode direct  default balance", "mode direct"},
		model.ModeLeastLoaded: {"mode least_loaded  default balance", "mode least_loaded"},
		model.ModeKV:          {"mode kv  P 1.00  credit 1.00", "mode kv P 1.00"},
	} {
		s := model.Settings{RouterMode: mode, AttentionDpConfig: model.DefaultAttentionDpConfig(), ClusterConfig: model.DefaultClusterConfig()}
		if long, short := knobs(&s, true).String(), knobs(&s, false).String(); long != want[0] || short != want[1] {
			t.Errorf("%s: %q and %q, want %q", mode, long, short, want)
		}
	}
}
