package themes

import (
	"fmt"
	"math"
)

// Contrast that a theme must reach against its ground (WCAG 2.1, 1.4.3 and
// 1.4.11), and the least distance between ok, warn and crit.
const (
	MinTextContrast    = 4.5
	MinGraphicContrast = 3.0
	MinDistance        = 20.0 // CIE 1976 ΔE in Lab
)

// grounds returns what a theme's empty ground is taken for: the extremes of
// what terminals of that kind use.
func (k Kind) grounds() [][3]uint8 {
	switch k {
	case Dark:
		return [][3]uint8{{0, 0, 0}, {30, 30, 46}}
	case Light:
		return [][3]uint8{{255, 255, 255}, {250, 250, 245}}
	}
	return nil
}

// Lint returns what is hard to read in a theme, one sentence each; none for a
// good theme. A mono theme has no colours to check, but its cursor, stale badge
// and focused button must differ from text by an attribute.
func Lint(f *File) []string {
	var out []string
	if f.Kind == Mono {
		for _, r := range []Role{Cursor, LinkStale, ButtonFocus, Crit, Mark, TabActive} {
			if f.Styles[r].Attr == f.Styles[Text].Attr {
				out = append(out, fmt.Sprintf("%s looks like text: give it bold, reverse or underline", r))
			}
		}
		return out
	}
	for _, own := range f.Kind.grounds() {
		for _, r := range Roles() {
			out = append(out, f.lintRole(r, f.Styles[r], r.String(), own)...)
			on := f.Styles[r]
			on.Ground = f.Styles[Cursor].Ground
			if r != TabActive && r != ButtonFocus && r != LinkStale {
				out = append(out, f.lintRole(r, on, r.String()+" on the cursor's row", own)...)
			}
		}
		out = append(out, f.lintVision(own)...)
	}
	return out
}

func (f *File) lintRole(r Role, s Style, name string, own [3]uint8) []string {
	want := MinTextContrast
	if r.graphic() {
		want = MinGraphicContrast
	}
	ink := [3]uint8{255, 255, 255}
	if f.Kind == Light {
		ink = [3]uint8{}
	}
	c := Contrast(s.Fore.rgb(ink), s.Ground.rgb(own))
	if c >= want {
		return nil
	}
	return []string{fmt.Sprintf("%s has contrast %.2f on %02x%02x%02x, want at least %.1f", name, c, own[0], own[1], own[2], want)}
}

// lintVision compares ok, warn and crit as the common colour-vision
// deficiencies see them.
func (f *File) lintVision(own [3]uint8) []string {
	var out []string
	roles := [...]Role{OK, Warn, Crit}
	for _, v := range []Vision{FullColour, Protan, Deutan, Tritan} {
		for i, a := range roles {
			for _, b := range roles[i+1:] {
				ca, cb := f.Styles[a].Fore.rgb(own), f.Styles[b].Fore.rgb(own)
				if d := Distance(Simulate(v, ca), Simulate(v, cb)); d < MinDistance {
					out = append(out, fmt.Sprintf("%s and %s are %.0f apart for %s vision, want at least %.0f", a, b, d, v, MinDistance))
				}
			}
		}
	}
	return out
}

// Contrast is the WCAG contrast ratio of two colours, 1 to 21.
func Contrast(a, b [3]uint8) float64 {
	la, lb := luminance(a), luminance(b)
	if la < lb {
		la, lb = lb, la
	}
	return (la + 0.05) / (lb + 0.05)
}

func luminance(c [3]uint8) float64 {
	l := linear(c)
	return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2]
}

// linear undoes the sRGB transfer curve.
func linear(c [3]uint8) [3]float64 {
	var out [3]float64
	for i, v := range c {
		s := float64(v) / 255
		if s <= 0.04045 {
			out[i] = s / 12.92
		} else {
			out[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return out
}

// Vision is a kind of colour vision.
type Vision string

// The kinds of colour vision that Simulate knows, each at full strength.
const (
	FullColour Vision = "full colour"
	Protan     Vision = "protan"
	Deutan     Vision = "deutan"
	Tritan     Vision = "tritan"
)

// Simulate returns the linear red, green and blue that eyes of kind v see for
// an sRGB colour, by the matrices of Machado, Oliveira and Fernandes (2009) at
// severity 1.
func Simulate(v Vision, c [3]uint8) [3]float64 {
	l := linear(c)
	m := [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	switch v {
	case Protan:
		m = [3][3]float64{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}
	case Deutan:
		m = [3][3]float64{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}
	case Tritan:
		m = [3][3]float64{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}
	}
	var out [3]float64
	for i := range out {
		out[i] = min(1, max(0, m[i][0]*l[0]+m[i][1]*l[1]+m[i][2]*l[2]))
	}
	return out
}

// Distance is CIE 1976 ΔE between two linear colours.
func Distance(a, b [3]float64) float64 {
	la, lb := lab(a), lab(b)
	return math.Sqrt((la[0]-lb[0])*(la[0]-lb[0]) + (la[1]-lb[1])*(la[1]-lb[1]) + (la[2]-lb[2])*(la[2]-lb[2]))
}

func lab(l [3]float64) [3]float64 {
	x := (0.4124564*l[0] + 0.3575761*l[1] + 0.1804375*l[2]) / 0.95047
	y := 0.2126729*l[0] + 0.7151522*l[1] + 0.0721750*l[2]
	z := (0.0193339*l[0] + 0.1191920*l[1] + 0.9503041*l[2]) / 1.08883
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	return [3]float64{116*f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))}
}
