package workers

import (
	"cmp"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// capacity of one rank in what was declared and what is reported, 0 where that
// is not known; mixed says that the ranks differ.
type capacity struct{ declared, reported, mixedWith int }

// differs reports that both are known and are not the same.
func (c capacity) differs() bool {
	return c.declared > 0 && c.reported > 0 && c.declared != c.reported || c.mixedWith != 0
}

// known is what to count with: the report, or else what was declared.
func (c capacity) known() int { return cmp.Or(c.reported, c.declared) }

// over reads one figure of all ranks that report it.
func (e *entry) over(declared int, get func(r *model.Rank) int) capacity {
	c := capacity{declared: max(0, declared)}
	for _, r := range e.ranks {
		n := get(r)
		switch {
		case r.ReportedAt.IsZero() || n <= 0:
		case c.reported == 0:
			c.reported = n
		case n != c.reported && c.mixedWith == 0:
			c.mixedWith = n
		}
	}
	return c
}

func (e *entry) requests() capacity {
	return e.over(e.MaxActive, func(r *model.Rank) int { return r.MaxActive })
}

func (e *entry) blocks() capacity {
	return e.over(e.KVBlocks, func(r *model.Rank) int { return r.KVTotalBlocks })
}

// capacity is of one rank: what was declared against what the engine reports.
func (p *painter) capacity() {
	e := p.e
	req, kv := e.requests(), e.blocks()
	if req.known() == 0 && kv.known() == 0 {
		if !e.simulated() {
			p.fact(cell.Lit("capacity"), dim(cell.Lit("not known: neither declared nor reported")))
		}
		return
	}
	requests, tokens := cell.Lit("requests not known"), cell.Lit("KV not known")
	if n := req.known(); n > 0 {
		requests = cell.Say("%s requests", cell.Full(n))
	}
	switch n := kv.known(); {
	case n > 0 && e.BlockTokens > 0:
		tokens = cell.Say("%s KV tokens", cell.Kilo(float64(n)*float64(e.BlockTokens)))
	case n > 0:
		tokens = cell.Say("%s KV blocks", cell.Full(n))
	}
	text, note := cell.Say("%s, %s per rank", requests, tokens), against(req, kv)
	if note.Role == cell.Warn && 3+11+3+text.Width()+note.Text.Width() >= p.b.Width() {
		p.fact(cell.Lit("capacity"), plain(text))
		p.fact(cell.Text{}, note) // what differs is not cut
		return
	}
	p.fact(cell.Lit("capacity"), plain(text), dim(cell.Lit("   ")), note)
}

// against says whether what is reported is what was declared.
func against(req, kv capacity) cell.Run {
	switch {
	case kv.mixedWith != 0:
		return warn(cell.Say("ranks differ: %s and %s blocks", cell.Full(kv.reported), cell.Full(kv.mixedWith)))
	case req.mixedWith != 0:
		return warn(cell.Say("ranks differ: %s and %s requests", cell.Full(req.reported), cell.Full(req.mixedWith)))
	case kv.differs():
		return warn(cell.Say("declared %s blocks, reported %s", cell.Full(kv.declared), cell.Full(kv.reported)))
	case req.differs():
		return warn(cell.Say("declared %s requests, %s in force", cell.Full(req.declared), cell.Full(req.reported)))
	case kv.declared > 0 && kv.reported > 0:
		return dim(cell.Lit("reported, as declared"))
	case kv.reported > 0:
		return dim(cell.Lit("as reported"))
	}
	return dim(cell.Lit("as declared; the engine reports none"))
}
