package router

import (
	"container/heap"
	clist "container/list"
	"time"

	"adpdeck/router/model"
)

// tenants keeps whose bindings there are, so that where the table is full the
// cluster tier makes room at the tenant that has too many: none can push out
// another's as long as that one stays within its equal share. (The engine
// tier's own records push out the oldest of all, as upstream's do.)
type tenants struct {
	byName map[string]*tenant
	byKey  map[model.ConvKey]*clist.Element // of its tenant's list; the value is a *use
	bySize tenantHeap
	all    clist.List // of *use, every tenant's, the longest unused first
}

// tenant is one tenant's bindings, the longest unused first.
type tenant struct {
	name  string
	uses  clist.List
	index int
}

// use is a binding and when it was last made or renewed.
type use struct {
	key model.ConvKey
	at  time.Time
	all *clist.Element // its place in tenants.all
}

func newTenants() *tenants {
	return &tenants{byName: map[string]*tenant{}, byKey: map[model.ConvKey]*clist.Element{}}
}

// bound notes that a binding was made or renewed.
func (t *tenants) bound(key model.ConvKey, now time.Time) {
	owner := t.byName[key.Tenant]
	if e := t.byKey[key]; e != nil {
		u := e.Value.(*use)
		u.at = now
		owner.uses.MoveToBack(e)
		t.all.MoveToBack(u.all)
		return
	}
	if owner == nil {
		owner = &tenant{name: key.Tenant}
		t.byName[key.Tenant] = owner
		heap.Push(&t.bySize, owner)
	}
	u := &use{key: key, at: now}
	u.all = t.all.PushBack(u)
	t.byKey[key] = owner.uses.PushBack(u)
	heap.Fix(&t.bySize, owner.index)
}

// gone notes that a binding was forgotten.
func (t *tenants) gone(key model.ConvKey) {
	e := t.byKey[key]
	if e == nil {
		return
	}
	delete(t.byKey, key)
	t.all.Remove(e.Value.(*use).all)
	owner := t.byName[key.Tenant]
	if owner.uses.Remove(e); owner.uses.Len() > 0 {
		heap.Fix(&t.bySize, owner.index)
		return
	}
	heap.Remove(&t.bySize, owner.index)
	delete(t.byName, key.Tenant)
}

// renewed notes that a binding is in use, if there is one.
func (t *tenants) renewed(key model.ConvKey, now time.Time) {
	if t.byKey[key] != nil {
		t.bound(key, now)
	}
}

// oldest is the binding made or renewed longest ago, of all tenants.
func (t *tenants) oldest() (key model.ConvKey, at time.Time, ok bool) {
	e := t.all.Front()
	if e == nil {
		return key, at, false
	}
	u := e.Value.(*use)
	return u.key, u.at, true
}

// lastUsed is when a binding was last made or renewed.
func (t *tenants) lastUsed(key model.ConvKey) (at time.Time, ok bool) {
	if e := t.byKey[key]; e != nil {
		return e.Value.(*use).at, true
	}
	return at, false
}

// victim is the binding that makes room for one of name's in a full table of
// size: name's longest unused where it has its share, else that of the tenant
// with the most.
func (t *tenants) victim(name string, size int) (key model.ConvKey, ok bool) {
	if len(t.bySize) == 0 {
		return key, false
	}
	n, owner := len(t.byName), t.byName[name]
	if owner == nil {
		n++
	}
	if owner == nil || owner.uses.Len() < max(1, size/n) {
		owner = t.bySize[0]
	}
	return owner.uses.Front().Value.(*use).key, true
}

// tenantHeap has the tenant with the most bindings first.
type tenantHeap []*tenant

func (h tenantHeap) Len() int           { return len(h) }
func (h tenantHeap) Less(i, j int) bool { return h[i].uses.Len() > h[j].uses.Len() }
func (h tenantHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push and Pop are heap.Interface's.
func (h *tenantHeap) Push(x any) {
	t := x.(*tenant)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop removes the last.
func (h *tenantHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
