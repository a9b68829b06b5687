package command

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown returns the documentation's page of keys.
func (t *Table) Markdown() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nThis page is written from the command table; `go test ./tui/command -update` writes it anew.\n" +
		"Lower case looks, upper case acts. Where a command says …, a dialog follows, and Cancel has the focus.\n")
	for _, g := range []Group{GroupLook, GroupAct, GroupMove} {
		fmt.Fprintf(&b, "\n## %s\n\n| key | name | does | where |\n|---|---|---|---|\n", strings.ToUpper(g.Title()[:1])+strings.ToLower(g.Title()[1:]))
		for i := range t.Commands {
			c := &t.Commands[i]
			if c.Group != g {
				continue
			}
			where := make([]string, len(c.Views))
			for j, v := range c.Views {
				where[j] = string(v)
			}
			if len(where) == 0 {
				where = []string{"everywhere"}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.markdownKeys(), c.ID, c.Help, strings.Join(where, ", "))
		}
	}
	b.WriteString(plainly)
	b.WriteString(ownKeys)
	plain := NewSet(Plain)
	for i := range plain.Commands {
		if c := &plain.Commands[i]; !slices.Equal(c.Keys, t.Commands[i].Keys) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.markdownKeys(), c.ID, t.Commands[i].markdownKeys())
		}
	}
	return b.String()
}

func (c *Command) markdownKeys() string {
	if len(c.Keys) == 0 {
		return "`:" + string(c.ID) + "`"
	}
	keys := names(c.Keys)
	for i, k := range keys {
		keys[i] = "`" + k + "`"
	}
	return strings.Join(keys, " ")
}

// ownKeys is the page's part on other keys, up to the rows of the plain set.
const ownKeys = `
## Keys of your own

The console reads ` + "`adpdeck/console.yaml`" + ` in the user's configuration directory (` + "`$XDG_CONFIG_HOME`" + `, else ` + "`~/.config`" + `), or the file that
` + "`--console FILE`" + ` names:

` + "```yaml" + `
keys: plain              # vim (the keys above, the default) or plain
bind:                    # NAME: KEY or [KEY, …]; the first one is shown
  freeze: f9
  copy: [c, f11]
  drain: T
  slower: []             # no key: by name only, :slower
` + "```" + `

A key is one character, ` + "`space`, `enter`, `tab`, `pgdn`, `f1` … `f12`, `^g` or `ctrl+g`, `alt+x`" + `. Help, hints, sentences and dialogs show the keys
in force. The file is read once, when the console opens:

- what is not understood is refused with its line, before the screen opens;
- so is a key against the rules: upper case acts and nothing else does; nothing that changes a value or the router sits on ` + "`ctrl` or `alt`" + `;
  ` + "`^c`" + ` always leaves; ` + "`:`" + ` may move, but not go; what moves the cursor is no key that answers dialogs (` + "`y` `n` `q` `r` `i` `h` `l`" + `, arrows to the side,
  ` + "`⏎` `esc` `tab`" + `), which are the same everywhere;
- a key that would start two commands in one view puts none of the file's ` + "`bind`" + ` in force: the set's keys are kept, and the console says so once.

The set ` + "`plain`" + ` differs in

| key | name | in vim |
|---|---|---|
`

// plainly is the page's part on the console without a screen.
const plainly = `
## Without a screen

` + "`adpdeck --plain`, `adpdeck attach ADDRESS --plain`" + ` and the other consoles write one sentence a line and no escape sequence: for screen readers, braille
displays, pipes and logs. A line comes when a figure has moved by a tenth, the hit rate by 2 points or skew by 0.05, at most every 10 s (` + "`--every`" + `);
alerts, changes by others and a lost feed come at once. Commands are the names above and the palette's, one a line; ` + "`help`" + ` lists them, ` + "`status`" + ` says
all figures, ` + "`list VIEW`" + ` a view's rows. What asks on a screen asks here for yes, or for the word that a wide change wants, with a reason behind it. A piped
script works the same way: each line waits for what the one before did, and its end is a quit.

` + "```sh" + `
printf 'weight w0/3 0.8\napply\nyes hot rank\n' | adpdeck attach 127.0.0.1:7700 --plain
` + "```" + `
`
