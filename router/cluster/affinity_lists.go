package cluster

// list is a doubly linked list of sessions through one of their links.
type list struct {
	first, last *session
	pick        func(*session) *link
}

type link struct{ before, after *session }

func (l *list) add(s *session) {
	k := l.pick(s)
	k.before, k.after = l.last, nil
	if l.last == nil {
		l.first = s
	} else {
		l.pick(l.last).after = s
	}
	l.last = s
}

func (l *list) remove(s *session) {
	k := l.pick(s)
	if k.before == nil {
		l.first = k.after
	} else {
		l.pick(k.before).after = k.after
	}
	if k.after == nil {
		l.last = k.before
	} else {
		l.pick(k.after).before = k.before
	}
	*k = link{}
}

// tenantHeap has the tenant with the most conversations first.
type tenantHeap []*tenant

func (h tenantHeap) Len() int           { return len(h) }
func (h tenantHeap) Less(i, j int) bool { return h[i].n > h[j].n }
func (h tenantHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap.Interface's.
func (h *tenantHeap) Push(x any) {
	t := x.(*tenant)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop is heap.Interface's.
func (h *tenantHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}
