// Package zmtp speaks as much of ZMTP 3 as it takes to hear the KV events of an
// inference engine: the NULL mechanism over tcp:// and ipc://, as a SUB socket
// that follows a publisher ([Subscriber]), as one that publishers connect to
// ([Bound]) and as a DEALER that asks for what was missed ([Dealer]). [Conn] is one
// connection, and takes the publishing side too, which the fakes of engines use.
//
// What goes over the wire:
//
//	greeting   FF 8×00 7F | 03 minor | mechanism, 20 bytes | as-server | 31×00
//	frame      flags | size, 1 byte or with LONG 8 bytes big-endian | body
//	flags      1 MORE: the message goes on   2 LONG   4 COMMAND: body = len name …
//	handshake  both sides: greeting, then the command READY with Socket-Type
//	subscribe  a message of one frame: 01 topic (libzmq 4 takes it of peers of
//	           3.0 and of 3.1, while only 3.1 knows the command SUBSCRIBE)
//	heartbeat  PING ttl, 2 bytes, tenths of a second | context → PONG context
//
// Bounds: a frame, a message, the number of its frames ([Limits]), every wait
// (handshake, write, silence, a replay as a whole) and every queue. Memory grows
// with the bytes that came, never with a length that was only announced. What a
// peer does wrong ends its connection with an error that says what came and what
// to do; no input panics.
//
// What it does not do: other mechanisms than NULL, other socket types. NULL knows
// no passwords: whoever reaches a [Bound] can publish to it, so it belongs on a
// network of engines alone.
package zmtp
