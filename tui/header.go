package tui

import (
	"time"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
)

// header paints row 0: name, context, policy and version on the left; link,
// role and clock on the right. When the width is short the less important go.
func (m *Model) header(w int) string {
	b := cell.NewBlock(m.ink, w)
	b.Begin(cell.Normal)
	right := m.headerRight(w, true)
	rightW := width(right)
	left := m.headerLeft(w, w-rightW-3)
	if m.frame.State != nil && w >= layout.FullWidth && len(left) < 7 {
		// The policy does not fit: it matters more than the role.
		short := m.headerRight(w, false)
		if more := m.headerLeft(w, w-width(short)-3); len(more) > len(left) {
			left, right, rightW = more, short, width(short)
		}
	}
	b.Gap(1)
	b.Runs(left...)
	b.To(w - rightW - 1)
	b.Runs(right...)
	return b.Lines(1)[0]
}

func width(runs []cell.Run) int {
	n := 0
	for _, r := range runs {
		n += r.Text.Width()
	}
	return n
}

func (m *Model) headerRight(w int, withRole bool) []cell.Run {
	runs := []cell.Run{{Role: m.badgeRole(), Text: m.badgeText(m.opt.Now())}}
	if w < layout.FullWidth {
		return runs
	}
	gap := cell.Run{Role: cell.Plain, Text: cell.Lit("   ")}
	if w < 90 { // so that the longest badge leaves room for policy and version
		gap.Text = cell.Lit("  ")
	}
	if role := m.live.Link.Role; withRole && w >= 76 && role != "" {
		text := cell.Fit(role, 12)
		switch {
		case role == "viewer" && w < 90:
			text = cell.Lit("read-only")
		case role == "viewer":
			text = cell.Say("%s read-only", cell.Glyph(m.ink.Glyphs.ReadOnly))
		}
		runs = append(runs, gap, cell.Run{Role: cell.Dim, Text: text})
	}
	return append(runs, gap, cell.Run{Role: cell.Plain, Text: cell.Clock(m.frame.Now)})
}

// headerLeft returns as much of the left part as fits into room cells.
func (m *Model) headerLeft(w, room int) []cell.Run {
	bar := cell.Run{Role: cell.RuleLine, Text: cell.Concat(cell.Lit(" "), cell.Glyph(m.ink.Glyphs.VLine), cell.Lit(" "))}
	name := cell.Run{Role: cell.Title, Text: cell.Lit("adpdeck")}
	gap := cell.Run{Role: cell.Plain, Text: cell.Lit("  ")}
	if w < layout.FullWidth {
		gap.Text = cell.Lit(" ")
	}
	context := cell.Run{Role: cell.Context, Text: m.context(w)}
	s := m.frame.State
	if s == nil || w < layout.FullWidth {
		return []cell.Run{name, gap, context}
	}
	version := cell.Run{Role: cell.Plain, Text: cell.Say("v%s", cell.Int(s.Version))}
	if m.expected > s.Version {
		version = cell.Run{Role: cell.Staged, Text: cell.Say("→ v%s", cell.Int(m.expected))}
	}
	ranks := cell.Run{Role: cell.Plain, Text: cell.Say("%s ranks", cell.Int(len(s.Ranks)))}
	long := cell.Run{Role: cell.Plain, Text: knobs(&s.Settings, true)}
	short := cell.Run{Role: cell.Plain, Text: knobs(&s.Settings, false)}
	head := []cell.Run{name, gap, context}
	for _, try := range [][]cell.Run{
		{bar, ranks, bar, long, bar, version},
		{bar, long, bar, version},
		{bar, short, bar, version},
		{bar, version},
		{},
	} {
		if w < layout.SideWidth && len(try) > 4 {
			continue
		}
		if w < layout.SideWidth && len(try) == 4 && try[1] == long {
			continue
		}
		if runs := append(head[:3:3], try...); width(runs) <= room {
			return runs
		}
	}
	return head[:1]
}

// context is the label of where this console looks at: given, or the source of
// the traffic with its speed.
func (m *Model) context(w int) cell.Text {
	room := 20
	if w >= layout.SideWidth {
		room = 32
	}
	s := m.frame.State
	if s == nil || s.Source.Kind == "live" || s.Source.Kind == "" {
		if m.opt.Context == "" {
			return cell.Lit("live")
		}
		return cell.Fit(m.opt.Context, room)
	}
	label := cell.Lit("sim")
	if s.Source.Kind == "trace" {
		label = cell.Fit(s.Source.Name, room)
	}
	if m.opt.Context != "" {
		label = cell.Fit(m.opt.Context, room)
	}
	switch {
	case s.Source.Done:
		return cell.Say("%s ended", label)
	case s.Source.Speed == 0:
		return cell.Say("%s paused", label)
	}
	return cell.Say("%s ×%s", label, speedText(s.Source.Speed))
}

func speedText(x float64) cell.Text {
	if x == float64(int(x)) {
		return cell.Int(int(x))
	}
	return cell.Short(x)
}

// policyName is a policy as the header writes it.
func policyName(p model.Policy) cell.Text {
	switch p {
	case model.PolicyKVAware:
		return cell.Lit("kv-aware")
	case model.PolicyConversation:
		return cell.Lit("conversation")
	}
	return cell.Lit("default")
}

// knobs writes what decides and its main settings: the mode that picks ranks, or
// else the policy, with the mode that picks workers before it unless they only
// take turns.
func knobs(s *model.Settings, long bool) cell.Text {
	switch s.RouterMode {
	case model.ModeKV, model.ModeLockstep:
		return modeKnobs(s, long)
	case model.ModeRoundRobin:
		return policyKnobs(s, long)
	}
	mode := cell.Say("mode %s", cell.Fit(string(s.RouterMode), 20))
	if !long {
		return mode
	}
	return cell.Say("%s  %s", mode, policyKnobs(s, false))
}

func modeKnobs(s *model.Settings, long bool) cell.Text {
	cluster := s.Cluster()
	switch {
	case s.RouterMode == model.ModeKV && long:
		return cell.Say("mode kv  P %s  credit %s", cell.Short(cluster.PrefillLoadScale), cell.Short(cluster.KVOverlapScoreCredit))
	case s.RouterMode == model.ModeKV:
		return cell.Say("mode kv P %s", cell.Short(cluster.PrefillLoadScale))
	case long:
		return cell.Say("mode lockstep  λ %s  μ %s  δ %s", cell.Short(cluster.LockstepWeight), cell.Short(cluster.PendingWeight),
			cell.Short(cluster.LockstepDecodeWeight))
	}
	return cell.Say("lockstep λ %s", cell.Short(cluster.LockstepWeight))
}

func policyKnobs(s *model.Settings, long bool) cell.Text {
	c := &s.AttentionDpConfig
	p := policyName(c.Policy())
	beta := cell.Short(c.KVCacheRoutingLoadBalanceWeight)
	share := cell.Fixed(c.KVCacheRoutingFairShareMultiplier, 2)
	switch {
	case c.Policy() == model.PolicyKVAware && long:
		return cell.Say("%s  β %s  match %s  share ×%s", p, beta, cell.Short(c.KVCacheRoutingMatchRateThreshold), share)
	case c.Policy() == model.PolicyKVAware:
		return cell.Say("%s β %s", p, beta)
	case c.Policy() == model.PolicyConversation && long:
		return cell.Say("%s  %s  share ×%s", p, cell.Fit(c.KVCacheRoutingNewConvPlacement, 20), share)
	case c.Policy() == model.PolicyConversation:
		return p
	}
	return cell.Say("%s balance", p)
}

// badgeText is the link badge.
func (m *Model) badgeText(now time.Time) cell.Text {
	g, l := &m.ink.Glyphs, &m.live.Link
	compact := m.screen.W < layout.FullWidth
	switch m.link {
	case command.LinkNone:
		return cell.Say("%s connecting", cell.Glyph(g.Slow))
	case command.LinkFrozen:
		return cell.Say("%s FROZEN −%s s", cell.Glyph(g.Frozen), cell.Int(int(now.Sub(m.past.held.at)/time.Second)))
	case command.LinkStale:
		return cell.Say("%s STALE %s", cell.Glyph(g.Stale), cell.Seconds(l.Age(now)))
	case command.LinkReplay:
		return replayBadge(g.Replay, l)
	case command.LinkSlow:
		return cell.Say("%s slow %s", cell.Glyph(g.Slow), cell.Seconds(l.Age(now)))
	}
	live := cell.Lit("live")
	if l.RTT > 0 {
		rtt := cell.Ms(float64(l.RTT) / float64(time.Millisecond))
		if compact {
			return cell.Say("%s %s", cell.Glyph(g.Live), rtt)
		}
		live = cell.Say("live %s", rtt)
	}
	return cell.Say("%s %s", cell.Glyph(g.Live), live)
}

func replayBadge(sign string, l *feed.Link) cell.Text {
	switch {
	case l.Replay.Ended:
		return cell.Say("%s REPLAY ended", cell.Glyph(sign))
	case l.Replay.Paused:
		return cell.Say("%s REPLAY paused", cell.Glyph(sign))
	}
	return cell.Say("%s REPLAY ×%s", cell.Glyph(sign), speedText(l.Replay.Speed))
}

func (m *Model) badgeRole() cell.Role {
	switch m.link {
	case command.LinkNone, command.LinkSlow:
		return cell.LinkSlow
	case command.LinkStale:
		return cell.LinkStale
	case command.LinkFrozen, command.LinkReplay:
		return cell.LinkFrozen
	}
	return cell.LinkLive
}
