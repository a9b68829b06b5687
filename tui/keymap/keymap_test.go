package keymap

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"adpdeck/tui/command"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		id   command.ID
		want []string
	}{
		"empty":            {"", command.Down, []string{"j", "down"}},
		"comment alone":    {"# nothing yet\n", command.Down, []string{"j", "down"}},
		"vim":              {"keys: vim\n", command.Down, []string{"j", "down"}},
		"plain":            {"keys: plain\n", command.Down, []string{"down"}},
		"plain help":       {"keys: plain\n", command.Help, []string{"f1", "?"}},
		"one key":          {"bind:\n  freeze: f9\n", command.Freeze, []string{"f9"}},
		"as shown":         {"bind:\n  freeze: F9\n", command.Freeze, []string{"f9"}},
		"several":          {"bind:\n  copy: [c, f11]\n", command.Copy, []string{"c", "f11"}},
		"none":             {"bind:\n  slower: []\n", command.Slower, []string{}},
		"ctrl":             {"bind:\n  theme: ^g\n", command.Theme, []string{"ctrl+g"}},
		"space":            {"bind:\n  mark: space\n", command.Mark, []string{" "}},
		"yaml's truth":     {"bind:\n  next-match: n\n", command.NextMatch, []string{"n"}},
		"yaml's number":    {"bind:\n  sort: 8\n", command.Sort, []string{"8"}},
		"yaml's null":      {"bind:\n  sort: \"~\"\n", command.Sort, []string{"~"}},
		"quoted":           {"bind:\n  palette: x\n", "", nil},
		"over plain":       {"keys: plain\nbind:\n  down: [down, j]\n", command.Down, []string{"down", "j"}},
		"freed and taken":  {"bind:\n  freeze: f9\n  copy: z\n", command.Copy, []string{"z"}},
		"upper case acts":  {"bind:\n  drain: T\n", command.Drain, []string{"T"}},
		"its own capital":  {"bind:\n  last: [G]\n", command.Last, []string{"G"}},
		"other views' key": {"bind:\n  resync: M\n", command.Resync, []string{"M"}},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := Parse("console.yaml", []byte(c.file))
			if c.id == "" {
				if err == nil {
					t.Fatal("not refused")
				}
				return
			}
			if err != nil || k.Clash != "" {
				t.Fatal(err, k)
			}
			if got := k.Table.Get(c.id).Keys; !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.id, got, c.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"no yaml":        {"keys: [\n", "c.yaml:1"},
		"a list":         {"- keys\n", "c.yaml:1:1: console file: want lines"},
		"unknown name":   {"keys: vim\ntheme: night\n", `c.yaml:2:1: unknown name "theme"; names are keys and bind`},
		"unknown set":    {"keys: emacs\n", `c.yaml:1:7: keys "emacs": want vim or plain`},
		"doubled":        {"bind:\n  copy: c\n  copy: d\n", "c.yaml:3:3"},
		"no command":     {"bind:\n  dance: c\n", `c.yaml:2:3: no command "dance"`},
		"no key":         {"bind:\n  copy: hyper+c\n", `c.yaml:2:9: no key "hyper+c"; want one character`},
		"nothing":        {"bind:\n  copy:\n", `no key ""`},
		"a mapping":      {"bind:\n  copy: {a: b}\n", "want a key, or keys in brackets"},
		"twice":          {"bind:\n  copy: [c, c]\n", "c.yaml:2:13: key c is given twice"},
		"ctrl acts":      {"bind:\n  drain: ctrl+k\n", "c.yaml:2:10: drain changes something, and ^k belongs to shells and multiplexers"},
		"alt stages":     {"bind:\n  step-less: alt+x\n", "no such command sits on ctrl or alt"},
		"ctrl pauses":    {"bind:\n  pause: ^p\n", "no such command sits on ctrl or alt"},
		"lower acts":     {"bind:\n  evict: d\n", "c.yaml:2:10: evict acts, and only upper case acts: give it an upper-case letter, not d"},
		"F-key acts":     {"bind:\n  apply: f9\n", "apply acts, and only upper case acts"},
		"enter acts":     {"bind:\n  undo: enter\n", "enter answers dialogs"},
		"lower resyncs":  {"bind:\n  resync: d\n", "resync acts, and only upper case acts"},
		"unpin lower":    {"bind:\n  unpin: d\n", "unpin acts, and only upper case acts"},
		"upper looks":    {"bind:\n  copy: Y\n", "copy does not act, and upper case acts: give it another key than Y"},
		"move answers":   {"bind:\n  down: \"y\"\n", "y answers dialogs, in which down moves"},
		"ctrl+c":         {"bind:\n  copy: ctrl+c\n", "ctrl+c always leaves"},
		"interrupt":      {"bind:\n  interrupt: f12\n", "ctrl+c always leaves"},
		"no palette":     {"bind:\n  command: []\n", "the palette needs a key"},
		"ctrl+i is tab":  {"bind:\n  copy: ctrl+i\n", "a terminal sends tab for it"},
		"two documents":  {"keys: vim\n---\nkeys: vim\n", "want one YAML document"},
		"longer than it": {strings.Repeat("#", MaxFileBytes+1), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("c.yaml", []byte(c.file))
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAClashKeepsTheKeysOfTheSet(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"with the set":    {"keys: vim\nbind:\n  sort: s\n  copy: z\n", "console.yaml:4: key z starts freeze and copy in ranks: vim keys kept"},
		"with each other": {"bind:\n  copy: c\n  export: c\n", "console.yaml:3: key c starts copy and export in ranks: vim keys kept"},
		"of plain":        {"keys: plain\nbind:\n  copy: f1\n", "console.yaml:3: key F1 starts copy and help in ranks: plain keys kept"},
		"in one view":     {"bind:\n  drain: W\n", "console.yaml:2: key W starts weight and drain in ranks: vim keys kept"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := Parse("/home/ann/console.yaml", []byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if k.Clash != c.want {
				t.Errorf("got  %s\nwant %s", k.Clash, c.want)
			}
			set := command.Vim
			if strings.Contains(c.file, "plain") {
				set = command.Plain
			}
			for i, want := range command.NewSet(set).Commands {
				if got := k.Table.Commands[i]; !slices.Equal(got.Keys, want.Keys) {
					t.Errorf("%s: %q, want %q", want.ID, got.Keys, want.Keys)
				}
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	path := filepath.Join(dir, "adpdeck", "console.yaml")
	if got := DefaultPath(); got != path {
		t.Errorf("default path %s, want %s", got, path)
	}
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("keys: plain\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if k, err := Load(path); err != nil || k.Table.KeyOf(command.Help) != "F1" {
		t.Errorf("%v %v", k, err)
	}
}

// Whatever the file holds, the table has no key twice and keeps its rules.
func FuzzParse(f *testing.F) {
	f.Add([]byte("keys: plain\nbind:\n  freeze: f9\n  copy: [c, ^g]\n  slower: []\n"))
	f.Add([]byte("bind: {drain: T, ? x : y}"))
	f.Add([]byte("bind:\n  copy: &a c\n  export: *a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := Parse("f", b)
		var e *Error
		if err != nil {
			if !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if _, err := k.Table.Rebind(nil); err != nil {
			t.Fatal(err)
		}
		for i := range k.Table.Commands {
			c := &k.Table.Commands[i]
			if c.ID != command.Interrupt && command.Forbids(c.ID, c.Keys) != "" {
				t.Fatal(command.Forbids(c.ID, c.Keys))
			}
		}
	})
}
