//go:build !unix

package adp

import "time"

// processTime is not measured here; the clock on the wall is used.
func processTime() time.Duration { return 0 }
