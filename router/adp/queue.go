package adp

// Item is one request in the waiting queue. The payload is the caller's.
type Item[T any] struct {
	ID       int64
	Children int
	Params   *Params
	Payload  T
}

// Queue is the first-come, first-served waiting queue before the router. Admit
// takes from it what get_from_waiting_queue would. The zero value is ready.
type Queue[T any] struct {
	items  []Item[T]
	head   int
	out    []Item[T]
	held   []Item[T]
	counts []int
}

// Len is the number of waiting items.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Items are the waiting items, head first, valid until the next call.
func (q *Queue[T]) Items() []Item[T] { return q.items[q.head:] }

// Push appends an item.
func (q *Queue[T]) Push(it Item[T]) {
	if q.head > 64 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, it)
}

// PushFront puts items back before all others, in the order given.
func (q *Queue[T]) PushFront(items []Item[T]) {
	if len(items) == 0 {
		return
	}
	if q.head < len(items) {
		room := len(items) + q.Len()/2
		grown := make([]Item[T], room+q.Len())
		copy(grown[room:], q.items[q.head:])
		q.items, q.head = grown, room
	}
	q.head -= len(items)
	copy(q.items[q.head:], items)
}

// Admit takes items from the head until limit requests, children included, are
// taken or the next one does not fit: nothing is skipped for room. limit is
// tp·hardCap minus all active requests, counts the active requests by rank. An
// item that insists on a rank (relax false or unset) is held back while that
// rank has hardCap requests, and stays at the front. The answer is valid until
// the next call. A rank that does not exist counts as none.
func (q *Queue[T]) Admit(limit int, counts []int, hardCap int) []Item[T] {
	out, _ := q.admit(limit, counts, hardCap, false)
	return out
}

// AdmitParity is Admit with upstream's failure: a strict rank outside counts
// is an IndexError and the items taken so far are lost; a negative one wraps.
func (q *Queue[T]) AdmitParity(limit int, counts []int, hardCap int) ([]Item[T], error) {
	return q.admit(limit, counts, hardCap, true)
}

func (q *Queue[T]) admit(limit int, counts []int, hardCap int, parity bool) ([]Item[T], error) {
	q.out, q.held = q.out[:0], q.held[:0]
	if limit <= 0 {
		return q.out, nil
	}
	q.counts = append(q.counts[:0], counts...)
	for taken := 0; taken < limit && q.Len() > 0; {
		it := q.items[q.head]
		need := 1 + max(it.Children, 0)
		if taken+need > limit {
			break
		}
		q.items[q.head] = Item[T]{}
		q.head++
		if p := it.Params; p != nil && p.Rank != nil && (p.Relax == nil || !*p.Relax) {
			k := *p.Rank
			if parity && k < 0 {
				k += len(counts)
			}
			if exists := k >= 0 && k < len(counts); exists && q.counts[k] >= hardCap {
				q.held = append(q.held, it)
				continue
			} else if exists {
				q.counts[k]++
			} else if parity {
				return nil, errListIndex()
			}
		}
		q.out = append(q.out, it)
		taken += need
	}
	q.PushFront(q.held)
	return q.out, nil
}
