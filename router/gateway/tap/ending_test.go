package tap

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	completed  = `data: {"type":"response.completed","response":{"usage":{"input_tokens":5,"output_tokens":1}}}` + "\n\n"
	deltaEvent = `data: {"type":"response.output_text.delta","delta":"a"}` + "\n\n"
)

// TestEndings: the end of a body is the end of a stream only where the stream says so.
func TestEndings(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct {
		text     string
		ending   Ending
		complete bool // else ErrNoEnding, unless failed
		failed   bool
	}{
		"chat":                         {textChunk + doneChunk, EndsDone, true, false},
		"chat without its mark":        {textChunk, EndsDone, false, false},
		"chat, nothing at all":         {"", EndsDone, false, false},
		"chat, half a mark":            {textChunk + "data: [DO", EndsDone, false, false},
		"chat, no empty line":          {textChunk + "data: [DONE]", EndsDone, true, false},
		"chat, \\r\\n":                 {strings.ReplaceAll(textChunk+doneChunk, "\n", "\r\n"), EndsDone, true, false},
		"chat, the mark as text":       {`data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}` + "\n\n", EndsDone, false, false},
		"chat, an error and no mark":   {textChunk + "data: {\"error\":{}}\n\n", EndsDone, false, true},
		"chat, an error and the mark":  {textChunk + "data: {\"error\":{}}\n\n" + doneChunk, EndsDone, true, true},
		"chat, an event named error":   {textChunk + "event: error\n: worker died\n\n", EndsDone, false, true},
		"no mark wanted":               {textChunk, EndsWithBody, true, false},
		"responses":                    {deltaEvent + completed, EndsResponse, true, false},
		"responses, incomplete":        {deltaEvent + strings.Replace(completed, "completed", "incomplete", 1), EndsResponse, true, false},
		"responses, failed":            {deltaEvent + strings.Replace(completed, "completed", "failed", 1), EndsResponse, true, true},
		"responses, cut":               {deltaEvent, EndsResponse, false, false},
		"responses, [DONE]":            {deltaEvent + doneChunk, EndsResponse, true, false},
		"responses do not end a chat":  {deltaEvent + completed, EndsDone, false, false},
		"responses, a text that says":  {`data: {"type":"response.output_text.delta","delta":"\"type\":\"response.completed\""}` + "\n\n", EndsResponse, false, false},
		"responses, 1 MiB, named":      {"event: response.completed\ndata: {\"response\":\"" + long + "\"}\n\n", EndsResponse, true, false},
		"responses, 1 MiB, type first": {`data: {"type":"response.completed","response":"` + long + "\"}\n\n", EndsResponse, true, false},
		"responses, 1 MiB, type last":  {`data: {"response":"` + long + `","sequence_number":9,"type":"response.failed"}` + "\n\n", EndsResponse, true, true},
		"responses, 1 MiB of delta":    {`data: {"type":"response.output_text.delta","delta":"` + long + "\"}\n\n", EndsResponse, false, false},
	} {
		for way, reader := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader} {
			for _, hide := range []bool{false, true} {
				got := run(t, reader(strings.NewReader(tt.text)), Options{Events: true, Ending: tt.ending, HideUsage: hide})
				e := got.End
				if e.Complete != tt.complete || e.Failed != tt.failed || (e.Err != nil) == (tt.complete || tt.failed) || e.Err != nil && !errors.Is(e.Err, ErrNoEnding) || got.Out != tt.text {
					t.Errorf("%s, %s: complete %v, failed %v, %v", name, way, e.Complete, e.Failed, e.Err)
				}
			}
		}
	}
}

// TestWhatComesAfterTheMarkTakesNothingAway: a connection that breaks when all of
// the stream was passed on did no harm.
func TestWhatComesAfterTheMarkTakesNothingAway(t *testing.T) {
	broken := errors.New("reset")
	for _, hide := range []bool{false, true} {
		got := run(t, io.MultiReader(strings.NewReader(textChunk+doneChunk), iotest.ErrReader(broken)), Options{Events: true, Ending: EndsDone, HideUsage: hide})
		if e := got.End; !e.Complete || !e.Marked || e.Err != nil {
			t.Errorf("%+v", e)
		}
		var end End
		b := New(io.NopCloser(strings.NewReader(textChunk+doneChunk)), Options{Events: true, Ending: EndsDone, HideUsage: hide, End: func(e End) { end = e }})
		_, err := io.CopyN(io.Discard, b, int64(len(textChunk+doneChunk)))
		if err = errors.Join(err, b.Close()); err != nil || end.Complete {
			t.Errorf("closed before anybody asked for more: %+v, %v", end, err)
		}
	}
}

func TestErrorsAsDocuments(t *testing.T) {
	for text, failed := range map[string]bool{
		`{"error":{"message":"no"}}`:                        true,
		` {"object":"error","message":"no"}`:                true,
		`{"choices":[],"error":null}`:                       false,
		`{"choices":[{"message":{"content":"\"error\""}}]}`: false,
		`{"choices":[{"error":{}}]}`:                        false,
		`["error"]`:                                         false,
		`{"error":`:                                         false,
	} {
		if got := run(t, strings.NewReader(text), Options{}); got.End.Failed != failed || !got.End.Complete {
			t.Errorf("%s: %+v", text, got.End)
		}
	}
}

// TestWhatIsCompressedIsNotRead: nothing is known of it but its end.
func TestWhatIsCompressedIsNotRead(t *testing.T) {
	got := run(t, strings.NewReader("\x1f\x8b data: {\"error\":{}}\n\n"), Options{Opaque: true, Events: true, HideUsage: true, Ending: EndsDone})
	if e := got.End; !e.Complete || e.Failed || e.Events != 0 || e.Err != nil || e.Usage.Known() {
		t.Errorf("%+v", e)
	}
}
