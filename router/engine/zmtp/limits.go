package zmtp

// Limits bound what a peer may send; zero fields take the defaults named.
type Limits struct {
	// FrameBytes (16 MiB) is the largest frame.
	FrameBytes int
	// Frames (64) is how many frames a message may have.
	Frames int
	// MessageBytes (twice FrameBytes) is the largest message, over all its
	// frames with their headers.
	MessageBytes int
}

func (l *Limits) defaults() {
	if l.FrameBytes <= 0 {
		l.FrameBytes = 16 << 20
	}
	if l.Frames <= 0 {
		l.Frames = 64
	}
	if l.MessageBytes <= 0 {
		l.MessageBytes = 2 * l.FrameBytes
	}
}
