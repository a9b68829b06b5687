package scrape

import (
	"bytes"
	"mime"
)

// MaxPageBytes is the largest answer that is read, in bytes: just under
// 10 MiB. A page of 64 ranks with all histograms has about 1 MiB. Callers read one byte more at
// most (io.LimitReader) and need not check themselves.
const MaxPageBytes = 10<<20 - 1

// Answer is what an engine answered to one request.
type Answer struct {
	// Status is the HTTP status, 0: not known, taken as good.
	Status int
	// ContentType is the header of that name, "" for none: then the body alone
	// tells.
	ContentType string
	Body        []byte
}

// form is what a body must be.
type form string

const (
	formText form = "Prometheus text"
	formJSON form = "JSON"
)

// open checks what can be said of an answer before it is read, and gives the
// body without the white space around it.
func (a Answer) open(want form) ([]byte, *Refusal) {
	if len(a.Body) > MaxPageBytes {
		return nil, refuse(TooLarge, "the answer has %d bytes or more, over the limit of %d: is the address right?", len(a.Body), MaxPageBytes)
	}
	body := bytes.TrimLeft(a.Body, " \t\r\n\ufeff")
	if a.Status != 0 && (a.Status < 200 || a.Status > 299) {
		return nil, a.badStatus(body)
	}
	if len(body) == 0 {
		return nil, refuse(Empty, "the answer is empty")
	}
	media, _, err := mime.ParseMediaType(a.ContentType)
	if err != nil {
		media = ""
	}
	got := sniff(body)
	if media == "text/html" || media == "application/xhtml+xml" || got == "HTML" {
		return nil, refuse(ContentType, "an HTML page where %s was expected: is there a proxy or a login before the engine? It begins %s", want, quoted(body))
	}
	if want == formText && (media == "application/vnd.google.protobuf" || media == "application/json" || got == string(formJSON)) ||
		want == formJSON && (got != string(formJSON) || media == "application/vnd.google.protobuf") {
		return nil, refuse(ContentType, "%s was expected, but the answer is %s and begins %s", want, named(media, got), quoted(body))
	}
	return body, nil
}

func (a Answer) badStatus(body []byte) *Refusal {
	switch {
	case len(body) == 0:
		return refuse(BadStatus, "HTTP %d%s", a.Status, advice(a.Status))
	default:
		return refuse(BadStatus, "HTTP %d%s, saying %s", a.Status, advice(a.Status), quoted(body))
	}
}

// advice is the next step after a status that has one.
func advice(status int) string {
	switch {
	case status == 401 || status == 403:
		return " (the engine wants a key: set the variable that api_key_env names)"
	case status == 404 || status == 405:
		return " (no such path there: are the kind and the address right?)"
	case status >= 300 && status < 400:
		return " (a redirect: give the address it leads to)"
	}
	return ""
}

// sniff names a body's format by its first bytes.
func sniff(body []byte) string {
	switch body[0] {
	case '<':
		return "HTML"
	case '{':
		// A Prometheus line may begin so as well: {"name",label="…"} 1. None of
		// the names we look for needs it.
		return string(formJSON)
	case '[':
		return string(formJSON)
	}
	return "text"
}

func named(media, sniffed string) string {
	if media != "" {
		return media
	}
	return sniffed
}
