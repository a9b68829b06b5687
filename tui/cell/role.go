package cell

import "adpdeck/themes"

// Role is themes.Role under a shorter path, so that a view needs one import to
// paint.
type Role = themes.Role

// The roles of themes, for views.
const (
	Plain       = themes.Text
	Dim         = themes.Dim
	Strong      = themes.Strong
	Title       = themes.Title
	RuleLine    = themes.Rule
	Context     = themes.Context
	Tab         = themes.Tab
	TabActive   = themes.TabActive
	Marked      = themes.Mark
	BarFill     = themes.BarFill
	BarHot      = themes.BarHot
	BarTrack    = themes.BarTrack
	BarTick     = themes.BarTick
	Trend       = themes.Trend
	LinkLive    = themes.LinkLive
	LinkSlow    = themes.LinkSlow
	LinkStale   = themes.LinkStale
	LinkFrozen  = themes.LinkFrozen
	OK          = themes.OK
	Warn        = themes.Warn
	Crit        = themes.Crit
	Staged      = themes.Staged
	Key         = themes.Key
	ButtonFocus = themes.ButtonFocus
	Input       = themes.Input
)
