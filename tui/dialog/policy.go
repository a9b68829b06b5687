package dialog

import (
	"slices"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// Choice picks one value of a field and stages it. Nothing is sent.
type Choice struct {
	field model.Field
	now   string
	at    int
}

// NewChoice lists the values of a field that has options; the one staged, or
// else in force, is under the cursor.
func NewChoice(f *view.Frame, name string) *Choice {
	c := &Choice{}
	c.field, _ = model.FieldByName(name)
	c.now = model.FieldText(&f.State.Settings, name, model.Target{})
	want := c.now
	if staged, ok := f.StagedValue(name, nil); ok {
		want = staged
	}
	for i, o := range c.field.Options {
		if o == want {
			c.at = i
		}
	}
	return c
}

// Title stands in the upper border.
func (c *Choice) Title() cell.Text { return cell.Say("Choose %s", cell.Foreign(c.field.Label)) }

// Foot stands in the lower border.
func (c *Choice) Foot(f *view.Frame) cell.Text {
	return cell.Say("against v%s", cell.Int(f.State.Version))
}

// Size is the size wanted inside the border.
func (c *Choice) Size(*view.Frame) (w, h int) { return width, len(c.field.Options) + 4 }

// Acts reports that nothing is started here: a choice is staged.
func (c *Choice) Acts() bool { return false }

// Draw returns h lines of w cells.
func (c *Choice) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	airy := h >= len(c.field.Options)+3
	if airy {
		b.Blank(1)
	}
	for i, o := range c.field.Options {
		kind, sign := cell.Normal, cell.Lit(" ")
		if i == c.at {
			kind, sign = cell.Cursor, cell.Glyph(f.Ink.Glyphs.CursorMark)
		}
		b.Begin(kind)
		b.Gap(pad)
		b.Left(cell.Marked, 2, sign)
		b.Left(cell.Strong, 14, cell.Foreign(o))
		b.Left(cell.Dim, 6, nowNote(o == c.now))
		b.Left(cell.Plain, b.Width()-b.At()-pad, meaning(o))
	}
	if airy {
		b.Blank(1)
	}
	b.Begin(cell.Normal)
	b.Gap(pad)
	b.Put(cell.Dim, cell.Say("%s choose   %s stages it, %s applies   esc keeps", moveKeys(f), cell.Glyph(f.Ink.Glyphs.Enter), f.KeyOf(command.Apply)))
	return b.Lines(h)
}

func nowNote(now bool) cell.Text {
	if now {
		return cell.Lit("now")
	}
	return cell.Text{}
}

// meaning says in a few words what an option does.
func meaning(option string) cell.Text {
	switch option {
	case string(model.PolicyDefault):
		return cell.Lit("balances requests and tokens, no cache")
	case string(model.PolicyKVAware):
		return cell.Lit("cached prefix against load")
	case string(model.PolicyConversation):
		return cell.Lit("a conversation stays on its rank")
	case model.PlaceRoundRobin:
		return cell.Lit("the next rank in turn")
	case model.PlaceLeastQueued:
		return cell.Lit("the rank with the fewest requests")
	case model.PlaceLeastTokens:
		return cell.Lit("the rank with the fewest tokens")
	case string(model.ModeLeastLoaded):
		return cell.Lit("the worker with the least load")
	case string(model.ModeKV):
		return cell.Lit("the cheapest rank: Dynamo's cost")
	case string(model.ModeLockstep):
		return cell.Lit("the rank that slows its worker least")
	case string(model.ModeRandom):
		return cell.Lit("any worker, by chance")
	case string(model.ModePowerOfTwo):
		return cell.Lit("the less loaded of two by chance")
	case string(model.ModeDirect):
		return cell.Lit("the request names its worker")
	}
	return cell.Text{}
}

// Key moves and chooses.
func (c *Choice) Key(f *view.Frame, k view.Key) (in view.Intent, done bool) {
	n := len(c.field.Options)
	switch {
	case k.Name == "down", k.Name == "tab", f.Starts(k, command.Down):
		c.at = (c.at + 1) % max(n, 1)
	case k.Name == "up", k.Name == "shift+tab", f.Starts(k, command.Up):
		c.at = (c.at + n - 1) % max(n, 1)
	case k.Name == "enter":
		if c.at >= n {
			return nil, true
		}
		v := c.field.Options[c.at]
		if v == c.now {
			return view.Unstage{Field: c.field.Name}, true
		}
		return view.Stage{Values: []model.FieldValue{{Field: c.field.Name, Value: v}}}, true
	case slices.Contains([]string{"esc", "q", "n", "ctrl+c"}, k.Name):
		return nil, true
	}
	return nil, false
}
