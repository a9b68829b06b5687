// Package plane reads Dynamo's event plane: what its workers and routers tell
// each other over ZMQ or NATS.
//
//	ZMQ message   topic · publisher (u64 BE) · sequence (u64 BE) · frame
//	frame         version (1 byte, 1) · length (u32 BE) · envelope
//	NATS message  envelope, on namespace.{ns}.component.{comp}[.endpoint.{ep}].{topic}
//	envelope      msgpack map: publisher_id, sequence, published_at (ms), topic, payload (bin)
//	payload       msgpack, fields by name; its kind goes by the topic
//
// ParseZMQ and ParseNATS give the Envelope, KVEvents reads a payload: it sorts KV
// events by worker and hands them on undecoded, for the router's own decoder.
//
// Promises: ids of 64 bits stay whole; fields that are not known are skipped;
// what cannot be used is refused with a Reason; no input panics; memory is
// bounded by the message's length. What is returned points into the message.
// The package opens no socket and has no clock, no goroutine and no lock.
package plane
