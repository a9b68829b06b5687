//go:build unix

package adp

import (
	"syscall"
	"time"
)

// processTime is the processor time that the process has used. On a machine
// that others share it says more than the clock on the wall.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
