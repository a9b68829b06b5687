package zmtp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// drink feeds stream to a decoder in pieces of at most step bytes and returns
// what came out, one word per item.
func drink(lim Limits, stream []byte, step int) (out []string, err error) {
	lim.defaults()
	d := decoder{lim: lim}
	for {
		it, ok, err := d.step()
		switch {
		case err != nil:
			return out, err
		case ok && it.command:
			out = append(out, fmt.Sprintf("C%x", it.body))
			continue
		case ok:
			out = append(out, fmt.Sprintf("M%x", it.frames))
			continue
		case len(stream) == 0:
			return out, nil
		}
		n := copy(d.space(), stream[:min(step, len(stream))])
		d.wrote(n)
		stream = stream[n:]
	}
}

func long(flags byte, size uint64, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, size), body...)
}

func TestDecoder(t *testing.T) {
	big := bytes.Repeat([]byte{7}, 200_000)
	tests := map[string]struct {
		stream []byte
		lim    Limits
		want   []string
		is     error
		says   string
	}{
		"one frame":              {stream: []byte{0, 2, 1, 2}, want: []string{"M[0102]"}},
		"empty frame":            {stream: []byte{0, 0}, want: []string{"M[]"}},
		"three frames":           {stream: []byte{1, 1, 1, 1, 0, 0, 1, 3}, want: []string{"M[01  03]"}},
		"long form of a short":   {stream: long(0, 1, 9), want: []string{"M[09]"}},
		"command":                {stream: []byte{4, 2, 1, 'X'}, want: []string{"C0158"}},
		"long command":           {stream: long(flagCommand, 2, 1, 'X'), want: []string{"C0158"}},
		"command inside message": {stream: []byte{1, 1, 1, 4, 2, 1, 'X', 0, 1, 2}, want: []string{"C0158", "M[01 02]"}},
		"beyond the buffer":      {stream: AppendMessage(nil, []byte{1}, big, []byte{2}), want: []string{fmt.Sprintf("M%x", [][]byte{{1}, big, {2}})}},
		"cut off":                {stream: []byte{0, 3, 1}},
		"unknown flag":           {stream: []byte{8, 0}, is: ErrProtocol, says: "flags 0x08"},
		"command with more":      {stream: []byte{5, 0}, is: ErrProtocol, says: "several frames"},
		"size with the top bit":  {stream: long(0, 1<<63), is: ErrTooLarge, says: "frame of 9223372036854775808 bytes"},
		"size all ones":          {stream: long(1, 1<<64-1), is: ErrTooLarge},
		"largest frame":          {stream: []byte{0, 2, 1, 2}, lim: Limits{FrameBytes: 2}, want: []string{"M[0102]"}},
		"frame too large":        {stream: []byte{0, 3}, lim: Limits{FrameBytes: 2}, is: ErrTooLarge, says: "beyond the limit of 2"},
		"command too large":      {stream: []byte{4, 3}, lim: Limits{FrameBytes: 2}, is: ErrTooLarge},
		"message too large": {
			stream: []byte{1, 2, 0, 0, 1, 2}, lim: Limits{FrameBytes: 2, MessageBytes: 7},
			is: ErrTooLarge, says: "more than 7 bytes",
		},
		"most frames":     {stream: []byte{1, 0, 0, 0, 0, 0}, lim: Limits{Frames: 2}, want: []string{"M[ ]", "M[]"}},
		"too many frames": {stream: []byte{1, 0, 1, 0, 0, 0}, lim: Limits{Frames: 2}, is: ErrTooLarge, says: "more than 2 frames"},
		"commands for ever inside a message": {
			stream: append([]byte{1, 0}, bytes.Repeat([]byte{4, 2, 1, 'X'}, 20)...), lim: Limits{MessageBytes: 10},
			want: []string{"C0158", "C0158"}, is: ErrTooLarge,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, step := range []int{1, 3, 4096, 1 << 20} {
				out, err := drink(tt.lim, tt.stream, step)
				if !slices.Equal(out, tt.want) {
					t.Errorf("in steps of %d: %.200q, want %.200q", step, out, tt.want)
				}
				if !errors.Is(err, tt.is) || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("in steps of %d: error %v, want %v saying %q", step, err, tt.is, tt.says)
				}
			}
		})
	}
}

// Lengths that are only announced cost nothing.
func TestAnnouncedLengthIsNotAllocated(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := drink(Limits{}, long(flagMore, 16<<20, 1, 2, 3), 4096); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 100*2*bufferBytes {
		t.Errorf("100 announcements of 16 MiB took %d bytes", took)
	}
}

// A large message does not keep its memory.
func TestDecoderLetsALargeBufferGo(t *testing.T) {
	d := decoder{lim: Limits{FrameBytes: 4 << 20, Frames: 1, MessageBytes: 8 << 20}}
	stream := AppendMessage(nil, make([]byte, 2<<20))
	for len(stream) > 0 {
		n := copy(d.space(), stream)
		d.wrote(n)
		stream = stream[n:]
	}
	if it, ok, err := d.step(); !ok || err != nil || len(it.frames[0]) != 2<<20 {
		t.Fatal(ok, err)
	}
	if d.space(); len(d.buf) != bufferBytes {
		t.Errorf("the buffer still has %d bytes", len(d.buf))
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{1, 1, 1, 4, 2, 1, 'X', 0, 1, 2}, byte(1))
	f.Add(long(0, 1<<63, 1, 2), byte(9))
	f.Add(AppendMessage(nil, []byte("kv"), make([]byte, 8), bytes.Repeat([]byte{1}, 300)), byte(200))
	lim := Limits{FrameBytes: 4096, Frames: 8, MessageBytes: 6000}
	f.Fuzz(func(t *testing.T, stream []byte, step byte) {
		whole, errWhole := drink(lim, stream, 1<<20)
		pieces, errPieces := drink(lim, stream, int(step)+1)
		if !slices.Equal(whole, pieces) {
			t.Fatalf("at once %q, in pieces %q", whole, pieces)
		}
		if fmt.Sprint(errWhole) != fmt.Sprint(errPieces) {
			t.Fatalf("at once %v, in pieces %v", errWhole, errPieces)
		}
	})
}
