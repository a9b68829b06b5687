package themes

import (
	"fmt"
	"strconv"
	"strings"
)

// Colour is one colour of a theme: the terminal's own, one of the 256 indexed
// ones, or red, green and blue.
type Colour struct {
	kind    colourKind
	index   uint8
	r, g, b uint8
}

type colourKind uint8

const (
	colourOwn     colourKind = iota // the terminal's default
	colourIndexed                   // 0-255
	colourRGB
)

// ansiName returns the index of one of the 16 named colours.
func ansiName(s string) (uint8, bool) {
	for i, n := range [...]string{
		"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
		"bright-black", "bright-red", "bright-green", "bright-yellow",
		"bright-blue", "bright-magenta", "bright-cyan", "bright-white",
	} {
		if n == s {
			return uint8(i), true
		}
	}
	return 0, false
}

// parseColour reads "" or "default" (the terminal's own), #rrggbb, 0-255 or
// the name of one of the 16 colours.
func parseColour(s string) (Colour, error) {
	if s == "" || s == "default" {
		return Colour{}, nil
	}
	if hex, ok := strings.CutPrefix(s, "#"); ok {
		n, err := strconv.ParseUint(hex, 16, 32)
		if err != nil || len(hex) != 6 {
			return Colour{}, fmt.Errorf("%q is no colour: want # and six hex digits, like #88c0d0", s)
		}
		return Colour{kind: colourRGB, r: uint8(n >> 16), g: uint8(n >> 8), b: uint8(n)}, nil
	}
	if i, ok := ansiName(s); ok {
		return Colour{kind: colourIndexed, index: i}, nil
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return Colour{}, fmt.Errorf("%q is no colour: want #rrggbb, 0-255, or one of the 16 names such as blue or bright-red", s)
	}
	return Colour{kind: colourIndexed, index: uint8(n)}, nil
}

// rgb returns the colour's red, green and blue; own is what the terminal's own
// colour is taken for. Indexed colours are xterm's.
func (c Colour) rgb(own [3]uint8) [3]uint8 {
	switch c.kind {
	case colourRGB:
		return [3]uint8{c.r, c.g, c.b}
	case colourIndexed:
		return indexRGB(c.index)
	}
	return own
}

// indexRGB is xterm's palette: 16 named colours, a 6×6×6 cube, 24 greys.
func indexRGB(i uint8) [3]uint8 {
	named := [16][3]uint8{
		{0, 0, 0},
		{205, 0, 0},
		{0, 205, 0},
		{205, 205, 0},
		{0, 0, 238},
		{205, 0, 205},
		{0, 205, 205},
		{229, 229, 229},
		{127, 127, 127},
		{255, 0, 0},
		{0, 255, 0},
		{255, 255, 0},
		{92, 92, 255},
		{255, 0, 255},
		{0, 255, 255},
		{255, 255, 255},
	}
	switch {
	case i < 16:
		return named[i]
	case i >= 232:
		v := 8 + 10*(i-232)
		return [3]uint8{v, v, v}
	}
	level := func(n uint8) uint8 {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	n := i - 16
	return [3]uint8{level(n / 36), level(n / 6 % 6), level(n % 6)}
}

// nearest returns the index from lo to hi-1 of xterm's palette whose colour is
// closest to rgb.
func nearest(rgb [3]uint8, lo, hi int) uint8 {
	best, bestD := lo, int64(1)<<62
	for i := lo; i < hi; i++ {
		p := indexRGB(uint8(i))
		dr, dg, db := int64(rgb[0])-int64(p[0]), int64(rgb[1])-int64(p[1]), int64(rgb[2])-int64(p[2])
		if d := 2*dr*dr + 4*dg*dg + 3*db*db; d < bestD {
			best, bestD = i, d
		}
	}
	return uint8(best)
}

// Attr is a set of text attributes.
type Attr uint8

// The attributes that a theme can give a role.
const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Underline
	Reverse
)

// Style is what a theme gives one role.
type Style struct {
	Fore, Ground Colour
	// fore16 and ground16 stand in for them on a terminal of 16 colours.
	fore16, ground16 *Colour
	Attr             Attr
}

func attrNamed(s string) (Attr, bool) {
	switch s {
	case "bold":
		return Bold, true
	case "faint":
		return Faint, true
	case "italic":
		return Italic, true
	case "underline":
		return Underline, true
	case "reverse":
		return Reverse, true
	}
	return 0, false
}
