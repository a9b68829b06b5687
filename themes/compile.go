package themes

import "strconv"

// Depth is how many colours the terminal shows.
type Depth uint8

// The depths. NoColour keeps bold, reverse and the other attributes.
const (
	NoColour Depth = iota
	Colours16
	Colours256
	TrueColour
)

// Theme is a theme compiled for one depth: for every role the bytes that
// switch a terminal to it, from whatever was set before. It is immutable.
type Theme struct {
	// Name is the theme's own name.
	Name string
	// Kind is the ground that it was made for.
	Kind   Kind
	depth  Depth
	plain  [NumRoles]string
	cursor [NumRoles]string
	stale  [NumRoles]string
	// quiet roles look like text where they paint blanks.
	quiet [NumRoles]bool
}

// Reset ends every style.
const Reset = "\x1b[m"

// SGR returns the sequence for role r on an ordinary row.
func (t *Theme) SGR(r Role) string { return t.plain[r] }

// OnCursor returns the sequence for role r on the cursor's row: the role's own
// colour on the ground and with the attributes of the cursor role.
func (t *Theme) OnCursor(r Role) string { return t.cursor[r] }

// Stale returns the sequence for role r on a row whose figures are old: the
// dim role's colour, whatever r is.
func (t *Theme) Stale(r Role) string { return t.stale[r] }

// Quiet reports that blanks painted in role r look like blanks in the text
// role, on rows of every kind, so that a painter need not switch for them.
func (t *Theme) Quiet(r Role) bool { return t.quiet[r] }

// Compile turns a theme into sequences for a depth.
func (f *File) Compile(d Depth) *Theme {
	t := &Theme{Name: f.Name, Kind: f.Kind, depth: d}
	cur, dim := f.Styles[Cursor], f.Styles[Dim]
	for _, r := range Roles() {
		s := f.Styles[r]
		t.plain[r] = sgr(s, d)
		c := s
		if r == Text || r == Cursor {
			c = cur
		}
		c.Ground, c.ground16 = cur.Ground, cur.ground16
		c.Attr |= cur.Attr
		t.cursor[r] = sgr(c, d)
		t.stale[r] = sgr(dim, d)
		const inked = Underline | Reverse
		t.quiet[r] = s.Ground == f.Styles[Text].Ground && s.Attr&inked == f.Styles[Text].Attr&inked && c.Attr&inked == (f.Styles[Text].Attr|cur.Attr)&inked
	}
	// A button with the focus, a reversed badge and the tab in front keep their
	// own look on any row.
	for _, r := range []Role{ButtonFocus, LinkStale, TabActive} {
		t.cursor[r] = t.plain[r]
		t.stale[r] = t.plain[r]
		t.quiet[r] = false
	}
	return t
}

// sgr writes one absolute sequence: it begins with a reset, so it needs no
// knowledge of what was set before.
func sgr(s Style, d Depth) string {
	b := []byte("\x1b[")
	for i, code := range [...]string{"1", "2", "3", "4", "7"} {
		if s.Attr&(1<<i) != 0 {
			b = append(append(b, ';'), code...)
		}
	}
	b = appendColour(b, s.Fore, s.fore16, d, false)
	b = appendColour(b, s.Ground, s.ground16, d, true)
	return string(append(b, 'm'))
}

// appendColour appends ;38;2;r;g;b and the like; nothing for the terminal's
// own colour.
func appendColour(b []byte, c Colour, c16 *Colour, d Depth, ground bool) []byte {
	if d == NoColour || (c.kind == colourOwn && (d != Colours16 || c16 == nil)) {
		return b
	}
	if d == Colours16 {
		return appendNamed(b, index16(c, c16), ground)
	}
	first := int64(38)
	if ground {
		first = 48
	}
	b = strconv.AppendInt(append(b, ';'), first, 10)
	if c.kind == colourRGB && d == TrueColour {
		b = append(b, ";2"...)
		for _, v := range [...]uint8{c.r, c.g, c.b} {
			b = strconv.AppendInt(append(b, ';'), int64(v), 10)
		}
		return b
	}
	i := c.index
	if c.kind == colourRGB {
		i = nearest(c.rgb([3]uint8{}), 16, 256)
	}
	return strconv.AppendInt(append(b, ";5;"...), int64(i), 10)
}

// index16 is the colour of a 16-colour terminal that stands for c; -1 is the
// terminal's own.
func index16(c Colour, c16 *Colour) int {
	if c16 != nil {
		c = *c16
	}
	switch {
	case c.kind == colourOwn:
		return -1
	case c.kind == colourIndexed && c.index < 16:
		return int(c.index)
	}
	return int(nearest(c.rgb([3]uint8{}), 0, 16))
}

func appendNamed(b []byte, i int, ground bool) []byte {
	if i < 0 {
		return b
	}
	code := int64(30 + i)
	if i >= 8 {
		code = int64(90 + i - 8)
	}
	if ground {
		code += 10
	}
	return strconv.AppendInt(append(b, ';'), code, 10)
}

// Colourless reports that the tab in front looks like the others but for its
// attributes: signs must carry what colours do elsewhere.
func (t *Theme) Colourless() bool { return t.Kind == Mono || t.depth == NoColour }
