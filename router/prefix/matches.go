package prefix

// Matches is the answer of a look-up, reused by the caller from one to the
// next. The slices are indexed by ID and as long as the highest ID in use;
// an ID without a target holds zeros.
type Matches struct {
	// Blocks is the length of the chain that was asked for.
	Blocks int
	// Device is how many blocks of the chain, from its start, the target
	// holds on its device.
	Device []int32
	// Host is how many further blocks follow in host memory from where Device
	// ends, Disk how many follow on disk from there. They are extensions:
	// Device+Host+Disk is the whole reusable prefix.
	Host, Disk []int32
	approx     []uint64
}

// Total is the whole reusable prefix of a target in blocks, over all tiers; 0
// for an ID that is not in use.
func (m *Matches) Total(id ID) int {
	if int(id) >= len(m.Device) {
		return 0
	}
	return int(m.Device[id] + m.Host[id] + m.Disk[id])
}

// Approximate reports that the target's figures are a guess from what was
// routed to it, not from what its engine said.
func (m *Matches) Approximate(id ID) bool {
	return int(id>>6) < len(m.approx) && m.approx[id>>6]>>(id&63)&1 == 1
}
