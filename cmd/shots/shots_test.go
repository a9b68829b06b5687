package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func render(t *testing.T, frame string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run([]string{"-title", "a <frame>"}, strings.NewReader(frame), &out); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(out.Bytes()))
	for {
		if _, err := d.Token(); err == io.EOF {
			return out.String()
		} else if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, out.String())
		}
	}
}

func TestEachCellAtItsColumn(t *testing.T) {
	got := render(t, "\x1b[1;38;2;255;0;0mab\x1b[m c<\n\x1b[7m会x\x1b[m\n")
	for name, want := range map[string]string{
		"size":        `width="64" height="60"`,
		"title":       `<title>a &lt;frame&gt;</title>`,
		"bold run":    `<text y="13" fill="#ff0000" font-weight="bold"><tspan x="0 8">ab</tspan></text>`,
		"plain run":   `<text y="13" fill="#cdd6e4"><tspan x="24 32">c&lt;</tspan></text>`,
		"reverse":     `<rect x="0" y="18" width="24" height="18" fill="#cdd6e4"/>`,
		"after wide":  `<text y="31" fill="#10161f"><tspan x="0 16">会x</tspan></text>`,
		"ground once": `fill="#10161f"/>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s: no %s in\n%s", name, want, got)
		}
	}
}

func TestLinesAndBlocksAreShapes(t *testing.T) {
	got := render(t, "━━╸─┿┼┅│╭╮╰╯▁▂▃▄▅▆▇█░▒▓▏┊")
	if strings.Contains(got, "<text") {
		t.Errorf("drawn as text:\n%s", got)
	}
	if n := strings.Count(got, "<path"); n != 1 {
		t.Errorf("%d paths for one run", n)
	}
}

func TestBadInputIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		frame string
		want  string
	}{
		"empty":     {nil, "\n\n", "the frame is empty"},
		"colour":    {[]string{"-ink", "red"}, "x", `colour "red": want # and six hex digits`},
		"two files": {[]string{"a", "b"}, "x", "one frame at a time: got 2 files"},
		"no file":   {[]string{"/nonexistent"}, "", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(c.args, strings.NewReader(c.frame), io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAStyleGoesOnInTheNextLine(t *testing.T) {
	got := render(t, "\x1b[38;2;255;0;0mab\ncd\n\x1b[mef\n")
	for _, want := range []string{`fill="#ff0000"><tspan x="0 8">cd`, `fill="#cdd6e4"><tspan x="0 8">ef`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}
