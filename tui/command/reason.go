package command

// acts says why nothing that changes the router can be done now.
func acts(s *Situation) string {
	switch {
	case s.Link == LinkNone:
		return "nothing has arrived from the router yet"
	case s.Link == LinkStale:
		return "feed is stale: these figures are old"
	case s.Link == LinkFrozen:
		return "the screen is frozen: " + s.key(Freeze) + " goes live again"
	case s.Link == LinkReplay:
		return "this is a recording"
	case s.ReadOnly:
		return "viewer role: look only"
	}
	return ""
}

func needsSelection(s *Situation) string {
	if !s.Selected && s.Marked == 0 {
		return "nothing selected"
	}
	return ""
}

// opens leaves enter to connecting again while the link is down.
func opens(s *Situation) string {
	if s.Link == LinkStale || s.Link == LinkNone {
		return "feed is stale: enter connects again"
	}
	return needsSelection(s)
}

func actsOnSelection(s *Situation) string {
	if why := acts(s); why != "" {
		return why
	}
	return needsSelection(s)
}

func needsPin(s *Situation) string {
	if why := actsOnSelection(s); why != "" {
		return why
	}
	if !s.Pinned && s.Marked == 0 {
		return "no operator's pin here"
	}
	return ""
}

func needsReady(s *Situation) string {
	if why := actsOnSelection(s); why != "" {
		return why
	}
	if s.Draining && !s.Partly {
		return "it drains already: " + s.key(Ready) + " makes it ready"
	}
	return ""
}

func needsDraining(s *Situation) string {
	if why := actsOnSelection(s); why != "" {
		return why
	}
	if !s.Draining {
		return "it is ready"
	}
	return ""
}

// stages says why no value can be staged for the selected knob.
func stages(s *Situation) string {
	if why := acts(s); why != "" {
		return why
	}
	if !s.Selected {
		return "nothing selected"
	}
	return s.KnobOff
}

func needsStaged(s *Situation) string {
	if s.Staged == 0 {
		return "nothing is staged"
	}
	return ""
}

func appliesStaged(s *Situation) string {
	if why := acts(s); why != "" {
		return why
	}
	if s.Refused {
		return ""
	}
	return needsStaged(s)
}

func undoes(s *Situation) string {
	if why := acts(s); why != "" {
		return why
	}
	if !s.CanUndo {
		return "nothing to undo"
	}
	return ""
}

// needsSimulation allows speed keys on a frozen screen: they move no traffic
// of anyone.
func needsSimulation(s *Situation) string {
	switch {
	case s.Link == LinkReplay:
		return ""
	case s.ReadOnly:
		return "viewer role: look only"
	case !s.Simulated:
		return "live traffic has no speed"
	case s.Link == LinkStale:
		return "feed is stale: these figures are old"
	}
	return ""
}

func needsFilter(s *Situation) string {
	if !s.Filtered {
		return "no filter: " + s.key(Filter) + " sets one"
	}
	return ""
}

func needsFrozen(s *Situation) string {
	if s.Link != LinkFrozen {
		return "only while frozen: " + s.key(Freeze) + " freezes"
	}
	return ""
}

func needsLoss(s *Situation) string {
	if s.Link != LinkStale && s.Link != LinkNone {
		return "the link is up"
	}
	return ""
}

func needsState(s *Situation) string {
	if s.Link == LinkNone {
		return "nothing has arrived from the router yet"
	}
	return ""
}

func needsAlert(s *Situation) string {
	if why := needsState(s); why != "" {
		return why
	}
	if s.Alerts == 0 {
		return "no alert that was not looked at"
	}
	return ""
}
