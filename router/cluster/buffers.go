package cluster

import "math/bits"

// bufPool keeps the hashes of the trie's nodes: counted references, and free
// buffers by size class for reuse.
type bufPool struct {
	bufs []buffer
	idle []int32        // free numbers
	free [32][][]uint64 // by class: capacity 1<<class
	kept int            // hashes in free
	held int            // room for hashes in buffers in use
}

type buffer struct {
	data []uint64
	refs int32
}

// maxKept bounds the hashes that free buffers keep in memory: 8 MiB.
const maxKept = 1 << 20

// bufSize is the room that a buffer for n hashes takes.
func bufSize(n int) int { return 1 << bits.Len(uint(n-1)) }

func (p *bufPool) get(i int32) []uint64 { return p.bufs[i].data }

// put copies data into a buffer with one reference.
func (p *bufPool) put(data []uint64) int32 {
	class := bits.Len(uint(len(data) - 1))
	p.held += 1 << class
	var buf []uint64
	if k := len(p.free[class]); k > 0 {
		buf = p.free[class][k-1]
		p.free[class] = p.free[class][:k-1]
		p.kept -= 1 << class
	} else {
		buf = make([]uint64, 0, 1<<class)
	}
	buf = append(buf[:0], data...)
	if k := len(p.idle); k > 0 {
		i := p.idle[k-1]
		p.idle = p.idle[:k-1]
		p.bufs[i] = buffer{buf, 1}
		return i
	}
	p.bufs = append(p.bufs, buffer{buf, 1})
	return int32(len(p.bufs) - 1)
}

func (p *bufPool) retain(i int32) { p.bufs[i].refs++ }

func (p *bufPool) release(i int32) {
	b := &p.bufs[i]
	if b.refs--; b.refs > 0 {
		return
	}
	class := bits.Len(uint(cap(b.data) - 1))
	p.held -= 1 << class
	if p.kept+1<<class <= maxKept {
		p.free[class] = append(p.free[class], b.data[:0])
		p.kept += 1 << class
	}
	b.data = nil
	p.idle = append(p.idle, i)
}
