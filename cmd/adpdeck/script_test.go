package main

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// Tests of the whole wait for engines to die and return, most of their time:
	// many of them fit on two cores. What the command line says goes before.
	if f := flag.Lookup("test.parallel"); f != nil {
		_ = f.Value.Set("8")
	}
	testscript.Main(m, map[string]func(){"adpdeck": main})
}

// TestStories runs what users type, one story per file.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}
