//go:build !linux

package prefix

import "testing"

// cpuMeter measures only where the system tells a thread's processor time.
type cpuMeter struct{}

func newCPUMeter() *cpuMeter { return &cpuMeter{} }

func (c *cpuMeter) start()            {}
func (c *cpuMeter) stop()             {}
func (c *cpuMeter) report(*testing.B) {}
