package index

import (
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

const (
	// sharedWidth and sharedRoom are from where on the pane of shared prefixes is
	// shown: cells, and rows below the table.
	sharedWidth = 110
	sharedRoom  = 13
	// sharedMost is how many of them are shown in little room.
	sharedMost = 3
)

// sharedRows is how many of the room's rows the pane of shared prefixes takes.
func sharedRows(f *view.Frame, w, room int) int {
	t := f.State.IndexTotals
	if t == nil || len(t.Shared) == 0 || w < sharedWidth || room < sharedRoom {
		return 0
	}
	n := len(t.Shared)
	if room < 2*sharedRoom {
		n = min(n, sharedMost)
	}
	return 2 + n
}

// shared paints the prefixes that several ranks hold, down to row h: never
// their text, only how long they are and who has them.
func shared(b *cell.Block, f *view.Frame, h int) {
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(b.Width()-2, cell.Lit("Most shared prefixes"))
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(cell.Title, 12, cell.Lit("PREFIX"))
	b.Right(cell.Title, 9, cell.Lit("TOKENS"))
	b.Right(cell.Title, 10, cell.Lit("ON RANKS"))
	b.Right(cell.Title, 13, cell.Lit("HITS IN 5 M"))
	b.Right(cell.Title, 12, cell.Lit("LAST HIT"))
	for i := range f.State.IndexTotals.Shared {
		if b.Height() >= h {
			return
		}
		x := &f.State.IndexTotals.Shared[i]
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Left(cell.Dim, 12, cell.Fit(x.Hash, 11))
		b.Right(cell.Plain, 9, cell.Full(x.Tokens))
		b.Right(cell.Plain, 10, cell.Full(x.Ranks))
		b.Right(cell.Plain, 13, cell.Full(x.Hits))
		b.Right(cell.Dim, 12, ageText(f.Now, x.LastAt))
	}
}
