// Package themes reads, checks and compiles the console's colours and signs.
//
// A theme is one YAML file: a handful of named colours and a line for each of
// the roles (Role) that views paint with. Parse reads it strictly and names
// file, line and column of what is wrong; Compile turns it once into the
// terminal sequences for a colour depth, so that painting is concatenation;
// Lint checks contrast and that ok, warn and crit stay apart for eyes that
// mix up colours. Three themes are built in: night, day and mono.
//
// The package asks the terminal nothing, starts no goroutine and keeps no
// state; a File and a Theme are never written after they are returned.
package themes

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

//go:embed night.yaml day.yaml mono.yaml
var builtin embed.FS

// MaxFileBytes is the size above which a theme file is refused.
const MaxFileBytes = 64 << 10

// ErrNoTheme is returned by Load for a name that is neither built in nor a
// path.
var ErrNoTheme = errors.New("no such theme")

// Names returns the names of the themes that are built in.
func Names() []string { return []string{"night", "day", "mono"} }

// Load reads a built-in theme by its name, or a file by its path. A path is
// anything that has a slash or ends in .yaml or .yml.
func Load(nameOrPath string) (*File, error) {
	for _, n := range Names() {
		if n == nameOrPath {
			b, err := builtin.ReadFile(n + ".yaml")
			if err != nil {
				return nil, fmt.Errorf("read theme %s: %w", n, err)
			}
			return Parse(n+".yaml", b)
		}
	}
	ext := filepath.Ext(nameOrPath)
	if !strings.ContainsRune(nameOrPath, filepath.Separator) && ext != ".yaml" && ext != ".yml" {
		return nil, fmt.Errorf("theme %q: %w; built in are %s, or give the path of a YAML file",
			nameOrPath, ErrNoTheme, strings.Join(Names(), ", "))
	}
	return loadFile(nameOrPath)
}

func loadFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read theme: %w; give the path of a YAML file, or one that is built in: %s", err, strings.Join(Names(), ", "))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read theme: %w", err)
	}
	return Parse(path, b)
}
