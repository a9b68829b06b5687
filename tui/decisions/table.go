package decisions

import (
	"math"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// sheet is the candidates' table of a story at one width.
type sheet struct {
	s       *story
	nameW   int
	columns []column
	barAt   int
	barW    int
	scale   float64
	// waiting says that nothing could be chosen: every rank has a row with what
	// kept it out.
	waiting bool
}

// wideTable is the width from which formulas are spelled out.
const wideTable = 104

func newSheet(s *story, w int) *sheet {
	t := &sheet{s: s, nameW: 4}
	for _, list := range [][]row{s.rows, s.excluded} {
		for i := range list {
			t.nameW = max(t.nameW, name(list[i].target).Width())
		}
	}
	t.nameW = min(t.nameW+2, max(6, w/4))
	t.columns = s.columns(w >= wideTable)
	t.barAt = 3 + t.nameW + 3
	for _, c := range t.columns {
		t.barAt += c.width
	}
	t.barW = min(44, w-2-t.barAt)
	if len(s.rows) == 0 && s.d.Selection == nil {
		t.waiting = true
	}
	for i := range s.rows {
		t.scale = max(t.scale, s.bar(&s.rows[i], true)+s.bar(&s.rows[i], false))
	}
	return t
}

// bar is the length of a row's bar, its solid part or the thin one behind it.
func (s *story) bar(r *row, solid bool) float64 {
	v := 0.0
	switch s.by {
	case byScore, byDynamo, byLockstep:
		if v = r.load; solid {
			v = r.prefill
		}
	default:
		switch {
		case !solid:
		case s.by == byCount:
			v = r.count
		default:
			v = r.tokens
		}
	}
	if v != v || v < 0 {
		return 0
	}
	return v
}

// head paints the titles and the scale of the bars.
func (t *sheet) head(b *cell.Block) {
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(cell.Title, t.nameW, cell.Lit("RANK"))
	for _, c := range t.columns {
		b.Right(cell.Title, c.width, c.title)
	}
	if t.barW < 12 || t.scale <= 0 {
		return
	}
	step := nice(t.scale)
	for v := 0.0; v <= t.scale; v += step {
		at := t.barAt + int(v/t.scale*float64(t.barW))
		label := amount(v)
		if at < b.At() || at+label.Width() > b.Width() {
			continue
		}
		b.To(at)
		b.Put(cell.Dim, label)
	}
}

// nice is a round step that fits two or three times into v.
func nice(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{.25, .5, 1, 2, 3, 4} {
		if v/(k*unit) < 4 {
			return k * unit
		}
	}
	return 5 * unit
}

// row paints one candidate.
func (t *sheet) row(b *cell.Block, r *row) {
	plain, sign := cell.Plain, cell.Lit(" ")
	b.Begin(cell.Normal)
	if r.chosen {
		plain, sign = cell.Strong, cell.Lit("▶")
	}
	b.Gap(1)
	b.Left(cell.Marked, 2, sign)
	b.Left(cell.Strong, t.nameW, cell.Fit(r.target.String(), t.nameW-1))
	for _, c := range t.columns {
		b.Right(plain, c.width, c.value(r))
	}
	if t.waiting {
		b.Gap(3)
		b.Put(cell.Warn, cell.Fit(r.excluded, 40))
		return
	}
	if t.barW < 4 || t.scale <= 0 {
		return
	}
	b.Gap(3)
	solid, thin := t.s.bar(r, true), t.s.bar(r, false)
	n := int(solid / t.scale * float64(t.barW))
	end := int((solid + thin) / t.scale * float64(t.barW))
	if solid > 0 {
		n = max(n, 1)
	}
	full := b.Ink().Glyphs.BarFull
	if b.Ink().Old {
		full = b.Ink().Glyphs.BarStale
	}
	b.Repeat(cell.BarFill, full, n)
	b.Repeat(cell.BarTrack, b.Ink().Glyphs.BarEmpty, max(end-n, 0))
}

// barred is a reason and the ranks that it kept out.
type barred struct {
	why   string
	ranks []model.Target
}

func (s *story) barred() []barred {
	var out []barred
	for i := range s.excluded {
		x := &s.excluded[i]
		if n := len(out); n == 0 || out[n-1].why != x.excluded {
			out = append(out, barred{why: x.excluded})
		}
		out[len(out)-1].ranks = append(out[len(out)-1].ranks, x.target)
	}
	return out
}

// out paints which ranks were no candidates, and why.
func (t *sheet) out(b *cell.Block, x barred) {
	b.Begin(cell.Normal)
	b.Gap(3)
	if len(x.ranks) == 1 {
		b.Left(cell.Dim, t.nameW, cell.Fit(x.ranks[0].String(), t.nameW-1))
		b.Put(cell.Dim, cell.Lit("  "))
		b.Put(cell.Plain, cell.Say("not a candidate: %s", cell.Fit(x.why, 40)))
		return
	}
	for i, r := range x.ranks {
		n := name(r)
		if i > 0 && b.At()+n.Width() > b.Width()/2-4 {
			b.Put(cell.Dim, cell.Say("+%s ", cell.Int(len(x.ranks)-i)))
			break
		}
		b.Put(cell.Dim, n)
		b.Gap(1)
	}
	b.Put(cell.Plain, cell.Say(" not candidates: %s", cell.Fit(x.why, 40)))
}

// rows are the rows of the table and, apart, who could not be chosen.
func (t *sheet) rows() ([]row, []barred) {
	if t.waiting {
		return t.s.excluded, nil
	}
	return t.s.rows, t.s.barred()
}

// want is how many rows show everything.
func (t *sheet) want() int {
	rows, out := t.rows()
	n := 1 + len(rows) + len(out)
	if t.legendFits() && len(rows) > 0 {
		n++
	}
	return n
}

func (t *sheet) legendFits() bool { return t.barAt >= 60 && t.s.by <= byLockstep && t.barW >= 12 }

// paint fills h rows with the table, its head among them.
func (t *sheet) paint(b *cell.Block, h int) {
	if h <= 0 {
		return
	}
	end := b.Height() + h
	rows, out := t.rows()
	if len(rows)+len(out) == 0 {
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Dim, t.s.nothing())
		b.Blank(h - 1)
		return
	}
	t.head(b)
	room := h - 1
	outs := len(out)
	if len(rows)+outs > room {
		outs = min(outs, max(1, room/3))
	}
	shown := min(len(rows), max(0, room-outs))
	ownLine := shown < len(rows) && (outs == 0 || b.Width() >= wideTable)
	if ownLine && shown > 0 && shown+outs == room {
		shown--
	}
	for i := range rows[:shown] {
		t.row(b, &rows[i])
	}
	if ownLine && b.Height() < end {
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Dim, t.more(rows[shown:]))
		t.legend(b)
	}
	for i, x := range out[:outs] {
		if b.Height() >= end {
			break
		}
		t.out(b, x)
		if i == outs-1 {
			t.rest(b, rows[shown:], ownLine, len(out)-outs)
		}
	}
	if shown == len(rows) && t.legendFits() && b.Height() < end {
		b.Begin(cell.Normal)
		t.legend(b)
	}
	b.Blank(end - b.Height())
}

// rest says at the right of the last line what was left out.
func (t *sheet) rest(b *cell.Block, left []row, said bool, reasons int) {
	var note cell.Text
	if len(left) > 0 && !said {
		note = t.more(left)
	}
	switch {
	case reasons > 0 && note.Empty():
		note = cell.Say("… and %s other", reasonsText(reasons))
	case reasons > 0:
		note = cell.Say("%s, %s other", note, reasonsText(reasons))
	case note.Empty():
		return
	}
	if at := b.Width() - note.Width() - 2; at > b.At() {
		b.To(at)
		b.Put(cell.Dim, note)
	}
}

func reasonsText(n int) cell.Text {
	if n == 1 {
		return cell.Lit("1 reason")
	}
	return cell.Say("%s reasons", cell.Int(n))
}

// more counts the candidates that are not shown.
func (t *sheet) more(left []row) cell.Text {
	n := len(left) + t.s.leftOut
	lo, hi, match := math.Inf(1), math.Inf(-1), false
	for i := range left {
		lo, hi, match = min(lo, left[i].total), max(hi, left[i].total), match || left[i].match > 0
	}
	text := cell.Say("… %s more", cell.Int(n))
	if !match && t.s.by <= byLockstep {
		text = cell.Say("%s, no match", text)
	}
	if lo <= hi && t.barAt >= 60 {
		text = cell.Say("%s, %s to %s", text, t.s.cost(lo), t.s.cost(hi))
	}
	return text
}

// legend says what the parts of the bars are.
func (t *sheet) legend(b *cell.Block) {
	var solid, thin cell.Text
	switch t.s.by {
	case byScore:
		solid, thin = cell.Lit(" tokens to prefill   "), cell.Lit(" load term")
	case byDynamo:
		solid, thin = cell.Lit(" prefill   "), cell.Lit(" decode and requests")
	case byLockstep:
		solid, thin = cell.Lit(" new tokens   "), cell.Lit(" rise and load")
	default:
		return
	}
	at := b.Width() - 4 - solid.Width() - thin.Width()
	if at <= b.At() || !t.legendFits() {
		return
	}
	b.To(at)
	b.Repeat(cell.BarFill, b.Ink().Glyphs.BarFull, 1)
	b.Put(cell.Dim, solid)
	b.Repeat(cell.BarTrack, b.Ink().Glyphs.BarEmpty, 1)
	b.Put(cell.Dim, thin)
}

// nothing says why there is no table.
func (s *story) nothing() cell.Text {
	switch s.d.Placement.Phase {
	case model.PhaseOperator, model.PhaseBound, model.PhasePinned:
		return cell.Lit("a pin comes before any comparison, so no candidates were looked at")
	}
	return cell.Lit("the candidates of this decision were not recorded")
}
