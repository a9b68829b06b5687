package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"adpdeck": main})
}

// TestStories runs what users type, one story per file.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}
