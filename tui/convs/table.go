package convs

import (
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/dialog"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// column names a column of the table.
type column uint8

const (
	colMark column = iota
	colID
	colTenant
	colModel
	colPin
	colRank
	colTurns
	colCached
	colHit
	colIdle
	colTTL
	colHonoured
	numColumns
)

// wide is the width from which model and honoured are shown.
const wide = 113

// grid is the table's columns at one width.
type grid struct {
	widths [numColumns]int
	hidden int
}

// names are the widths that ids, tenants and models ask for; they only grow,
// so that columns do not move while the list does.
type names struct{ id, tenant, model int }

// namesRead is how many conversations are looked at for their widths.
const namesRead = 500

func (n *names) read(convs []*model.Conv) {
	for _, c := range convs[:min(len(convs), namesRead)] {
		n.id = max(n.id, min(len(c.Key.ID), 64))
		n.tenant = max(n.tenant, min(len(c.Key.Tenant), 32))
		n.model = max(n.model, min(len(c.Key.Model), 32))
	}
}

// share divides room cells between the id and the tenant: as drawn when both
// fit, else what the id leaves.
func (n *names) share(room int) (id, tenant int) {
	tenant = max(10, min(n.tenant+2, 18, room-n.id-3))
	return max(12, room-tenant), tenant
}

// fit divides w cells among the columns; widths hold the gap beside a column.
func fit(s *model.State, n names, w int, more bool) grid {
	rankW := 4
	for i := range s.Ranks {
		rankW = max(rankW, cell.Foreign(s.Ranks[i].Target.String()).Width())
	}
	rankW = min(rankW, max(4, w/8))
	cols := make([]layout.Column, numColumns)
	set := func(c column, width, priority int) { cols[c] = layout.Column{Width: width, Priority: priority} }
	extra, room := 0, 31
	if w >= wide || more {
		extra = 1
		modelW := 17
		if n.model == 0 {
			modelW = 7
			room += 10
		}
		set(colModel, modelW, 16)
		set(colHonoured, 13, 15)
	} else {
		room = max(22, room-(rankW-4))
	}
	id, tenant := n.share(room)
	set(colMark, 3, 100)
	set(colID, id, 99)
	set(colTenant, tenant, 50)
	set(colPin, 8, 70)
	set(colRank, rankW, 90)
	set(colTurns, 7+extra, 60)
	set(colCached, 8+extra, 80)
	set(colHit, 6, 65)
	set(colIdle, 6+2*extra, 55)
	set(colTTL, 6+2*extra, 14)
	cols[colID].Grow, cols[colID].Most = 1, max(id, 46)
	switch {
	case w < wide && w >= 79:
		cols[colID].Most = id + max(0, w-80)
	case w >= wide && w < 140:
		cols[colID].Most = id + max(0, w-120)
	}
	widths, hidden := layout.Columns(w, cols)
	g := grid{hidden: hidden}
	copy(g.widths[:], widths)
	if w < wide && !more {
		g.hidden += 2
	}
	return g
}

func headOf(c column) cell.Text {
	return [numColumns]cell.Text{
		colID: cell.Lit("CONVERSATION"), colTenant: cell.Lit("TENANT"), colModel: cell.Lit("MODEL"), colPin: cell.Lit("PIN"),
		colRank: cell.Lit("RANK"), colTurns: cell.Lit("TURNS"), colCached: cell.Lit("CACHED"), colHit: cell.Lit("HIT"),
		colIdle: cell.Lit("IDLE"), colTTL: cell.Lit("TTL"), colHonoured: cell.Lit("   HONOURED"),
	}[c]
}

func (g *grid) head(b *cell.Block) {
	b.Begin(cell.Normal)
	b.Gap(g.widths[colMark])
	for c := colID; c < numColumns; c++ {
		if c <= colRank || c == colHonoured {
			b.Left(cell.Title, g.widths[c], headOf(c))
		} else {
			b.Right(cell.Title, g.widths[c], headOf(c))
		}
	}
}

// row paints one conversation.
func (g *grid) row(b *cell.Block, f *view.Frame, c *model.Conv, cursor, marked bool) {
	kind := cell.Normal
	if cursor {
		kind = cell.Cursor
	}
	b.Begin(kind)
	signs(b, cursor, marked)
	g.foreign(b, colID, cell.Strong, c.Key.ID)
	g.foreign(b, colTenant, cell.Plain, c.Key.Tenant)
	g.foreign(b, colModel, cell.Dim, c.Key.Model)
	role, pin := pinOf(c)
	g.text(b, colPin, role, pin)
	b.Left(cell.Strong, g.widths[colRank], view.PlaceText(dialog.Where(c), g.widths[colRank]))
	b.Right(cell.Plain, g.widths[colTurns], cell.Count(float64(c.Turns)))
	b.Right(cell.Plain, g.widths[colCached], cachedOf(c))
	b.Right(cell.Plain, g.widths[colHit], cell.PercentShort(hitOf(c)))
	b.Right(cell.Dim, g.widths[colIdle], idleOf(f, c))
	b.Right(cell.Dim, g.widths[colTTL], ttlOf(f, c))
	role, honoured := honouredOf(c)
	b.Gap(min(3, g.widths[colHonoured]))
	b.Left(role, g.widths[colHonoured]-3, honoured)
}

// signs paints cursor and mark into the first three cells.
func signs(b *cell.Block, cursor, marked bool) {
	g := b.Ink().Glyphs
	b.Gap(1)
	switch {
	case cursor && marked:
		b.Put(cell.Marked, cell.Concat(cell.Glyph(g.CursorMark), cell.Glyph(g.Mark)))
	case cursor:
		b.Left(cell.Marked, 2, cell.Glyph(g.CursorMark))
	case marked:
		b.Left(cell.Marked, 2, cell.Glyph(g.Mark))
	default:
		b.Gap(2)
	}
}

// foreign paints a name from outside; the last cell of the column stays blank.
func (g *grid) foreign(b *cell.Block, c column, role cell.Role, s string) {
	if w := g.widths[c]; w > 0 {
		t := cell.Fit(s, w)
		if s == "" {
			t = cell.Unknown()
		}
		g.text(b, c, role, t)
	}
}

func (g *grid) text(b *cell.Block, c column, role cell.Role, t cell.Text) {
	if w := g.widths[c]; w > 0 {
		b.Left(role, w-1, t)
		b.Gap(1)
	}
}

// pinOf is the pin as the column shows it.
func pinOf(c *model.Conv) (cell.Role, cell.Text) {
	switch {
	case isLost(c):
		return cell.Crit, cell.Lit("lost")
	case c.Pin == model.PinOperator:
		return cell.Marked, cell.Say("op %s", cell.Fit(c.By, 12))
	case c.Pin == model.PinMigrated:
		return cell.Staged, cell.Lit("moved")
	case c.Pin == model.PinAuto:
		return cell.Dim, cell.Lit("auto")
	}
	return cell.Dim, cell.Unknown()
}

// cachedOf is unknown until a first token came.
func cachedOf(c *model.Conv) cell.Text {
	if c.PromptTokens <= 0 {
		return cell.Unknown()
	}
	return cell.Kilo(float64(c.CachedTokens))
}

func idleOf(f *view.Frame, c *model.Conv) cell.Text {
	switch {
	case c.Open > 0:
		return cell.Lit("busy")
	case c.LastAt.IsZero():
		return cell.Unknown()
	}
	return cell.Age(f.Now.Sub(c.LastAt))
}

// ttlOf is how long the binding that a turn made lasts if no other turn comes.
// Pins and migrations do not run out, nor does any binding in the modes that
// leave the rank to the engine.
func ttlOf(f *view.Frame, c *model.Conv) cell.Text {
	s := &f.State.Settings
	ttl := s.ClusterConfig.SessionAffinityTTLSecs
	if c.Pin != model.PinAuto || ttl == nil || s.RouterMode != model.ModeKV && s.RouterMode != model.ModeLockstep {
		return cell.Unknown()
	}
	since := c.IdleSince
	switch {
	case c.Open > 0:
		since = f.Now
	case since.IsZero():
		since = c.LastAt
	}
	left := time.Duration(*ttl*float64(time.Second)) - max(0, f.Now.Sub(since))
	if left <= 0 {
		return cell.Lit("over")
	}
	return cell.Age(left)
}

// honouredOf says whether the engine used the ranks that it was told.
func honouredOf(c *model.Conv) (cell.Role, cell.Text) {
	switch {
	case c.Honoured+c.Lost == 0:
		return cell.Dim, cell.Unknown()
	case isLost(c):
		return cell.Warn, cell.Say("no: %s", cell.Fit(c.Last.String(), 8))
	case c.Lost > 0:
		return cell.Warn, cell.Say("%s of %s", cell.Count(float64(c.Honoured)), cell.Count(float64(c.Honoured+c.Lost)))
	}
	return cell.Dim, cell.Lit("yes")
}
