package delta

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// screen is a terminal as far as frames need one.
type screen struct {
	w, h, x, y int
	style      string
	cells      [][]string
}

func newScreen(w, h int) *screen {
	s := &screen{w: w, h: h}
	for range h {
		s.cells = append(s.cells, make([]string, w))
	}
	return s
}

func (s *screen) write(t *testing.T, b []byte) {
	t.Helper()
	for len(b) > 0 {
		switch {
		case b[0] == '\r':
			s.x, b = 0, b[1:]
		case b[0] == '\n':
			s.y, b = s.y+1, b[1:]
		case b[0] == 0x1b:
			end := bytes.IndexAny(b, "mHGK")
			s.control(t, string(b[2:end]), b[end])
			b = b[end+1:]
		default:
			r, size := utf8.DecodeRune(b)
			if s.y >= s.h || s.x >= s.w {
				t.Fatalf("painted outside, at %d %d", s.x, s.y)
			}
			s.cells[s.y][s.x] = s.style + string(r)
			w := ansi.StringWidth(string(r))
			for i := 1; i < w; i++ {
				s.cells[s.y][s.x+i] = "wide"
			}
			s.x += w
			b = b[size:]
		}
	}
}

func (s *screen) control(t *testing.T, params string, final byte) {
	n := 0
	switch final {
	case 'm':
		s.style = styled("\x1b[" + params + "m")
	case 'H':
		s.x, s.y = 0, 0
		if params != "" {
			fmt.Sscanf(params, "%d;", &n)
			s.y = n - 1
		}
	case 'G':
		fmt.Sscanf(params, "%d", &n)
		s.x = n - 1
	default:
		t.Fatalf("unknown sequence %q", params)
	}
}

// render is what the renderer writes to go from one frame to the next.
func render(old, lines []string) []byte {
	var b bytes.Buffer
	b.WriteString(home)
	for i, l := range lines {
		last := i == len(lines)-1
		switch {
		case i < len(old) && old[i] == l:
			if !last {
				b.WriteByte('\n')
			}
			continue
		default:
			b.WriteString(l)
		}
		if !last {
			b.WriteString("\r\n")
		}
	}
	fmt.Fprintf(&b, "\x1b[%d;H", len(lines))
	return b.Bytes()
}

const red, bold = "\x1b[;38;2;255;0;0m", "\x1b[;1m"

// frame makes lines w cells wide that differ a little from step to step.
func frame(r *rand.Rand, w, h int, was []string) []string {
	out := make([]string, h)
	for i := range out {
		if was != nil && r.IntN(3) > 0 {
			out[i] = was[i]
			continue
		}
		var b strings.Builder
		styles := []string{reset, red, bold}
		for at := 0; at < w; {
			if r.IntN(6) == 0 {
				b.WriteString(styles[r.IntN(3)])
			}
			switch sign := r.IntN(12); {
			case sign == 0 && at+2 <= w:
				b.WriteString("界")
				at += 2
			case sign == 1:
				b.WriteString("━")
				at++
			default:
				b.WriteByte(byte('a' + r.IntN(2)))
				at++
			}
		}
		b.WriteString(reset)
		out[i] = b.String()
	}
	return out
}

func TestTheScreenIsTheSameWithFewerBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var w Writer
	width, height := 30, 8
	plain, small := newScreen(width, height), newScreen(width, height)
	var was []string
	for step := range 2000 {
		if step%97 == 96 { // another size: the renderer forgets and paints all
			width, height, was = 10+r.IntN(40), 2+r.IntN(10), nil
			plain, small = newScreen(width, height), newScreen(width, height)
		}
		lines := frame(r, width, height, was)
		b := render(was, lines)
		if was != nil && fmt.Sprint(was) == fmt.Sprint(lines) {
			continue
		}
		next := w.Next(bytes.Clone(b))
		plain.write(t, b)
		small.write(t, next)
		if len(next) > len(b) {
			t.Fatalf("step %d: %d bytes became %d", step, len(b), len(next))
		}
		if fmt.Sprint(plain.cells) != fmt.Sprint(small.cells) || plain.y != small.y {
			t.Fatalf("step %d:\n%q\nbecame\n%q", step, b, next)
		}
		was = lines
	}
}

func TestOneCellIsFewBytes(t *testing.T) {
	var w Writer
	line := red + strings.Repeat("x", 100) + reset
	w.Next(render(nil, []string{line, line}))
	got := w.Next(render([]string{line, line}, []string{line, red + strings.Repeat("x", 60) + "y" + strings.Repeat("x", 39) + reset}))
	if want := "\x1b[H\n\x1b[61G" + red + "y" + reset + "\x1b[2;H"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsNoFrameGoesThroughAndIsForgotten(t *testing.T) {
	for name, b := range map[string]string{
		"clear":      "\x1b[2J",
		"clipboard":  "\x1b]52;c;eA==\x07",
		"no end":     "\x1b[Habc\r\n",
		"home alone": "\x1b[H",
	} {
		t.Run(name, func(t *testing.T) {
			var w Writer
			one, two := []string{"abc", "abc"}, []string{"abc", "abd"}
			w.Next(render(nil, one))
			if got := w.Next([]byte(b)); string(got) != b {
				t.Errorf("%q became %q", b, got)
			}
			if b := render(one, two); string(w.Next(b)) != string(b) {
				t.Error("a line was sent in parts though the screen was not known")
			}
		})
	}
}

func TestALineItDoesNotUnderstandIsSentWhole(t *testing.T) {
	for _, odd := range []string{"ab\x1b[K", "a\tb", "e\u0301x", "\x1b[31mab", "a\xff"} {
		var w Writer
		w.Next(render(nil, []string{"zz", odd}))
		for _, next := range []string{odd + "c", "abc"} {
			b := render([]string{"zz", odd}, []string{"zz", next})
			if got := w.Next(bytes.Clone(b)); string(got) != string(b) {
				t.Errorf("%q became %q", b, got)
			}
			w.Next(render([]string{"zz", next}, []string{"zz", odd}))
		}
	}
}
