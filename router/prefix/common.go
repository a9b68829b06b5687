package prefix

import "bytes"

// Common is the length of what two prompts begin with in common. To compare is
// several times as fast as to hash, so that the next turn of a conversation is
// compared with its last one and only what is new gets hashed.
func Common(a, b []uint32) int {
	const stretch = 4096
	n, at := min(len(a), len(b)), 0
	for at < n {
		to := min(at+stretch, n)
		if !bytes.Equal(rawTokens(a[at:to]), rawTokens(b[at:to])) {
			break
		}
		at = to
	}
	for at < n && a[at] == b[at] {
		at++
	}
	return at
}
