package themes

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/colorprofile"
)

// DetectDepth says how many colours to use. mode is auto, none, 16, 256 or
// true; auto looks at the terminal behind out and at env (TERM, COLORTERM,
// NO_COLOR, CLICOLOR, tmux) and asks the terminal nothing. Any value of
// NO_COLOR but the empty one turns colours off and keeps bold and reverse.
func DetectDepth(mode string, out io.Writer, env []string) (Depth, error) {
	switch mode {
	case "none":
		return NoColour, nil
	case "16":
		return Colours16, nil
	case "256":
		return Colours256, nil
	case "true":
		return TrueColour, nil
	case "auto", "":
	default:
		return NoColour, fmt.Errorf("colour mode %q: want auto, none, 16, 256 or true", mode)
	}
	if lookup(env, "NO_COLOR") != "" {
		return NoColour, nil
	}
	switch colorprofile.Detect(out, env) {
	case colorprofile.TrueColor:
		return TrueColour, nil
	case colorprofile.ANSI256:
		return Colours256, nil
	case colorprofile.ANSI:
		return Colours16, nil
	}
	return NoColour, nil
}

// lookup returns the last value of name in env, as os.Environ writes it.
func lookup(env []string, name string) string {
	value := ""
	for _, e := range env {
		if k, v, ok := strings.Cut(e, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// DefaultName picks the theme for theme "auto": mono without colours, day
// where COLORFGBG names a light ground, else night. The terminal is not asked.
func DefaultName(d Depth, env []string) string {
	if d == NoColour {
		return "mono"
	}
	parts := strings.Split(lookup(env, "COLORFGBG"), ";")
	switch parts[len(parts)-1] {
	case "7", "15":
		return "day"
	}
	return "night"
}
