// Package layout divides the screen. It knows rectangles and column widths,
// nothing of what is drawn in them, and is pure: the same size gives the same
// division. It never refuses a size; a screen too small for a part does not
// get that part.
package layout

// Form is how much of the console fits.
type Form uint8

// The forms. Summary is two lines of figures, Compact one line per item, Full
// the whole frame.
const (
	Summary Form = iota
	Compact
	Full
)

// String returns the form's name.
func (f Form) String() string {
	return [...]string{"summary", "compact", "full"}[f]
}

// The sizes at which forms begin, in cells.
const (
	FullWidth     = 60
	FullHeight    = 14
	CompactWidth  = 40
	CompactHeight = 10
	// SideWidth is the least width of the screen with a side panel, SideHeight
	// the least height.
	SideWidth  = 110
	SideHeight = 30
)

// Rect is a part of the screen; X and Y are its first cell.
type Rect struct{ X, Y, W, H int }

// Empty reports whether nothing fits.
func (r Rect) Empty() bool { return r.W <= 0 || r.H <= 0 }

// Screen is a divided screen. Parts that do not fit are empty.
type Screen struct {
	W, H int
	Form Form
	// Header, Tabs, Status and Hints are rows; Body is all between them.
	Header, Tabs, Body, Status, Hints Rect
}

// Divide divides w×h cells. Full: header, tabs, body, status, hints. Compact:
// header, body, status, hints. Summary: the whole screen is the body.
func Divide(w, h int) Screen {
	w, h = max(w, 0), max(h, 0)
	s := Screen{W: w, H: h}
	row := func(y int) Rect { return Rect{Y: y, W: w, H: 1} }
	switch {
	case w >= FullWidth && h >= FullHeight:
		s.Form = Full
		s.Header, s.Tabs = row(0), row(1)
		s.Body = Rect{Y: 2, W: w, H: h - 4}
	case w >= CompactWidth && h >= CompactHeight:
		s.Form = Compact
		s.Header = row(0)
		s.Body = Rect{Y: 1, W: w, H: h - 3}
	default:
		s.Body = Rect{W: w, H: h}
		return s
	}
	s.Status, s.Hints = row(h-2), row(h-1)
	return s
}

// Side splits a body into the main part and a side panel of a third of the
// width, with one column for the line between them. ok is false when the whole
// screen is too small for a panel; main is then all of it.
func Side(body Rect, screenW, screenH int) (main, line, panel Rect, ok bool) {
	if screenW < SideWidth || screenH < SideHeight {
		return body, Rect{}, Rect{}, false
	}
	w := min(57, max(39, body.W*2/7))
	main, panel = body, body
	main.W = body.W - w - 1
	line = Rect{X: main.X + main.W, Y: body.Y, W: 1, H: body.H}
	panel.X, panel.W = line.X+1, w
	return main, line, panel, true
}

// Centre returns a rectangle of at most w×h in the middle of r.
func Centre(r Rect, w, h int) Rect {
	w, h = min(w, r.W), min(h, r.H)
	return Rect{X: r.X + (r.W-w)/2, Y: r.Y + (r.H-h)/2, W: w, H: h}
}
