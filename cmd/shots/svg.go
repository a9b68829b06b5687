package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"regexp"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// The size of a cell and the margin around the frame, in pixels.
const (
	cellW  = 8
	cellH  = 18
	margin = 12
)

// picture holds what cells without a colour are drawn in.
type picture struct{ ink, paper, title string }

var hexColour = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

func newPicture(ink, paper, title string) (*picture, error) {
	for _, c := range []string{ink, paper} {
		if !hexColour.MatchString(c) {
			return nil, fmt.Errorf("colour %q: want # and six hex digits", c)
		}
	}
	return &picture{strings.ToLower(ink), strings.ToLower(paper), title}, nil
}

// draw renders a frame through a terminal emulator and writes its cells.
func (p *picture) draw(frame string) ([]byte, error) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(frame, "\r\n", "\n"), "\n"), "\n")
	w := 0
	for _, l := range lines {
		w = max(w, ansi.StringWidth(l))
	}
	if w == 0 {
		return nil, errors.New("the frame is empty")
	}
	term := vt.NewEmulator(w, len(lines))
	defer term.Close()
	for y, l := range lines {
		// A style goes on into the next line, as tmux prints its captures.
		if _, err := fmt.Fprintf(term, "\x1b[%d;1H%s", y+1, l); err != nil {
			return nil, fmt.Errorf("draw line %d: %w", y+1, err)
		}
	}
	var b bytes.Buffer
	width, height := w*cellW+2*margin, len(lines)*cellH+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	if p.title != "" {
		b.WriteString("<title>")
		if err := xml.EscapeText(&b, []byte(p.title)); err != nil {
			return nil, err
		}
		b.WriteString("</title>\n")
	}
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="%s"/>`+"\n", width, height, p.paper)
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="13.3" transform="translate(%d %d)" xml:space="preserve">`+"\n", margin, margin)
	for y := range lines {
		p.row(&b, term, w, y)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes(), nil
}

// look is how a cell is drawn.
type look struct {
	fore, ground     string
	bold, under, dim bool
}

func (p *picture) look(c *uv.Cell) look {
	s := c.Style
	l := look{
		fore: hex(s.Fg, p.ink), ground: hex(s.Bg, p.paper),
		bold: s.Attrs&uv.AttrBold != 0, dim: s.Attrs&uv.AttrFaint != 0, under: s.Underline != 0,
	}
	if s.Attrs&uv.AttrReverse != 0 {
		l.fore, l.ground = l.ground, l.fore
	}
	return l
}

func hex(c color.Color, none string) string {
	if c == nil {
		return none
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// stretch is a run of cells of one look.
type stretch struct {
	look
	x     int      // first column
	n     int      // columns
	texts []string // content of each cell, "" for the second half of a wide one
}

// row writes one line: grounds first, then shapes and text.
func (p *picture) row(b *bytes.Buffer, term *vt.Emulator, w, y int) {
	for _, r := range p.runs(term, w, y) {
		if r.ground != p.paper {
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, r.x*cellW, y*cellH, r.n*cellW, cellH, r.ground)
		}
		r.write(b, y)
	}
	b.WriteByte('\n')
}

func (p *picture) runs(term *vt.Emulator, w, y int) []stretch {
	var out []stretch
	for x := 0; x < w; x++ {
		c := term.CellAt(x, y)
		if c == nil {
			continue
		}
		l := p.look(c)
		if n := len(out); n == 0 || out[n-1].look != l || out[n-1].x+out[n-1].n != x {
			out = append(out, stretch{look: l, x: x})
		}
		r := &out[len(out)-1]
		for i := range max(1, c.Width) {
			text := c.Content
			if i > 0 {
				text = ""
			}
			r.texts = append(r.texts, text)
			r.n++
		}
		x += max(1, c.Width) - 1
	}
	return out
}

// write draws the run's shapes as one path, and its words each at its own
// column with an x for every cell; a reader that takes only the first x is still
// right to within a word.
func (r *stretch) write(b *bytes.Buffer, y int) {
	var path, text, word, xs strings.Builder
	end := func() {
		if word.Len() > 0 {
			fmt.Fprintf(&text, `<tspan x="%s">`, strings.TrimSpace(xs.String()))
			_ = xml.EscapeText(&text, []byte(word.String())) // a Builder takes everything
			text.WriteString("</tspan>")
		}
		word.Reset()
		xs.Reset()
	}
	for i, t := range r.texts {
		x := (r.x + i) * cellW
		switch {
		case t == "": // the second half of a wide sign
		case t == " " || shape(&path, t, x, y*cellH):
			end()
		default:
			word.WriteString(t)
			for range []rune(t) {
				fmt.Fprintf(&xs, "%d ", x)
			}
		}
	}
	end()
	style := ""
	if r.dim {
		style = ` opacity="0.6"`
	}
	if path.Len() > 0 {
		fmt.Fprintf(b, `<path d="%s" fill="%s"%s/>`, path.String(), r.fore, style)
	}
	if text.Len() > 0 {
		if r.bold {
			style = ` font-weight="bold"` + style
		}
		fmt.Fprintf(b, `<text y="%d" fill="%s"%s>%s</text>`, y*cellH+13, r.fore, style, text.String())
	}
	if r.under {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="1" fill="%s"/>`, r.x*cellW, y*cellH+15, r.n*cellW, r.fore)
	}
}
