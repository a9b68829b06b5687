package workers

import (
	"strings"
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// feedNames are the feeds that have a dot in the table, in their order.
func feedNames() [3]string {
	return [3]string{model.FeedRequests, model.FeedMetrics, model.FeedKVEvents}
}

// dot is the sign of a feed's state. Shapes differ, so that no colour is needed.
func dot(ink cell.Ink, s model.IndexFeed) (cell.Role, cell.Text) {
	g := &ink.Glyphs
	switch s {
	case model.FeedLive:
		return cell.OK, cell.Glyph(g.FeedLive)
	case model.FeedStale:
		return cell.Warn, cell.Glyph(g.FeedStale)
	case model.FeedGap, model.FeedDoubt: // batches are missing
		return cell.Warn, cell.Glyph(g.FeedGap)
	case model.FeedSilent:
		return cell.Crit, cell.Glyph(g.FeedSilent)
	case model.FeedNone:
		return cell.Dim, cell.Glyph(g.FeedNone)
	case model.FeedApproximate:
		return cell.Dim, cell.Glyph(g.FeedGuess)
	}
	return cell.Warn, cell.Glyph(g.FeedOther)
}

// legend names the signs.
func legend(ink cell.Ink) []cell.Run {
	var out []cell.Run
	for i, x := range [...]struct {
		state model.IndexFeed
		word  cell.Text
	}{
		{model.FeedLive, cell.Lit(" live")},
		{model.FeedStale, cell.Lit(" stale")},
		{model.FeedGap, cell.Lit(" gap")},
		{model.FeedSilent, cell.Lit(" silent")},
		{model.FeedNone, cell.Lit(" none")},
		{model.FeedApproximate, cell.Lit(" guessed")},
	} {
		if i > 0 {
			out = append(out, cell.Run{Role: cell.Dim, Text: cell.Lit("  ")})
		}
		role, sign := dot(ink, x.state)
		out = append(out, cell.Run{Role: role, Text: sign}, cell.Run{Role: cell.Dim, Text: x.word})
	}
	return out
}

// feedWords is what a filter sees of the feeds: requests:live metrics:stale.
func feedWords(e *entry) string {
	if len(e.Feeds) == 0 {
		return ""
	}
	words := make([]string, len(e.Feeds))
	for i := range e.Feeds {
		words[i] = e.Feeds[i].Name + ":" + string(e.Feeds[i].State)
	}
	return strings.Join(words, " ")
}

func modelWords(e *entry) string { return strings.Join(e.Models, " ") }

// stateWord is what a filter sees of the state.
func stateWord(e *entry) string {
	switch {
	case e.Liveness == model.LiveDown:
		return "down"
	case e.drains():
		return "drain"
	case e.simulated():
		return "simulated"
	}
	return string(e.Liveness)
}

// drains reports that all ranks drain.
func (e *entry) drains() bool { return e.draining > 0 && e.draining == len(e.ranks) }

// state is what the column says: whether the engine answers, else whether the
// worker takes work.
func (e *entry) state(f *view.Frame) (cell.Role, cell.Text) {
	switch {
	case e.Liveness == model.LiveDown && e.LivenessAt.IsZero():
		return cell.Crit, cell.Lit("down")
	case e.Liveness == model.LiveDown:
		return cell.Crit, cell.Say("down %s", cell.Age(since(f.Now, e.LivenessAt)))
	case e.drains():
		return cell.Warn, e.left.Short()
	case e.Liveness == model.LiveParts:
		return cell.Warn, cell.Lit("in parts")
	case e.simulated():
		return cell.Dim, cell.Lit("simulated")
	case e.Liveness == model.LiveUnknown:
		return cell.Dim, cell.Lit("not asked")
	case e.Liveness == model.LiveUp:
		return cell.Plain, cell.Lit("up")
	}
	return cell.Warn, cell.Fit(string(e.Liveness), 10)
}

// activeText is 92/128, ≥82/128 where ranks have not reported, and no cap where
// that is not known.
func (e *entry) activeText() cell.Text {
	if e.reported == 0 {
		return cell.Unknown()
	}
	t := cell.Int(e.active)
	if e.partly() {
		t = cell.Say("≥%s", t)
	}
	if e.placesUnknown || e.partly() {
		return t
	}
	return cell.Say("%s/%s", t, cell.Int(e.places))
}

func (e *entry) tokensText() cell.Text {
	switch {
	case e.reported == 0:
		return cell.Unknown()
	case e.partly():
		return cell.Say("≥%s", cell.Kilo(float64(e.tokens)))
	}
	return cell.Kilo(float64(e.tokens))
}

// steering says how a rank is asked for.
func (e *entry) steering() cell.Text {
	switch e.Steering {
	case model.SteerHeader:
		return cell.Lit("rank by header")
	case model.SteerBody:
		return cell.Lit("rank by body field")
	case model.SteerHeaderBody:
		return cell.Lit("rank by header and body")
	case model.SteerPort:
		return cell.Lit("port per rank")
	case model.SteerConversation:
		return cell.Lit("the engine picks the rank, by conversation")
	case model.SteerNone:
		return cell.Lit("the engine picks the rank")
	case model.SteerAuto:
		return cell.Lit("steering not found yet")
	}
	return cell.Fit(string(e.Steering), 24)
}

// ageText is 0.2s below ten seconds, then 48s, 6m; empty where nothing came.
func ageText(now, at time.Time) cell.Text {
	if at.IsZero() {
		return cell.Text{}
	}
	d := since(now, at)
	if d < 9950*time.Millisecond {
		return cell.Say("%ss", cell.Fixed(d.Seconds(), 1))
	}
	return cell.Age(d)
}

// feedText is kv events silent 48s: the state, and how long ago the feed last
// told something.
func feedText(f *view.Frame, x *model.WorkerFeed) cell.Text {
	state := cell.Fit(string(x.State), 16)
	if x.State == model.FeedApproximate {
		state = cell.Lit("guessed")
	}
	if age := ageText(f.Now, x.At); !age.Empty() {
		return cell.Say("%s %s %s", cell.Fit(x.Name, 16), state, age)
	}
	return cell.Say("%s %s", cell.Fit(x.Name, 16), state)
}

// odd says what is wrong with a worker, the most urgent first; empty when
// nothing is.
func (e *entry) odd(f *view.Frame) (cell.Role, cell.Text) {
	switch {
	case e.Liveness == model.LiveDown && e.LivenessWhy == "":
		return cell.Crit, cell.Lit("it does not answer")
	case e.Liveness == model.LiveDown:
		return cell.Crit, cell.Say("down: %s", cell.Fit(e.LivenessWhy, 120))
	case len(e.findings) > 0:
		return cell.Crit, cell.Fit(e.findings[0].Message, 160)
	case e.Liveness == model.LiveParts:
		return cell.Warn, cell.Say("some of its ranks do not answer: %s", cell.Fit(e.LivenessWhy, 120))
	case e.ignored > 0:
		return cell.Warn, cell.Say("%s requests ran on another rank than asked", cell.Full(e.ignored))
	}
	if x := e.worst(); x != nil && badness(x.State) > 1 {
		return cell.Warn, feedText(f, x)
	}
	switch {
	case e.requests().differs() || e.blocks().differs():
		return cell.Warn, cell.Lit("its capacity is not what was declared")
	case e.draining > 0:
		return cell.Warn, cell.Say("%s of %s ranks drain: %s", cell.Int(e.draining), cell.Int(len(e.ranks)), e.left.Short())
	case e.partly() && !e.simulated():
		return cell.Warn, cell.Say("%s of %s ranks have reported", cell.Int(e.reported), cell.Int(max(len(e.ranks), e.Ranks)))
	}
	return cell.Dim, cell.Text{}
}
