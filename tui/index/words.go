package index

import (
	"strings"
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// feedOf is the state of a rank's feed as the column shows it.
func feedOf(e *entry) (cell.Role, cell.Text) {
	switch e.Feed {
	case model.FeedLive:
		return cell.OK, cell.Lit("live")
	case model.FeedGap:
		return cell.Warn, cell.Lit("gap")
	case model.FeedDoubt:
		return cell.Warn, cell.Lit("doubt")
	case model.FeedSilent:
		return cell.Crit, cell.Lit("silent")
	case model.FeedNone:
		return cell.Warn, cell.Lit("none")
	case model.FeedApproximate:
		return cell.Dim, cell.Lit("approx.")
	}
	return cell.Dim, cell.Fit(string(e.Feed), 8)
}

// ageText is 0.2s below ten seconds, then 48s, 6m.
func ageText(now, at time.Time) cell.Text {
	if at.IsZero() {
		return cell.Unknown()
	}
	d := max(0, now.Sub(at))
	if d < 9950*time.Millisecond {
		return cell.Say("%ss", cell.Fixed(d.Seconds(), 1))
	}
	return cell.Age(d)
}

// bytesText is 8.41 MB.
func bytesText(n int64) cell.Text {
	v := float64(n)
	switch {
	case v >= 1e9:
		return cell.Say("%s GB", cell.Count(v/1e9))
	case v >= 1e6:
		return cell.Say("%s MB", cell.Count(v/1e6))
	case v >= 1e3:
		return cell.Say("%s kB", cell.Count(v/1e3))
	}
	return cell.Say("%s B", cell.Int(n))
}

// cause is one thing that a longer match was given up for.
type cause struct {
	tokens      int
	word, about cell.Text
}

// causes are those of l in the order of their size, none of them empty.
func causes(l model.Lost) []cause {
	all := []cause{
		{l.Load, cell.Lit("load"), cell.Lit("another target was cheaper")},
		{l.Cap, cell.Lit("cap"), cell.Lit("the one that held it was full or overloaded")},
		{l.Pin, cell.Lit("pins"), cell.Lit("a pin, a binding or an explicit rank")},
		{l.Filter, cell.Lit("filter"), cell.Lit("the one that held it drains or is not allowed")},
		{l.Tie, cell.Lit("ties"), cell.Lit("the cost was equal")},
		{l.Temperature, cell.Lit("temperature"), cell.Lit("drawn by probability")},
		{l.Mode, cell.Lit("mode"), cell.Lit("the mode does not look at caches")},
	}
	var out []cause
	for _, c := range all {
		at := len(out)
		if c.tokens <= 0 {
			continue
		}
		for at > 0 && out[at-1].tokens < c.tokens {
			at--
		}
		out = append(out[:at], append([]cause{c}, out[at:]...)...)
	}
	return out
}

// points splits the lost share of a rank's prompt tokens among its causes, in
// points of a hundred.
func points(e *entry, c cause) float64 {
	sum := e.Lost.Sum()
	if sum == 0 {
		return 0
	}
	return 100 * lostShare(e) * float64(c.tokens) / float64(sum)
}

// lostText is lost 9 load, 6 pins: the causes that cost a point or more.
func lostText(e *entry, most int) cell.Text {
	var t cell.Text
	n := 0
	for _, c := range causes(e.Lost) {
		p := points(e, c)
		if !(p >= 0.5) || n == most {
			continue
		}
		one := cell.Say("%s %s", cell.Fixed(p, 0), c.word)
		if n == 0 {
			t = cell.Say("lost %s", one)
		} else {
			t = cell.Say("%s, %s", t, one)
		}
		n++
	}
	return t
}

// note is the most urgent thing about a rank.
func note(e *entry) (cell.Role, cell.Text) {
	switch {
	case len(e.findings) > 0:
		return cell.Crit, cell.Fit(strings.TrimPrefix(e.findings[0].Message, e.Target.String()+" "), 200)
	case e.Feed == model.FeedGap:
		return cell.Warn, cell.Lit("in doubt: events are missing")
	case e.Feed == model.FeedDoubt:
		return cell.Warn, cell.Say("in doubt: events were lost, %s blocks may be gone", cell.Full(e.Doubtful))
	case e.Feed == model.FeedSilent:
		return cell.Crit, cell.Lit("gets traffic, says nothing")
	case e.Feed == model.FeedNone:
		return cell.Dim, cell.Lit("not heard since start")
	case e.rank != nil && e.rank.Availability == model.Draining:
		return cell.Dim, cell.Lit("draining")
	case e.Agreed.Known() && e.Agreed < 0.95:
		return cell.Warn, cell.Say("only %s as predicted", cell.PercentShort(float64(e.Agreed)))
	case lostShare(e) >= 0.05:
		return cell.Plain, lostText(e, 3)
	case e.Waiting > 0:
		return cell.Dim, cell.Say("%s blocks wait for a parent", cell.Full(e.Waiting))
	case e.Refused > 0:
		return cell.Warn, cell.Say("%s events refused", cell.Full(e.Refused))
	case e.Feed == model.FeedApproximate:
		return cell.Dim, cell.Lit("guessed from what was routed")
	}
	return cell.Dim, cell.Text{}
}

// sentence says in full what the feed's state means and what follows from it.
func sentence(e *entry, now time.Time) cell.Text {
	switch e.Feed {
	case model.FeedLive:
		return cell.Say("Events come in order, the last %s ago; what the index says of this rank is what its engine said.", ageText(now, e.EventAt))
	case model.FeedGap:
		return cell.Lit("Events are missing, so what the index says of this rank is in doubt. Live events wait aside for the missing ones; if those never come, the rank is in doubt for two minutes.")
	case model.FeedDoubt:
		return cell.Say("Events were lost and nothing brings them again. %s of this rank's blocks were not told of since: they count for two minutes more at most, and until a request finds less than it should.", cell.Full(e.Doubtful))
	case model.FeedSilent:
		return cell.Lit("The rank serves traffic and publishes nothing. Its prefixes look cold, so it is only sent work by load.")
	case model.FeedNone:
		return cell.Lit("Nothing has been heard of this rank since the router started: no events, and no traffic that would call for some.")
	case model.FeedApproximate:
		return cell.Lit("This engine publishes no events. What it holds is guessed from what was routed to it, so every figure here is approximate.")
	}
	return cell.Lit("The state of this feed is not known to this console.")
}
