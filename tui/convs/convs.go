// Package convs is the console's view of conversations: who they are, what
// holds them to a rank, what of their prompts was found in cache, and for the
// one under the cursor its last turns and why each went where it did.
//
// Names from outside are painted escaped; what is copied or sent is the raw
// key. The view keeps a list's state (cursor, marks, filter and order belong
// to conversations, never to lines) and sorts anew only when the figures have
// changed.
package convs

import (
	"strings"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/dialog"
	"adpdeck/tui/list"
	"adpdeck/tui/view"
)

// View is the view of conversations.
type View struct {
	list     *list.List[model.ConvKey, *model.Conv]
	rev      uint64
	of       *model.State
	busy     bool
	frame    *view.Frame // the one last drawn, for ages in filters
	detail   bool        // the detail has the whole body
	noDetail bool        // no detail beside the list
	more     bool
	page     int
	hidden   int
	turns    turnCache
	names    names
}

// New returns the view, ordered by cached tokens.
func New() *View {
	v := &View{page: 10}
	v.list = list.New(list.Config[model.ConvKey, *model.Conv]{
		Key: func(c *model.Conv) model.ConvKey { return c.Key }, Fields: v.fields(), Sort: "cached",
	})
	return v
}

func (v *View) fields() []list.Field[*model.Conv] {
	type field = list.Field[*model.Conv]
	num := func(name string, get func(c *model.Conv) float64) field {
		return field{Name: name, Number: get, Falling: true}
	}
	return []field{
		{Name: "conversation", Text: func(c *model.Conv) string { return c.Key.ID }},
		{Name: "tenant", Text: func(c *model.Conv) string { return c.Key.Tenant }},
		{Name: "model", Text: func(c *model.Conv) string { return c.Key.Model }},
		{Name: "pin", Text: pinWord},
		{
			Name: "rank", Exact: true, Text: func(c *model.Conv) string { return dialog.Where(c).String() },
			Compare: func(a, b *model.Conv) int {
				x, y := dialog.Where(a), dialog.Where(b)
				switch {
				case x.Less(y):
					return -1
				case y.Less(x):
					return 1
				}
				return 0
			},
		},
		num("turns", func(c *model.Conv) float64 { return float64(c.Turns) }),
		num("cached", func(c *model.Conv) float64 { return float64(c.CachedTokens) }),
		num("hit", hitOf),
		{Name: "idle", Number: v.idleSeconds},
		num("moves", func(c *model.Conv) float64 { return float64(c.Moves) }),
		num("lost", func(c *model.Conv) float64 { return float64(c.Lost) }),
	}
}

// idleSeconds is how long c has been quiet, 0 while a turn runs.
func (v *View) idleSeconds(c *model.Conv) float64 {
	if c.Open > 0 || v.frame == nil {
		return 0
	}
	return max(0, v.frame.Now.Sub(c.LastAt).Seconds())
}

// hitOf is the share of the last prompt that was found in cache.
func hitOf(c *model.Conv) float64 {
	if c.PromptTokens <= 0 {
		return float64(model.Unknown())
	}
	return float64(c.CachedTokens) / float64(c.PromptTokens)
}

// isLost reports whether the last turn ran elsewhere than where the
// conversation is bound.
func isLost(c *model.Conv) bool {
	return c.Lost > 0 && c.Pin != model.PinNone && c.Last != c.Bound
}

// pinWord is what filters see of the pin: auto, moved, op bob, lost, none.
func pinWord(c *model.Conv) string {
	switch {
	case isLost(c):
		return "lost"
	case c.Pin == model.PinOperator:
		return "op " + c.By
	case c.Pin == model.PinMigrated:
		return "moved"
	case c.Pin == model.PinAuto:
		return "auto"
	}
	return "none"
}

// ID is the view's name in the command table.
func (v *View) ID() command.View { return command.Convs }

// Title is its name in the row of tabs.
func (v *View) Title() cell.Text { return cell.Lit("Convs") }

// update brings the list up to the frame, only when something changed.
func (v *View) update(f *view.Frame) {
	v.frame = f
	if v.rev == f.Rev && v.busy == f.Busy && v.of == f.State {
		return
	}
	v.rev, v.busy, v.of = f.Rev, f.Busy, f.State
	v.names.read(f.State.Convs)
	v.list.Update(f.State.Convs, f.Busy)
}

// Situate adds the conversation under the cursor and the marks.
func (v *View) Situate(f *view.Frame, s *command.Situation) {
	v.update(f)
	c, ok := v.list.Selected()
	s.Selected, s.Marked, s.Filtered = ok, v.list.Marks(), v.list.Filtered()
	s.Pinned = ok && c.Pin == model.PinOperator
}

// Do carries out a command.
func (v *View) Do(f *view.Frame, c command.ID) (view.Intent, bool) {
	v.update(f)
	v.list.Touch()
	switch c {
	case command.Open:
		v.detail = !v.detail
	case command.Odd:
		return v.nextOdd(f), true
	case command.Columns:
		v.more = !v.more
	case command.Side:
		v.noDetail = !v.noDetail
	case command.Pin, command.Unpin, command.Evict, command.Migrate:
		return v.ask(f, c, v.list.Targets(), nil), true
	default:
		return nil, v.list.Do(c, v.page)
	}
	return nil, true
}

// ask opens the dialog of a command for conversations.
func (v *View) ask(f *view.Frame, c command.ID, convs []*model.Conv, to *model.Target) view.Intent {
	switch {
	case len(convs) == 0:
		return view.Toast{Level: view.Note, Text: cell.Lit("nothing selected")}
	case len(convs) > model.MaxCommandConvs:
		return view.Toast{Level: view.Failed, Text: cell.Say("%s conversations are too many at once: mark at most %s",
			cell.Full(len(convs)), cell.Full(model.MaxCommandConvs))}
	}
	switch c {
	case command.Pin:
		return view.Show{Dialog: dialog.NewPin(f, convs, to)}
	case command.Unpin:
		return view.Show{Dialog: dialog.NewUnpin(f, pinned(convs))}
	case command.Evict:
		return view.Show{Dialog: dialog.NewEvict(f, convs)}
	}
	return view.Show{Dialog: dialog.NewMigrate(f, convs, to)}
}

// pinned keeps those with an operator's pin; none at all keeps all, and the
// router will say so.
func pinned(convs []*model.Conv) []*model.Conv {
	var out []*model.Conv
	for _, c := range convs {
		if c.Pin == model.PinOperator {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return convs
	}
	return out
}

// Typing reports that the filter is being typed.
func (v *View) Typing() bool { return v.list.Typing() }

// Key takes a key while typing.
func (v *View) Key(f *view.Frame, k view.Key) view.Intent {
	v.list.Key(k)
	return nil
}

// Back closes one level: the detail, then what the list has open.
func (v *View) Back(f *view.Frame) bool {
	if v.detail {
		v.detail = false
		return true
	}
	return v.list.Back()
}

// SetFilter takes a filter from another view; one that does not parse is
// dropped. The detail closes, so that the list is seen.
func (v *View) SetFilter(text string) {
	_ = v.list.SetFilter(text)
	v.detail = false
}

// SortFields names the columns to sort by.
func (v *View) SortFields() (names []string, now string, falling bool) {
	now, falling = v.list.Order()
	return v.list.FieldNames(), now, falling
}

// SortBy orders by the named column.
func (v *View) SortBy(name string) bool { return v.list.SortBy(name) }

// CopyText is the ids that are marked, or the one under the cursor, raw.
func (v *View) CopyText(f *view.Frame) string {
	v.update(f)
	var ids []string
	for _, c := range v.list.Targets() {
		ids = append(ids, c.Key.ID)
	}
	return strings.Join(ids, "\n")
}

// Answered leaves what was refused marked and clears the other marks.
func (v *View) Answered(cmd model.Command, reply model.Reply) {
	switch cmd.Verb {
	case model.VerbPin, model.VerbUnpin, model.VerbEvict, model.VerbMigrate:
	default:
		return
	}
	if !reply.Accepted || v.list.Marks() == 0 {
		return
	}
	var left []model.ConvKey
	for _, it := range reply.Items {
		if !it.Done && v.list.Marked(it.Conv) {
			left = append(left, it.Conv)
		}
	}
	v.list.SetMarks(left)
}

// Select puts the cursor on a conversation and reports whether it is listed.
func (v *View) Select(k model.ConvKey) bool { return v.list.Select(k) }

// Seek puts the cursor on a conversation; a filter that hides it goes.
func (v *View) Seek(f *view.Frame, s view.Subject) bool {
	v.update(f)
	if !v.list.Select(s.Conv) {
		v.SetFilter("")
	}
	return v.list.Select(s.Conv)
}
