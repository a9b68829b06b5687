package tui

import (
	"adpdeck/tui/convs"
	"adpdeck/tui/ranks"
	"adpdeck/tui/tuning"
	"adpdeck/tui/view"
)

// Views returns the console's views, new, in the order of their numbers.
func Views() []view.View { return []view.View{ranks.New(), convs.New(), tuning.New()} }
