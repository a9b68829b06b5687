package model

import "encoding/json"

// A figure that may be unknown is null where it is; a server of an older version
// does not send it at all. Both mean the same, while a field that is absent would
// otherwise be read as 0. So what holds such figures is read over unknown ones.

// UnmarshalJSON reads a rank; figures that are absent are unknown.
func (r *Rank) UnmarshalJSON(b []byte) error {
	type plain Rank
	p := plain{Hit: Unknown(), Reachable: Unknown()}
	err := json.Unmarshal(b, &p)
	*r = Rank(p)
	return err
}

// UnmarshalJSON reads a worker; figures that are absent are unknown.
func (w *Worker) UnmarshalJSON(b []byte) error {
	type plain Worker
	p := plain{TTFTMsP50: Unknown(), TTFTMsP99: Unknown()}
	err := json.Unmarshal(b, &p)
	*w = Worker(p)
	return err
}

// UnmarshalJSON reads totals; figures that are absent are unknown.
func (t *Totals) UnmarshalJSON(b []byte) error {
	type plain Totals
	p := plain{RequestsPerSec: Unknown(), TTFTMsP50: Unknown(), TTFTMsP99: Unknown(), Hit: Unknown(), Skew: Unknown()}
	err := json.Unmarshal(b, &p)
	*t = Totals(p)
	return err
}

// UnmarshalJSON reads an outcome; a time that is absent is unknown.
func (s *Settled) UnmarshalJSON(b []byte) error {
	type plain Settled
	p := plain{TTFTMs: Unknown()}
	err := json.Unmarshal(b, &p)
	*s = Settled(p)
	return err
}

// UnmarshalJSON reads a rank's index; figures that are absent are unknown.
func (r *IndexRank) UnmarshalJSON(b []byte) error {
	type plain IndexRank
	p := plain{Hit: Unknown(), Reachable: Unknown(), Agreed: Unknown()}
	err := json.Unmarshal(b, &p)
	*r = IndexRank(p)
	return err
}

// UnmarshalJSON reads the index as a whole; a figure that is absent is unknown.
func (t *IndexTotals) UnmarshalJSON(b []byte) error {
	type plain IndexTotals
	p := plain{EventsPerSec: Unknown()}
	err := json.Unmarshal(b, &p)
	*t = IndexTotals(p)
	return err
}
