package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Where lines run inside a cell, and how thick they are.
const (
	midX, midY   = cellW / 2, cellH / 2
	thin, heavy  = 1, 3
	dashW, dashN = 2, 3
)

// box appends a rectangle to a path.
func box(p *strings.Builder, x, y, w, h int) { fmt.Fprintf(p, "M%d %dh%dv%dh%dz", x, y, w, h, -w) }

// shape appends the drawing of a line or block sign whose cell begins at x, y,
// and reports false for signs that are text.
func shape(p *strings.Builder, sign string, x, y int) bool {
	r, size := utf8.DecodeRuneInString(sign)
	if size != len(sign) {
		return false
	}
	if r >= '▁' && r <= '█' {
		h := (int(r-'▁') + 1) * cellH / 8
		box(p, x, y+cellH-h, cellW, h)
		return true
	}
	across := func(from, to, thick int) { box(p, x+from, y+midY-thick/2, to-from, thick) }
	down := func(from, to int) { box(p, x+midX, y+from, thin, to-from) }
	switch r {
	case '─':
		across(0, cellW, thin)
	case '━':
		across(0, cellW, heavy)
	case '╸':
		across(0, midX, heavy)
	case '│':
		down(0, cellH)
	case '┼':
		across(0, cellW, thin)
		down(3, cellH-3)
	case '┿':
		across(0, cellW, heavy)
		down(3, cellH-3)
	case '┊':
		for i := range 4 {
			down(2+i*4, 4+i*4)
		}
	case '┅':
		for i := range dashN {
			across(i*cellW/dashN, i*cellW/dashN+dashW, heavy)
		}
	case '╭', '╮', '╰', '╯':
		corner(p, r, x, y)
	case '▏':
		box(p, x, y+1, thin, cellH-2)
	case '░', '▒', '▓':
		shade(p, int(r-'░')+1, x, y)
	default:
		return false
	}
	return true
}

// corner draws a rounded corner as a bent line of the thickness of ─.
func corner(p *strings.Builder, r rune, x, y int) {
	right := r == '╭' || r == '╰'
	below := r == '╭' || r == '╮'
	cx, cy := x+midX, y+midY
	endX, endY, sx, sy := x, y, -1, -1
	if right {
		endX, sx = x+cellW, 1
	}
	if below {
		endY, sy = y+cellH, 1
	}
	// Outline: along the outer arc, and back along the inner one.
	fmt.Fprintf(p, "M%d %dV%dQ%d %d %d %dH%dV%dH%dQ%d %d %d %dV%dz",
		cx, endY, cy+3*sy, cx, cy, cx+3*sx, cy, endX, cy+1, cx+3*sx+min(0, sx), cx+1, cy+1, cx+1, cy+3*sy+1, endY)
}

// shade fills a cell with dots, the denser the greater n.
func shade(p *strings.Builder, n, x, y int) {
	for dy := 0; dy < cellH; dy += 3 {
		for dx := (dy / 3 % 2) * 2; dx < cellW; dx += 4 {
			box(p, x+dx, y+dy, n, n)
		}
	}
}
