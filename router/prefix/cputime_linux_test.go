package prefix

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// cpuMeter measures the processor time of the benchmark's own thread, which a
// busy machine does not stretch as it does the wall clock.
type cpuMeter struct {
	sum, from time.Duration
}

func newCPUMeter() *cpuMeter {
	runtime.LockOSThread()
	return &cpuMeter{}
}

func threadTime() time.Duration {
	const rusageThread = 1
	var u syscall.Rusage
	if syscall.Getrusage(rusageThread, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (c *cpuMeter) start() { c.from = threadTime() }
func (c *cpuMeter) stop()  { c.sum += threadTime() - c.from }

// report adds cpu-ns/op to the benchmark's line.
func (c *cpuMeter) report(b *testing.B) {
	b.ReportMetric(float64(c.sum.Nanoseconds())/float64(b.N), "cpu-ns/op")
	runtime.UnlockOSThread()
}
