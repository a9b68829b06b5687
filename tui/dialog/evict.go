package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

type forgetBody struct {
	convList
	verb model.Verb
}

// NewEvict asks before conversations, at least one, are forgotten.
func NewEvict(f *view.Frame, convs []*model.Conv) *Box {
	e := &forgetBody{convList: convList{convs}, verb: model.VerbEvict}
	x := &Box{title: cell.Say("Evict %s", e.named()), button: cell.Lit("Evict"), version: f.State.Version, body: e}
	x.wants(len(convs))
	return x
}

// NewUnpin asks before the operator's pin is taken from conversations, at
// least one.
func NewUnpin(f *view.Frame, convs []*model.Conv) *Box {
	e := &forgetBody{convList: convList{convs}, verb: model.VerbUnpin}
	x := &Box{title: cell.Say("Remove the pin of %s", e.named()), button: cell.Lit("Remove"), version: f.State.Version, body: e}
	x.wants(len(convs))
	return x
}

func (e *forgetBody) rows(f *view.Frame) int { return e.convList.rows() + 1 + e.notes() }

func (e *forgetBody) notes() int {
	if e.verb == model.VerbUnpin {
		return 2
	}
	return 4
}

func (e *forgetBody) paint(b *cell.Block, f *view.Frame, h int) {
	own := min(e.convList.rows(), max(1, h-e.notes()))
	e.convList.paint(b, f, min(own, h))
	h -= own
	gap(b, &h, e.notes())
	if e.verb == model.VerbUnpin {
		line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("the policy decides again from the next turn on"))
		line(b, &h, cell.Lit("undo"), cell.Plain, cell.Say("%s pins them again", f.KeyOf(command.Undo)))
		return
	}
	line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("pin and binding forgotten; next turn placed afresh"))
	line(b, &h, cell.Lit("cost"), cell.Plain, cell.Say("up to %s cached tokens probably recomputed", cell.Full(e.cached())))
	line(b, &h, cell.Lit("engine"), cell.Plain, cell.Say("blocks in the cache of %s are not touched", e.where()))
	line(b, &h, cell.Lit("undo"), cell.Plain, cell.Say("%s binds them again", f.KeyOf(command.Undo)))
}

func (e *forgetBody) key(*view.Frame, view.Key) {}

func (e *forgetBody) fire(*view.Frame) (view.Send, cell.Text) {
	return view.Send{Command: model.Command{Verb: e.verb, Convs: e.keys()}}, cell.Text{}
}
