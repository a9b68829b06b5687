package tap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// seen is all that a tap told, and what it passed on.
type seen struct {
	Out      string
	First    string
	Progress []int
	Ends     int
	End      End
	JSON     string
}

func run(t testing.TB, src io.Reader, opt Options) seen {
	t.Helper()
	var s seen
	opt.First = func(data []byte) {
		if s.First != "" {
			t.Error("First was called twice")
		}
		s.First = string(data)
	}
	opt.Progress = func(n int) { s.Progress = append(s.Progress, n) }
	opt.End = func(e End) { s.Ends++; s.End, s.JSON = e, string(e.Usage.JSON) }
	b := New(io.NopCloser(src), opt)
	out, err := io.ReadAll(b)
	if err != nil && s.End.Err == nil && !s.End.Marked {
		t.Errorf("the error %v was not told", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	s.Out, s.End.Usage.JSON = string(out), nil
	return s
}

const (
	roleChunk  = `data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}` + "\n\n"
	textChunk  = `data: {"id":"1","choices":[{"index":0,"delta":{"content":"a \"usage\": {} b"}}]}` + "\n\n"
	usageChunk = `data: {"id":"1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":64}}}` + "\n\n"
	doneChunk  = "data: [DONE]\n\n"
)

func TestEvents(t *testing.T) {
	full := roleChunk + textChunk + ": ping\n\n" + textChunk + usageChunk + doneChunk
	want := seen{
		Out: full, First: strings.TrimSpace(roleChunk[6:]), Progress: []int{2, 4}, Ends: 1,
		End:  End{Complete: true, Events: 4, Usage: Usage{Prompt: 100, Cached: 64, Output: 2}},
		JSON: strings.TrimSpace(usageChunk[6:]),
	}
	hidden := want
	hidden.Out = roleChunk + textChunk + ": ping\n\n" + textChunk + doneChunk
	crlf := strings.NewReplacer("\n", "\r\n")
	crlfWant := hidden
	crlfWant.Out = crlf.Replace(hidden.Out)
	onlyR := strings.NewReplacer("\n", "\r")
	onlyRWant := want
	onlyRWant.Out = onlyR.Replace(full)
	tests := map[string]struct {
		text string
		hide bool
		want seen
	}{
		"watched":       {full, false, want},
		"usage hidden":  {full, true, hidden},
		"hidden, crlf":  {crlf.Replace(full), true, crlfWant},
		"watched, \\r":  {onlyRWant.Out, false, onlyRWant},
		"\\r: unhidden": {onlyRWant.Out, true, onlyRWant},
	}
	for name, tt := range tests {
		for way, reader := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "half": iotest.HalfReader, "with EOF": iotest.DataErrReader,
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				got := run(t, reader(strings.NewReader(tt.text)), Options{Events: true, HideUsage: tt.hide, Every: 2})
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestWhatIsNotHidden(t *testing.T) {
	for name, text := range map[string]string{
		"with an event name":  "event: x\n" + usageChunk,
		"with choices":        strings.Replace(usageChunk, `"choices":[]`, `"choices":[{}]`, 1),
		"no choices at all":   strings.Replace(usageChunk, `"choices":[],`, ``, 1),
		"usage null":          `data: {"choices":[],"usage":null}` + "\n\n",
		"two lines of data":   `data: {"choices":[],` + "\n" + `data: "usage":{}}` + "\n\n",
		"not JSON":            `data: {"choices":[],"usage":{}` + "\n\n",
		"longer than is held": `data: {"choices":[],"usage":{},"x":"` + strings.Repeat("x", keepWhole) + "\"}\n\n",
		"without its end":     strings.TrimSuffix(usageChunk, "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, iotest.HalfReader(strings.NewReader(text)), Options{Events: true, HideUsage: true})
			if got.Out != text {
				t.Errorf("passed on %.200q, want all of %.200q", got.Out, text)
			}
		})
	}
}

func TestErrorInAStream(t *testing.T) {
	got := run(t, strings.NewReader("data: {\"error\": {\"message\": \"no\"}}\n\ndata: [DONE]\n\n"), Options{Events: true})
	if !got.End.Failed || got.First != "" || got.End.Events != 0 {
		t.Errorf("an error counted as a token: %+v", got)
	}
}

func TestDocument(t *testing.T) {
	usage := `"usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}}`
	tests := map[string]struct {
		text string
		want Usage
	}{
		"small":          {`{"choices": [{"message": {"content": "x"}}], ` + usage + `}`, Usage{Prompt: 9, Cached: 8, Output: 1}},
		"responses":      {`{"usage": {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 3}}`, Usage{Prompt: 5, Cached: 0, Output: 3}},
		"no details":     {`{"usage": {"prompt_tokens": 5, "prompt_tokens_details": null}}`, Usage{Prompt: 5, Cached: -1, Output: -1}},
		"contradiction":  {`{"usage": {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 6}}}`, Usage{Prompt: 5, Cached: -1, Output: -1}},
		"not numbers":    {`{"usage": {"prompt_tokens": "5", "completion_tokens": 1.5, "prompt_tokens_details": {"cached_tokens": -1}}}`, NoUsage()},
		"absurd numbers": {`{"usage": {"prompt_tokens": 1e300}}`, NoUsage()},
		"only a string":  {`{"content": "\"usage\": {\"prompt_tokens\": 3}"}`, NoUsage()},
		"not JSON":       {`"usage"`, NoUsage()},
		"long":           {`{"choices": "` + strings.Repeat("x", 3*keepWhole) + `", ` + usage + `}`, Usage{Prompt: 9, Cached: 8, Output: 1}},
		"long, escaped":  {`{"choices": "` + strings.Repeat("x", 3*keepWhole) + `\"usage\": {}"}`, NoUsage()},
		"long, early":    {`{` + usage + `, "choices": "` + strings.Repeat("x", 3*keepWhole) + `"}`, NoUsage()},
		"long, nested":   {strings.Repeat("[", keepWhole/2) + usage, NoUsage()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.text), iotest.HalfReader(strings.NewReader(tt.text))} {
				got := run(t, r, Options{})
				if diff := cmp.Diff(End{Complete: true, Usage: tt.want}, got.End); diff != "" {
					t.Error(diff)
				}
				if got.Out != tt.text || got.Ends != 1 {
					t.Error("the document was changed, or ended more than once")
				}
			}
		})
	}
}

func TestBrokenOff(t *testing.T) {
	broken := errors.New("reset")
	for _, hide := range []bool{false, true} {
		got := run(t, io.MultiReader(strings.NewReader(roleChunk+`data: {"choi`), iotest.ErrReader(broken)), Options{Events: true, HideUsage: hide})
		if got.End.Complete || !errors.Is(got.End.Err, broken) || got.Ends != 1 || got.Out != roleChunk+`data: {"choi` {
			t.Errorf("hide %v: %+v", hide, got)
		}
	}
}

func TestClosedBeforeItsEnd(t *testing.T) {
	ends := 0
	var end End
	b := New(io.NopCloser(strings.NewReader(roleChunk+textChunk)), Options{Events: true, End: func(e End) { ends++; end = e }})
	if _, err := b.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	_ = b.Close()
	if ends != 1 || end.Complete || end.Err != nil {
		t.Errorf("%d ends, the last %+v", ends, end)
	}
}

// TestNothingIsHeldBack sends one event at a time and wants it whole before the
// next one is read.
func TestNothingIsHeldBack(t *testing.T) {
	pr, pw := io.Pipe()
	b := New(pr, Options{Events: true, HideUsage: true})
	buf := make([]byte, 4096)
	for i := range 100 {
		event := fmt.Sprintf("data: {\"n\":%d}\n\n", i)
		go func() { _, _ = pw.Write([]byte(event)) }()
		n, err := b.Read(buf)
		if err != nil || string(buf[:n]) != event {
			t.Fatalf("got %q, %v; want %q", buf[:n], err, event)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	for _, opt := range []Options{{}, {Events: true}, {Events: true, HideUsage: true}} {
		b := New(io.NopCloser(io.LimitReader(zeros{}, 64<<20)), opt)
		if _, err := io.Copy(io.Discard, b); err != nil {
			t.Fatal(err)
		}
		held := cap(b.doc.buf) + cap(b.lines.held.buf) + cap(b.hide.held) + cap(b.hide.out)
		if held > 6*keepWhole {
			t.Errorf("%+v: %d bytes are held of an endless line", opt, held)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestWatchingAllocatesNothing(t *testing.T) {
	b := New(io.NopCloser(zeros{}), Options{Events: true})
	chunk := []byte(textChunk + textChunk)
	if n := testing.AllocsPerRun(100, func() { b.watch(chunk) }); n > 0 {
		t.Errorf("%v allocations for two events", n)
	}
}

// FuzzStream wants the same however a stream is cut into pieces, nothing changed
// where nothing is hidden, and of hiding only whole events gone.
func FuzzStream(f *testing.F) {
	f.Add([]byte(roleChunk+textChunk+usageChunk+doneChunk), uint8(7))
	f.Add([]byte("data: {\"choices\":[],\"usage\":{\"a\":1}}\r\n\r\ndata:x\r\r\n"), uint8(1))
	f.Add([]byte("data: {\"error\":1}\n\n\n\nevent: a\ndata\n"), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		for _, opt := range []Options{{}, {Events: true}, {Events: true, HideUsage: true}} {
			whole := run(t, bytes.NewReader(text), opt)
			cut := run(t, &pieces{text, int(size)%97 + 1}, opt)
			if diff := cmp.Diff(whole, cut); diff != "" {
				t.Fatalf("%+v: in pieces it differs:\n%s", opt, diff)
			}
			if !opt.HideUsage && whole.Out != string(text) {
				t.Fatal("the stream was changed")
			}
			if opt.HideUsage && len(whole.Out) < len(text) && !bytes.Contains(text, usageKey) {
				t.Fatal("something without usage was hidden")
			}
		}
	})
}

type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// TestWhatIsAToken wants only tokens to count as the first one.
func TestWhatIsAToken(t *testing.T) {
	created := `data: {"type": "response.created", "response": {"status": "in_progress", "error": null, "usage": null}}` + "\n\n"
	delta := `data: {"type": "response.output_text.delta", "delta": "say \"error\""}` + "\n\n"
	completed := `data: {"type": "response.completed", "response": {"error": null, "usage": {"input_tokens": 9, "output_tokens": 2}}}` + "\n\n"
	for name, tt := range map[string]struct {
		text   string
		first  string
		events int
		failed bool
		output int
	}{
		"responses":               {"event: response.created\n" + created + delta + delta + completed, delta, 2, false, 2},
		"responses: failed":       {created + `data: {"type": "response.failed", "response": {"error": {"code": "x"}}}` + "\n\n", "", 0, true, -1},
		"responses: error":        {created + `data: {"type": "error", "message": "x"}` + "\n\n", "", 0, true, -1},
		"error":                   {`data: {"error":{"message":"x"}}` + "\n\n", "", 0, true, -1},
		"error, spaced":           {`data: { "error" : {"message":"x"} }` + "\n\n", "", 0, true, -1},
		"error, older form":       {`data: {"object":"error","message":"x"}` + "\n\n", "", 0, true, -1},
		"no error":                {`data: {"error":null,"choices":[{}]}` + "\n\n", `data: {"error":null,"choices":[{}]}`, 1, false, -1},
		"error after a token":     {textChunk + `data: {"error":{}}` + "\n\n", textChunk, 1, true, -1},
		"half a line is no token": {`data: {"choi`, "", 0, false, -1},
	} {
		t.Run(name, func(t *testing.T) {
			src := io.Reader(strings.NewReader(tt.text))
			if strings.HasPrefix(name, "half") {
				src = io.MultiReader(src, iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			got := run(t, src, Options{Events: true})
			first := strings.TrimSpace(strings.TrimPrefix(tt.first, "data: "))
			if got.First != first || got.End.Events != tt.events || got.End.Failed != tt.failed || got.End.Usage.Output != tt.output {
				t.Errorf("%+v", got)
			}
		})
	}
}
