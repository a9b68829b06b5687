package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var namedTest = regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)(?:/([^`]+))?`")

// TestPromisesHaveTests: every test that docs/tests.md names exists, every row
// names one or says that there is none yet, and no report is left out.
func TestPromisesHaveTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tests.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, told := map[string]string{}, stories()
	for line := range strings.Lines(string(page)) {
		row := strings.HasPrefix(line, "|") && !strings.Contains(line, "---") && !strings.Contains(line, "| tests |")
		named := namedTest.FindAllStringSubmatch(line, -1)
		if row && len(named) == 0 && !strings.Contains(line, "| not yet: ") {
			t.Errorf("no test: %s", line)
		}
		for _, m := range named {
			dir, name, story := m[1], m[2], m[3]
			if dir == "folder" {
				continue
			}
			if sources[dir] == "" {
				sources[dir] = testsOf(t, filepath.Join("../..", dir))
			}
			if !strings.Contains(sources[dir], "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("there is no %s in %s", name, dir)
			}
			if _, ok := told[story]; story != "" && story != "X" && !ok {
				t.Errorf("there is no story %s", story)
			}
		}
	}
	for i := range 15 {
		if !strings.Contains(string(page), fmt.Sprintf("\n| A%d ", i+1)) {
			t.Errorf("report A%d is not named", i+1)
		}
	}
}

// testsOf is the text of a folder's tests.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
