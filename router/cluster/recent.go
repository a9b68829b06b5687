package cluster

// recent remembers where prefixes were last sent to, for ties. For each prompt
// sent it keeps the chain hashes at depths 1, 2, 4, 8, …, so
// that a later prompt with the same beginning finds the deepest of them in a
// few probes. It is a table of fixed size: a newer prefix takes the cell of
// another one. A wrong or missing answer costs locality in a tie, no more.
type recent struct{ cells []recentCell }

type recentCell struct {
	hash uint64
	slot int32 // plus one; 0 is empty
}

const recentCells = 1 << 16

func (r *recent) init() { r.cells = make([]recentCell, recentCells) }

func (r *recent) cell(hash uint64) *recentCell {
	return &r.cells[(hash*0x9e3779b97f4a7c15)>>48&(recentCells-1)]
}

func (r *recent) sent(chain []uint64, slot int32) {
	for depth := 1; depth <= len(chain); depth *= 2 {
		h := chain[depth-1]
		*r.cell(h) = recentCell{h, slot + 1}
	}
}

// last returns the slot that the longest remembered prefix of chain was sent
// to, -1 when none is remembered.
func (r *recent) last(chain []uint64) int32 {
	depth := 1
	for depth*2 <= len(chain) {
		depth *= 2
	}
	for ; depth >= 1 && len(chain) > 0; depth /= 2 {
		if c := r.cell(chain[depth-1]); c.slot != 0 && c.hash == chain[depth-1] {
			return c.slot - 1
		}
	}
	return -1
}

func (r *recent) forget(slot int32) {
	for i := range r.cells {
		if r.cells[i].slot == slot+1 {
			r.cells[i] = recentCell{}
		}
	}
}
