package router

import "adpdeck/router/model"

// workerLoad is what the cluster tier compares of one worker.
type workerLoad struct {
	open     int // open requests at the worker
	eligible int // ranks that take new work; 0 leaves the worker out
}

// pickWorker is the cluster tier: it chooses a worker by mode and returns the
// cursor for the next choice. Ties go to the first at or after the cursor, so
// they rotate. worker is -1 when none is eligible.
func pickWorker(mode model.RouterMode, loads []workerLoad, cursor int) (worker, next int, why string) {
	worker = -1
	why = "round robin"
	if mode == model.ModeLeastLoaded {
		why = "fewest open per rank"
	}
	for i := range loads {
		at := (cursor + i) % len(loads)
		if loads[at].eligible == 0 {
			continue
		}
		if worker < 0 || (mode == model.ModeLeastLoaded && lighter(loads[at], loads[worker])) {
			worker = at
		}
		if mode != model.ModeLeastLoaded {
			break
		}
	}
	if worker < 0 {
		return -1, cursor, ""
	}
	if len(loads) == 1 {
		why = "only worker"
	}
	return worker, (worker + 1) % len(loads), why
}

// lighter compares open requests per eligible rank, exactly.
func lighter(a, b workerLoad) bool {
	return int64(a.open)*int64(b.eligible) < int64(b.open)*int64(a.eligible)
}
