package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// option is a line of the chooser: a rank, or a word of its own.
type option struct {
	word   string // "auto", "remove"; empty for a rank
	target model.Target
}

// chooser picks a rank or a word. Its cursor is an identity.
type chooser struct {
	words []string
	at    option
	top   int
	// matched is what a rank is known to hold of the conversation, in tokens.
	matched map[model.Target]int
	// here marks the rank where the conversations are.
	here model.Target
}

// most is how many lines the chooser would like.
const mostOptions = 8

func (c *chooser) options(f *view.Frame) []option {
	out := make([]option, 0, len(c.words)+len(f.State.Ranks))
	for _, w := range c.words {
		out = append(out, option{word: w})
	}
	for i := range f.State.Ranks {
		out = append(out, option{target: f.State.Ranks[i].Target})
	}
	return out
}

func (c *chooser) rows(f *view.Frame) int {
	return min(mostOptions, len(c.words)+len(f.State.Ranks))
}

func (c *chooser) line(all []option) int {
	for i, o := range all {
		if o == c.at {
			return i
		}
	}
	return -1
}

// moveKeys are the keys that move it: j/k.
func moveKeys(f *view.Frame) cell.Text {
	return cell.Say("%s/%s", f.KeyOf(command.Down), f.KeyOf(command.Up))
}

// key moves the cursor.
func (c *chooser) key(f *view.Frame, k view.Key) {
	all := c.options(f)
	if len(all) == 0 {
		return
	}
	at := max(0, c.line(all))
	switch {
	case k.Name == "down", f.Starts(k, command.Down):
		at++
	case k.Name == "up", f.Starts(k, command.Up):
		at--
	case k.Name == "home", f.Starts(k, command.First):
		at = 0
	case k.Name == "end", f.Starts(k, command.Last):
		at = len(all) - 1
	case k.Name == "pgdown", f.Starts(k, command.PageDown):
		at += mostOptions
	case k.Name == "pgup", f.Starts(k, command.PageUp):
		at -= mostOptions
	default:
		return
	}
	c.at = all[min(max(at, 0), len(all)-1)]
}

// paint fills at most h rows with the options around the cursor.
func (c *chooser) paint(b *cell.Block, f *view.Frame, h int, word func(string) cell.Text) {
	all := c.options(f)
	line := c.line(all)
	from, to := layout.Window(len(all), min(h, c.rows(f)), line, c.top)
	c.top = from
	for i := from; i < to; i++ {
		c.option(b, f, all[i], i == line, word)
	}
}

func (c *chooser) option(b *cell.Block, f *view.Frame, o option, cursor bool, word func(string) cell.Text) {
	kind, sign := cell.Normal, cell.Lit(" ")
	if cursor {
		kind, sign = cell.Cursor, cell.Glyph(f.Ink.Glyphs.CursorMark)
	}
	b.Begin(kind)
	b.Gap(pad)
	b.Left(cell.Marked, 2, sign)
	if o.word != "" {
		b.Left(cell.Strong, 8, cell.Foreign(o.word))
		b.Left(cell.Dim, b.Width()-b.At()-pad, word(o.word))
		return
	}
	b.Left(cell.Strong, 8, cell.Fit(o.target.String(), 8))
	r := rankOf(f.State, o.target)
	if r == nil {
		b.Put(cell.Warn, cell.Lit("gone"))
		return
	}
	known := !r.ReportedAt.IsZero()
	active, tokens := cell.Unknown(), cell.Unknown()
	if known {
		active, tokens = cell.Say("%s/%s", cell.Int(r.Active), cell.Int(r.MaxActive)), cell.Kilo(float64(r.Tokens))
	}
	b.Right(cell.Plain, 7, active)
	b.Right(cell.Plain, 9, tokens)
	if b.Width() > 50 {
		b.Put(cell.Dim, cell.Lit(" tokens"))
	}
	if m, ok := c.matched[o.target]; ok && b.Width() > 60 {
		b.Put(cell.Dim, cell.Say("  holds %s", cell.Full(m)))
	}
	role, note := c.note(r, o)
	b.Gap(2)
	b.Put(role, note)
}

// note is what to know before choosing the rank.
func (c *chooser) note(r *model.Rank, o option) (cell.Role, cell.Text) {
	switch {
	case r.Availability == model.Draining:
		return cell.Warn, cell.Lit("draining")
	case r.Weight == 0:
		return cell.Warn, cell.Lit("weight 0")
	case r.MaxActive > 0 && r.Active >= r.MaxActive:
		return cell.Warn, cell.Lit("full")
	case o.target == c.here:
		return cell.Dim, cell.Lit("here now")
	}
	return cell.Dim, cell.Text{}
}

// least is the ready rank with the fewest tokens other than not.
func least(s *model.State, not model.Target) (model.Target, bool) {
	var best *model.Rank
	for i := range s.Ranks {
		r := &s.Ranks[i]
		if r.Target == not || r.Availability != model.Ready || r.Weight == 0 || (r.MaxActive > 0 && r.Active >= r.MaxActive) {
			continue
		}
		if best == nil || r.Tokens < best.Tokens {
			best = r
		}
	}
	if best == nil {
		return model.Target{}, false
	}
	return best.Target, true
}

// matches is what ranks held of the conversation when it was last decided.
func matches(f *view.Frame, k model.ConvKey) map[model.Target]int {
	for i := len(f.Decisions) - 1; i >= 0; i-- {
		d := f.Decisions[i]
		if d.Conv != k {
			continue
		}
		out := map[model.Target]int{}
		for _, c := range d.Placement.Candidates {
			out[model.Target{Worker: d.Target.Worker, Rank: c.Rank}] = c.MatchTokens
		}
		return out
	}
	return nil
}
