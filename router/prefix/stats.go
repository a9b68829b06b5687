package prefix

import "adpdeck/router/model"

// TargetStats is what the index knows of one target, in blocks unless said
// otherwise. Counters count from when the target was added.
type TargetStats struct {
	Target      model.Target
	Approximate bool
	Blocks      [Tiers]int // held now, by tier
	Bytes       int64      // charged against MaxTargetBytes
	Doubtful    int        // of these not told anew since events were lost
	Waiting     int        // put aside now, their parent unknown
	Holes       int        // missing blocks right before blocks that are held
	LastSeq     uint64     // number of the last batch, where Numbered
	Numbered    bool

	Stored, Removed  uint64
	Duplicates       uint64 // stored again while held
	Unknown          uint64 // removals of blocks that were not held
	Placed           uint64 // came to a tier by name alone
	Unplaced         uint64 // came by a name that stands for nothing, or found no room
	Evicted          uint64 // dropped to keep a bound
	WaitingDropped   uint64 // dropped while waiting, to keep the bound
	Unconfirmed      uint64 // dropped at the end of a doubt
	Expired          uint64 // forgotten by an approximation, by age or capacity
	Refused          uint64 // events that contradict themselves
	Replayed         uint64 // batches seen before
	Clears, Restarts uint64
}

// Stats is what the index holds in all.
type Stats struct {
	Blocks  int    // distinct blocks
	Owned   int    // blocks times the targets and tiers that hold them
	Waiting int    // put aside, of all targets
	Bytes   int64  // memory of the tables
	Evicted uint64 // blocks of targets dropped to keep a bound
	Dropped uint64 // blocks that found no room while a bound held
	Targets int
}

// TargetStats returns the figures of one target, or ErrNoTarget.
func (ix *Index) TargetStats(id ID) (TargetStats, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	if err != nil {
		return TargetStats{}, err
	}
	s := t.stats
	s.Bytes = int64(t.total()) * BytesPerBlock
	s.Waiting, s.Holes = t.waits.len(), len(t.holes[0])
	if t.doubt != nil {
		s.Doubtful = t.doubt.left
	}
	s.LastSeq, s.Numbered = t.seq, t.inOrder
	return s, nil
}

// Stats returns the figures of the whole index.
func (ix *Index) Stats() Stats {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := Stats{
		Blocks: ix.records, Waiting: ix.wait.all.Len(), Bytes: ix.bytes,
		Evicted: ix.evicted, Dropped: ix.dropped, Targets: len(ix.names.Load().byName),
	}
	for i := range ix.targets {
		s.Owned += ix.targets[i].total()
	}
	return s
}
