// Package feed carries a router's state to consoles over a websocket and their
// commands back, records what it carries and plays it again.
//
// # Promises
//
// The router never waits: one subscription is taken four times a second, sooner
// after a command but never more than ten times, each change is encoded once,
// and every send to a client is a send that cannot wait. What a client does not
// read is dropped and replaced by a snapshot; what waits for one client never
// exceeds 256 messages or 4 MiB. A client never shows old numbers as live: its
// state is in step, or Link.Stale says that it is not. A command acts once per
// id, whatever happens to the link: the router sees to that, so a client may
// send a command again when its reply was lost.
//
// Server and Client own their goroutines; Serve and Close return when all have
// ended. The package uses wall time for deadlines and ages only.
//
// It does not escape text: ids, tenants and names are data here, and are made
// harmless where they are drawn.
//
// # The wire
//
// Websocket, subprotocol adpdeck.v1, path /feed, text messages of JSON, no
// compression, at most 1 MiB and 65,536 values each. Times are RFC 3339, numbers
// that are not known are null. An object's fields are the model package's.
//
//	client                                    server
//	  │ GET /feed, Authorization: Bearer …       │  refused: 401 token, 403 origin or
//	  ├─────────────────────────────────────────▶│  host, 400 subprotocol, 503 too many
//	  │ hello      epoch, role, server, period_ms│
//	  │◀─────────────────────────────────────────┤
//	  │ snapshot   epoch, seq 41, part 1, more   │
//	  │ snapshot   epoch, seq 41, part 2         │  whole: in step at 41
//	  │◀─────────────────────────────────────────┤
//	  │ change     epoch, seq 42                 │
//	  │ event      epoch, seq 42                 │  what else change 42 brought
//	  │ decisions  epoch, seq 42                 │
//	  │◀─────────────────────────────────────────┤
//	  │ change     epoch, seq 43                 │  4 a second, at most 10, at least one
//	  │◀─────────────────────────────────────────┤  each period_ms, empty if need be
//	  │ command    command{id, verb, …}          │
//	  ├─────────────────────────────────────────▶│
//	  │ reply      reply{id, accepted, …}        │  to this client alone
//	  │◀─────────────────────────────────────────┤
//	  │ change     epoch, seq 45                 │  a gap: 44 is missing
//	  │◀─────────────────────────────────────────┤
//	  │ resync                                   │  the state is old from here on,
//	  ├─────────────────────────────────────────▶│  and nothing is merged
//	  │ snapshot   epoch, seq 47, part 1         │  in step again at 47
//	  │◀─────────────────────────────────────────┤
//
// The frames, kind first:
//
//	{"kind":"hello","epoch":"9f…","role":"operator","server":"0.1.0","period_ms":1000}
//	{"kind":"snapshot","epoch":"9f…","seq":41,"part":1,"state":{…},"more":true}
//	{"kind":"change","epoch":"9f…","seq":42,"change":{"at":…,"version":7,"ranks":[…],"convs":[…],"gone":[…]}}
//	{"kind":"event","epoch":"9f…","seq":42,"events":[…]}
//	{"kind":"decisions","epoch":"9f…","seq":42,"left_out":12,"decisions":[…],"settled":[…]}
//	{"kind":"reply","reply":{"id":"c-1","accepted":true,"version":8,"what":"β 1.00 → 4.00"}}
//	{"kind":"command","command":{"id":"c-1","verb":"set","expect":7,"set":[…]}}
//	{"kind":"resync"}
//
// An epoch is one run of a router; numbers begin anew with it. A snapshot holds
// the whole state and may come unasked: after a queue overflowed, or when the
// router lost track. Part 1 has every field, later parts bring further elements
// of the lists workers, ranks, revisions, events and convs; the last has no
// more. A long change is split into several of consecutive numbers. left_out
// counts decisions not sent since the last frame of decisions: the newest are
// kept. An outcome is sent only of a decision that was sent, and twice if it
// changes: at the first token and at the end. A frame of an unknown kind is
// ignored and counted; unknown fields are ignored.
//
// The server pings every five seconds, the client every second: pongs come in
// turn with frames, and so tell it how old those are. Either side cuts a link on
// which nothing came for ten seconds. The server closes with
//
//	1001  it is shutting down
//	1007  a message was not JSON
//	1009  a message is longer than 1 MiB
//	4008  the client is too slow: its queue overflowed three times in a row, or
//	      it does not read its replies
//
// and cuts a client without a word when one message could not be written within
// ten seconds: a close frame could not be written either.
//
// # Recordings
//
// A recording is a file of JSON lines: a header, then every frame as it was
// sent, with its time in microseconds since start; a whole snapshot stands at
// the beginning and again every 30 s, so that a player can go on after damage.
//
//	{"recording":"adpdeck.v1","format":1,"version":"0.1.0","start":"2026-03-01T12:00:00Z"}
//	{"us":112,"frame":{"kind":"hello",…}}
//	{"us":180,"frame":{"kind":"snapshot",…}}
//	{"us":100204,"frame":{"kind":"change",…}}
//	{"us":7300891,"dropped":17}           17 frames came faster than the disk took them
package feed
