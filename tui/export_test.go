package tui

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adpdeck/tui/fixture"
)

// files exports the conversations under a filter and returns what was written.
func files(t *testing.T, key string) (c *console, text string) {
	t.Helper()
	c = screen(t, fixture.Hostile(), 100, 24)
	c.opt.ExportDir = t.TempDir()
	c.press("2")
	c.views2().SetFilter("rank:w0/3")
	c.refresh()
	c.press("x", key)
	names, err := filepath.Glob(filepath.Join(c.opt.ExportDir, "adpdeck-convs-*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files %v, %v; the row says %s", names, err, c.line(-2))
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	c.want(-2, "rows written to ")
	return c, string(b)
}

func TestExportWritesTheFilteredRowsRaw(t *testing.T) {
	c, text := files(t, "c")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := c.views2().Export(&c.frame)
	if len(rows) != len(want.Rows)+1 || len(want.Rows) == 0 {
		t.Fatalf("%d lines for %d rows", len(rows), len(want.Rows))
	}
	raw := false
	for i, row := range rows[1:] {
		if row[0] != strings.ReplaceAll(want.Rows[i][0].(string), "\r\n", "\n") || row[4] != "w0/3" {
			t.Errorf("row %d is %q", i, row)
		}
		raw = raw || strings.ContainsAny(row[0], "\x00\x1b")
	}
	if !raw {
		t.Error("no id with its control bytes: the file must hold what the engine said")
	}

	_, text = files(t, "j")
	var objects []map[string]any
	if err := json.Unmarshal([]byte(text), &objects); err != nil {
		t.Fatal(err)
	}
	if len(objects) != len(want.Rows) || objects[0]["rank"] != "w0/3" || objects[0]["turns"] == nil {
		t.Errorf("%d objects, the first is %v", len(objects), objects[0])
	}
}

func TestExportNeverWritesOverAFile(t *testing.T) {
	c, _ := files(t, "j")
	c.press("x", "j")
	c.want(-2, "not exported: ")
	c.want(-2, "file exists")
}
