package tuning

import (
	"strconv"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/edit"
	"adpdeck/tui/view"
)

// grid is where the columns of the knobs stand.
type grid struct {
	now, staged   int // widths
	slider, left  int // the slider's width and its column
	defaultAt     int
	hasRange, has bool // room for range and default
}

func fit(w int) grid {
	g := grid{now: 6, staged: 8, left: 38, slider: 18}
	if w < 70 {
		g.left, g.slider = 36, 17
	}
	g.slider = min(36, g.slider+max(0, (w-80)/2))
	g.defaultAt = g.left + g.slider + 2
	g.hasRange = w >= g.left+g.slider
	g.has = w >= g.defaultAt+7
	return g
}

// labelWidth is the width of names; they begin in column 3.
const labelWidth = 18

func (g *grid) head(b *cell.Block, name cell.Text) {
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(cell.Title, labelWidth, name)
	b.Right(cell.Title, g.now, cell.Lit("NOW"))
	b.Right(cell.Title, g.staged, cell.Lit("STAGED"))
	if g.hasRange {
		b.To(g.left)
		b.Left(cell.Title, g.slider, cell.Lit("RANGE"))
	}
	if g.has {
		b.To(g.defaultAt)
		b.Put(cell.Title, cell.Lit("DEFAULT"))
	}
}

// begin starts an item's row with the cursor's sign.
func begin(b *cell.Block, cursor bool) {
	kind, sign := cell.Normal, cell.Lit(" ")
	if cursor {
		kind, sign = cell.Cursor, cell.Glyph(b.Ink().Glyphs.CursorMark)
	}
	b.Begin(kind)
	b.Gap(1)
	b.Left(cell.Marked, 2, sign)
}

// row paints one line of the knobs.
func (g *grid) row(b *cell.Block, f *view.Frame, d *doc, l line, cursor bool) {
	switch l.item.kind {
	case kindNone:
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Title, l.title)
	case kindKnob:
		field := l.item.field()
		g.value(b, f, field, nil, cell.Foreign(field.Label), d.off(field), cursor)
	case kindWeight:
		t := l.item.target
		g.value(b, f, l.item.field(), &t, cell.Fit(t.String(), labelWidth-1), cell.Text{}, cursor)
	case kindMore:
		begin(b, cursor)
		b.Put(cell.Dim, moreText(f, b.Width()))
	}
}

// moreText counts the ranks at the default that are not listed.
func moreText(f *view.Frame, w int) cell.Text {
	rest := 0
	for i := range f.State.Ranks {
		t := f.State.Ranks[i].Target
		if _, staged := f.StagedValue(model.FieldWeight, &t); !staged && f.State.Settings.WeightOf(t) == model.DefaultWeight {
			rest++
		}
	}
	if rest == len(f.State.Ranks) {
		return cell.Say("all %s at %s   %s lists them", cell.Int(rest), cell.Fixed(model.DefaultWeight, 2), opens(f))
	}
	return cell.Say("%s more at %s   %s lists them", cell.Int(rest), cell.Fixed(model.DefaultWeight, 2), opens(f))
}

// value paints name, value in force, staged value, range and default.
func (g *grid) value(b *cell.Block, f *view.Frame, field *model.Field, t *model.Target, name, off cell.Text, cursor bool) {
	begin(b, cursor)
	plain, strong := cell.Plain, cell.Strong
	if !off.Empty() {
		plain, strong = cell.Dim, cell.Dim
	}
	b.Left(strong, labelWidth-1, name)
	b.Gap(1)
	now := inForce(f, field, t)
	staged, isStaged := f.StagedValue(field.Name, t)
	if field.Kind == model.KindChoice {
		b.Put(plain, edit.Pretty(field, now))
		if isStaged {
			b.Put(cell.Dim, cell.Lit(" → "))
			b.Put(cell.Staged, edit.Pretty(field, staged))
		}
	} else {
		b.Right(plain, g.now, short(field, now, g.now))
		if isStaged {
			b.Right(cell.Staged, g.staged, short(field, staged, g.staged-1))
		} else {
			b.Right(cell.Dim, g.staged, cell.Lit("·"))
		}
	}
	if !off.Empty() {
		b.To(g.left)
		b.Gap(2)
		b.Left(cell.Dim, b.Width()-b.At()-1, off)
		return
	}
	g.rangeAndDefault(b, f, field, t, isStaged, staged, now)
}

// short is a value that fits into w cells.
func short(field *model.Field, text string, w int) cell.Text {
	t := edit.Pretty(field, text)
	if t.Width() <= w {
		return t
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return cell.Count(x)
	}
	return t
}

func (g *grid) rangeAndDefault(b *cell.Block, f *view.Frame, field *model.Field, t *model.Target, isStaged bool, staged, now string) {
	if g.hasRange && b.At() < g.left {
		b.To(g.left)
		switch field.Kind {
		case model.KindFloat, model.KindInt:
			b.Slider(g.slider, sliderOf(field, now, staged, isStaged))
		case model.KindBool:
			b.Left(cell.Dim, g.slider, cell.Lit("off or on"))
		}
	}
	if !g.has || b.At() > g.defaultAt {
		return
	}
	role := cell.Dim
	if !edit.Same(field, now, field.Default) {
		role = cell.Plain
	}
	b.To(g.defaultAt)
	b.Left(role, b.Width()-b.At()-1, short(field, field.Default, 11))
}

func sliderOf(field *model.Field, now, staged string, isStaged bool) cell.Slider {
	s := cell.Slider{
		Lo: field.Min, Hi: field.Max, LoText: cell.Count(field.Min), HiText: cell.Count(field.Max), HasStaged: isStaged,
	}
	s.Now = float64(model.Unknown()) // none stands nowhere on the range
	if x, err := strconv.ParseFloat(now, 64); err == nil {
		s.Now = x
	}
	if x, err := strconv.ParseFloat(staged, 64); err == nil {
		s.Staged = x
	} else {
		s.HasStaged = false
	}
	return s
}
