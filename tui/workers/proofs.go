package workers

import (
	"adpdeck/tui/cell"
)

// honoured says in one line whether the engine used the ranks it was asked for.
func (p *painter) honoured() {
	e := p.e
	proven := e.honoured + e.ignored
	switch {
	case e.asked == 0 && e.Steering.EnginePicks():
		p.fact(cell.Lit("honoured"), dim(cell.Lit("nothing to honour: the engine picks the rank")))
		return
	case e.asked == 0:
		p.fact(cell.Lit("honoured"), dim(cell.Lit("no rank was asked for yet")))
		return
	case proven == 0:
		p.fact(cell.Lit("honoured"), dim(cell.Say("%s asked; what ran where is not known", cell.Full(e.asked))))
		return
	}
	head := plain(cell.Say("rank as asked %s of %s", cell.Full(e.honoured), cell.Full(proven)))
	if e.ignored > 0 {
		head.Role = cell.Warn
	}
	runs := []cell.Run{head}
	if rest := e.asked - min(proven, e.asked); rest > 0 {
		runs = append(runs, dim(cell.Say(", %s more not known", cell.Full(rest))))
	}
	p.fact(cell.Lit("honoured"), runs...)
}

// proofs is the table of which channel works on which route, as many rows as
// fit.
func (p *painter) proofs() {
	e := p.e
	if len(e.Proofs) == 0 || p.left() < 3 {
		return
	}
	p.blank()
	if !p.row() {
		return
	}
	b := p.b
	b.Left(cell.Title, 13, cell.Lit("ROUTE"))
	b.Left(cell.Title, 14, cell.Lit("CHANNEL"))
	b.Right(cell.Title, 8, cell.Lit("ASKED"))
	b.Right(cell.Title, 10, cell.Lit("HONOURED"))
	b.Right(cell.Title, 9, cell.Lit("IGNORED"))
	b.Right(cell.Title, 9, cell.Lit("UNKNOWN"))
	b.Gap(3)
	b.Left(cell.Title, b.Width()-b.At()-1, cell.Lit("PROVEN BY"))
	for i := range e.Proofs {
		if p.left() == 1 && i < len(e.Proofs)-1 {
			if p.row() {
				b.Put(cell.Dim, cell.Say("%s more", cell.Int(len(e.Proofs)-i)))
			}
			return
		}
		if !p.row() {
			return
		}
		p.proof(i)
	}
}

func (p *painter) proof(i int) {
	b, x := p.b, &p.e.Proofs[i]
	role := cell.Plain
	if x.Ignored > 0 {
		role = cell.Warn
	}
	b.Left(cell.Plain, 12, cell.Fit(string(x.Route), 12))
	b.Gap(1)
	b.Left(cell.Plain, 13, cell.Fit(x.Channel, 13))
	b.Gap(1)
	b.Right(cell.Plain, 8, cell.Count(float64(x.Asked)))
	b.Right(cell.Plain, 10, cell.Count(float64(x.Honoured)))
	b.Right(role, 9, cell.Count(float64(x.Ignored)))
	b.Right(cell.Dim, 9, cell.Count(float64(x.Asked-min(x.Honoured+x.Ignored, x.Asked))))
	b.Gap(3)
	by := cell.Lit("not proven yet")
	if x.Evidence != "" {
		by = cell.Fit(x.Evidence, 16)
		if age := ageText(p.f.Now, x.At); !age.Empty() {
			by = cell.Say("%s, %s ago", by, age)
		}
	}
	b.Left(cell.Dim, b.Width()-b.At()-1, by)
}
