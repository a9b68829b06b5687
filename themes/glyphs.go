package themes

import (
	"fmt"
	"strings"
)

// Glyphs is the set of signs that the console draws with. Each is exactly one
// cell wide but Ellipsis. The zero value is of no use; take Unicode or ASCII.
type Glyphs struct {
	// ASCII says that signs inside plain words are replaced too.
	ASCII bool

	CursorMark, Mark           string // ▸ ✓
	BarFull, BarHalf, BarEmpty string // ━ ╸ ─
	BarStale                   string // ┅
	TickFull, TickEmpty        string // ┿ ┼
	Spark                      [8]string
	Heat                       [5]string // · ░ ▒ ▓ █ from little to full
	HLine, VLine               string    // ─ │
	TopLeft, TopRight          string    // ╭ ╮
	BottomLeft, BottomRight    string    // ╰ ╯
	Now, StagedDot             string    // ● ◆ on sliders
	Live, Slow, Stale          string    // ● ◐ ✕
	Frozen, Replay, ReadOnly   string    // ‖ ▷ ○
	Up, Down                   string    // ▲ ▼
	Good, Bad, Alert           string    // ✓ ✕ !
	Caret                      string    // ▏ where text is typed
	Enter                      string    // ⏎ the key; "enter" in ASCII
	Ellipsis                   string    // … where text was cut; "..." in ASCII
	Unknown                    string    // — a figure that is not known

	// The states of an engine's feeds, told apart by shape alone.
	FeedLive, FeedStale, FeedGap    string // ● ◐ ▲
	FeedSilent, FeedNone, FeedGuess string // ◌ · ≈
	FeedOther                       string // ? a state that this console does not know
}

// Unicode is the set that most terminals draw well. No braille patterns: they
// are real text to braille displays.
func Unicode() Glyphs {
	return Glyphs{
		CursorMark: "▸", Mark: "✓",
		BarFull: "━", BarHalf: "╸", BarEmpty: "─", BarStale: "┅", TickFull: "┿", TickEmpty: "┼",
		Spark: [8]string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		Heat:  [5]string{"·", "░", "▒", "▓", "█"},
		HLine: "─", VLine: "│", TopLeft: "╭", TopRight: "╮", BottomLeft: "╰", BottomRight: "╯",
		Now: "●", StagedDot: "◆", Live: "●", Slow: "◐", Stale: "✕", Frozen: "‖", Replay: "▷", ReadOnly: "○",
		Up: "▲", Down: "▼", Good: "✓", Bad: "✕", Alert: "!", Caret: "▏", Enter: "⏎", Ellipsis: "…", Unknown: "—",
		FeedLive: "●", FeedStale: "◐", FeedGap: "▲", FeedSilent: "◌", FeedNone: "·", FeedGuess: "≈", FeedOther: "?",
	}
}

// ASCII is the set for terminals and fonts that have no more.
func ASCII() Glyphs {
	return Glyphs{
		ASCII:      true,
		CursorMark: ">", Mark: "*",
		BarFull: "=", BarHalf: "=", BarEmpty: "-", BarStale: "~", TickFull: "|", TickEmpty: "|",
		Spark: [8]string{".", ".", ":", "-", "=", "+", "*", "#"},
		Heat:  [5]string{".", ":", "+", "*", "#"},
		HLine: "-", VLine: "|", TopLeft: "+", TopRight: "+", BottomLeft: "+", BottomRight: "+",
		Now: "o", StagedDot: "*", Live: "o", Slow: "o", Stale: "x", Frozen: "=", Replay: ">", ReadOnly: "o",
		Up: "^", Down: "v", Good: "*", Bad: "x", Alert: "!", Caret: "_", Enter: "enter", Ellipsis: "...", Unknown: "-",
		FeedLive: "o", FeedStale: "c", FeedGap: "^", FeedSilent: "x", FeedNone: ".", FeedGuess: "~", FeedOther: "?",
	}
}

// Plain returns the one-cell ASCII stand-in for a sign that the console uses
// in words, and false for any other rune. It is applied where rows are
// painted, when the set is ASCII.
func Plain(r rune) (byte, bool) {
	const from = "…·×→←↑↓βλμδωχνρ±÷−–—▸▶✓✕●◆◐○‖▷▲▼│─━╸┿┼┅┊▏⏎≤≥≠µ²³¹⁴⁵⁶⁷⁸⁹⁺"
	const to = ".-x><^vbludwxvr+/---" + ">>*xo*oo=>^v" + "|-=" + "=||~:_" + "<<>!u23" + "1456789+"
	i := 0
	for _, f := range from {
		if f == r {
			return to[i], true
		}
		i++
	}
	return 0, false
}

// ChooseGlyphs returns the set for mode unicode, ascii or auto. Auto takes
// ASCII under a Chinese, Japanese or Korean locale, where terminals draw many
// of the signs two cells wide, and where the locale is not UTF-8.
func ChooseGlyphs(mode string, env []string) (Glyphs, error) {
	switch mode {
	case "unicode":
		return Unicode(), nil
	case "ascii":
		return ASCII(), nil
	case "auto", "":
	default:
		return Glyphs{}, fmt.Errorf("glyphs %q: want auto, unicode or ascii", mode)
	}
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale = lookup(env, name); locale != "" {
			break
		}
	}
	lower := strings.ToLower(locale)
	for _, lang := range []string{"zh", "ja", "ko"} {
		if strings.HasPrefix(lower, lang) {
			return ASCII(), nil
		}
	}
	_, charset, named := strings.Cut(lower, ".")
	if named && !strings.HasPrefix(charset, "utf-8") && !strings.HasPrefix(charset, "utf8") {
		return ASCII(), nil
	}
	return Unicode(), nil
}
