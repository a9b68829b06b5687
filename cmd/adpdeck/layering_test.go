package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// rooms lists what each room's own code may import of the project and of
// outside modules; a room's sub-packages share its line unless they have one.
// Test files are held only to forbidden.
var rooms = map[string]struct {
	own, outside []string
}{
	"router":                           {own: []string{"router/model", "router/adp", "router/pin", "router/load", "router/prefix", "router/cluster"}, outside: []string{"github.com/hashicorp/golang-lru"}},
	"router/model":                     {},
	"router/adp":                       {own: []string{"router/model", "router/adp"}},
	"router/settings":                  {own: []string{"router/model"}, outside: []string{"github.com/goccy/go-yaml"}},
	"router/pin":                       {own: []string{"router/model"}, outside: []string{"github.com/hashicorp/golang-lru"}},
	"router/load":                      {own: []string{"router/model"}},
	"router/trace":                     {own: []string{"router/model"}},
	"router/sim":                       {own: []string{"router/model", "router/adp", "router/trace", "router/prefix"}, outside: []string{"github.com/hashicorp/golang-lru"}},
	"router/sim/compare":               {own: []string{"router/model", "router/settings", "router/sim"}},
	"feed":                             {own: []string{"router/model", "feed"}, outside: []string{"github.com/gorilla/websocket"}},
	"themes":                           {outside: []string{"github.com/charmbracelet/colorprofile", "github.com/goccy/go-yaml"}},
	"tui":                              {own: []string{"tui", "feed", "router/model", "themes"}, outside: []string{"github.com/charmbracelet", "github.com/aymanbagabas/go-osc52"}},
	"tui/cell":                         {own: []string{"themes"}, outside: []string{"github.com/charmbracelet/x/ansi"}},
	"tui/keymap":                       {own: []string{"tui/command"}, outside: []string{"github.com/goccy/go-yaml"}},
	"tui/layout":                       {},
	"tui/ptytest":                      {outside: []string{"github.com/creack/pty"}},
	"tui/command":                      {own: []string{"router/model"}},
	"cmd/adpdeck":                      {own: []string{"router", "feed", "themes", "tui", "cmd/adpdeck"}, outside: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/schollz/progressbar", "github.com/charmbracelet"}},
	"cmd/shots":                        {own: []string{"tui", "themes", "feed", "router"}, outside: []string{"github.com/charmbracelet/x/vt", "github.com/charmbracelet/x/ansi", "github.com/charmbracelet/ultraviolet"}},
	"router/prefix":                    {own: []string{"router/model"}, outside: []string{"github.com/zeebo/xxh3"}},
	"router/prefix/event":              {own: []string{"router/model", "router/prefix"}, outside: []string{"github.com/tinylib/msgp", "github.com/zeebo/xxh3"}},
	"router/cluster":                   {own: []string{"router/model"}},
	"router/engine/zmtp":               {},
	"router/engine/enginetest":         {own: []string{"router/model", "router/adp", "router/prefix", "router/engine/zmtp"}, outside: []string{"github.com/tinylib/msgp"}},
	"router/engine/enginetest/zmq":     {own: []string{"router/engine/zmtp"}},
	"router/engine/scrape":             {own: []string{"router/model", "router/prefix/event"}, outside: []string{"github.com/prometheus/common"}},
	"router/engine/plane":              {own: []string{"router/model"}, outside: []string{"github.com/tinylib/msgp"}},
	"router/engine":                    {own: []string{"router/model", "router/prefix/event", "router/engine"}, outside: []string{"github.com/tidwall/gjson", "github.com/nats-io/nats.go"}},
	"router/engine/steer":              {own: []string{"router/model"}, outside: []string{"github.com/tidwall/gjson"}},
	"router/gateway":                   {own: []string{"router", "router/model", "router/engine", "router/prefix", "router/gateway"}, outside: []string{"github.com/tidwall/gjson", "github.com/prometheus/client_golang", "github.com/hashicorp/golang-lru"}},
	"router/engine/enginetest/clients": {},
}

// forbidden names arrows that no file of a room may draw, tests included, each
// with the reason that the failure prints.
var forbidden = []struct{ room, imports, reason string }{
	{"router", "adpdeck/tui", "the router never knows a screen"},
	{"router", "adpdeck/feed", "the router never waits for a socket; the feed subscribes to it"},
	{"router", "github.com/charmbracelet/bubbletea", "Bubble Tea stays in tui: its init talks to the terminal"},
	{"feed", "github.com/charmbracelet", "the feed has no screen"},
	{"themes", "github.com/charmbracelet/lipgloss", "themes compile to SGR themselves: Lip Gloss drops bold and reverse under NO_COLOR"},
	{"tui/cell", "github.com/charmbracelet/lipgloss", "rows are painted by hand: a Lip Gloss cell costs microseconds"},
	{"router/sim", "adpdeck/router", "the simulator is routed through an interface it declares; only its sub-rooms may be read"},
}

func TestArrowsPointOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") && name != ".." || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			checkFile(t, root, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkFile(t *testing.T, root, path string) {
	t.Helper()
	rel, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.ToSlash(filepath.Dir(rel))
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatalf("%s: %v", rel, err)
	}
	room := roomOf(dir)
	if room == "" {
		t.Errorf("%s: folder %s belongs to no room; add it to the table with what it may import", rel, dir)
		return
	}
	for _, spec := range file.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", rel, err)
		}
		for _, f := range forbidden {
			if under(dir, f.room) && arrow(imp, f.imports, dir) {
				t.Errorf("%s imports %s: %s", rel, imp, f.reason)
			}
		}
		if !strings.HasSuffix(rel, "_test.go") && !allowed(room, dir, imp) {
			t.Errorf("%s imports %s: room %s may not; arrows point one way", rel, imp, room)
		}
	}
}

// arrow reports whether imp is what the ban names. The live router itself is
// banned by its exact path, so that its sub-rooms stay readable.
func arrow(imp, ban, dir string) bool {
	if ban == "adpdeck/router" {
		return imp == ban && !strings.HasSuffix(dir, "_test")
	}
	return imp == ban || strings.HasPrefix(imp, ban+"/")
}

func roomOf(dir string) string {
	for d := dir; d != "." && d != "/"; d = filepath.ToSlash(filepath.Dir(d)) {
		if _, ok := rooms[d]; ok {
			return d
		}
	}
	return ""
}

func allowed(room, dir, imp string) bool {
	r := rooms[room]
	if own, ok := strings.CutPrefix(imp, "adpdeck/"); ok {
		for _, o := range append(r.own, room) {
			if under(own, o) && own != dir {
				return true
			}
		}
		return false
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	for _, o := range r.outside {
		if imp == o || strings.HasPrefix(imp, o+"/") {
			return true
		}
	}
	return false
}

func under(dir, room string) bool { return dir == room || strings.HasPrefix(dir, room+"/") }
