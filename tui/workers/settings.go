package workers

import (
	"strings"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// maxSettings bounds the rows on settings that differ.
const maxSettings = 6

// settings lists, where there is room, what the settings file says of the engine
// and the engine says otherwise: one row for each.
func (p *painter) settings() {
	if !p.airy {
		return // the finding itself says it in one line
	}
	name := cell.Lit("settings")
	for _, x := range p.e.findings {
		if x.Code != model.FindingEngineDisagrees {
			continue
		}
		parts := strings.SplitN(x.Message, "; ", maxSettings)
		for _, part := range parts {
			what, values, ok := strings.Cut(part, ": ")
			if !ok {
				what, values = "", part
			}
			p.fact(name, plain(cell.Fit(what, 30)), dim(cell.Lit("   ")), warn(cell.Fit(values, 120)))
			name = cell.Text{}
		}
	}
}
