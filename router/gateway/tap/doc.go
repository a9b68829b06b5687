// Package tap watches a response's body pass on its way from an engine to a
// client: when its first token came, how far it is, and what the engine says
// of its use at the end.
//
// It promises not to change what it watches, with one exception that the caller
// asks for: the chunk that carries nothing but the use, which an engine sends
// because adpdeck asked for it and the client did not. It holds a bounded part
// of the body, passes everything on as it comes and owns no goroutine. What it
// cannot read it does not report: unknown is never 0.
package tap
