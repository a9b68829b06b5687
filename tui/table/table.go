// Package table is what the console's lists show of their own state: the
// filter being typed or in force, the order, and a value quoted for a filter.
package table

import (
	"strings"
	"unicode"

	"adpdeck/tui/cell"
)

// Filtered is a list with a filter.
type Filtered interface {
	Typing() bool
	FilterText() (text string, err error)
}

// FilterLine paints the filter: / rank:w0/3 ▏, and what is wrong with it.
func FilterLine(l Filtered) []cell.Run {
	text, err := l.FilterText()
	runs := []cell.Run{{Role: cell.Key, Text: cell.Lit("/ ")}, {Role: cell.Input, Text: cell.Foreign(text)}}
	if l.Typing() {
		runs = append(runs, cell.Run{Role: cell.Key, Text: cell.Lit("▏")})
	}
	if err != nil {
		runs = append(runs, cell.Run{Role: cell.Warn, Text: cell.Say(" %s", cell.Foreign(err.Error()))})
	}
	return runs
}

// Ordered is a list with an order.
type Ordered interface {
	Order() (name string, falling bool)
}

// OrderText is sort cached ▼.
func OrderText(l Ordered) cell.Text {
	name, falling := l.Order()
	if falling {
		return cell.Say("sort %s ▼", cell.Foreign(name))
	}
	return cell.Say("sort %s ▲", cell.Foreign(name))
}

// Quote writes a value so that a filter takes it as it stands.
func Quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\r\n\v\f|:<>!\"\\") && !strings.ContainsFunc(s, unicode.IsSpace) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
