// Package list is the behaviour that every list of the console shares: a
// cursor and marks that belong to items and not to lines, a filter, an order,
// and an order that is held while something is marked or a dialog is open.
//
// A List draws nothing and knows nothing of keys beyond the commands of the
// table. It belongs to one goroutine. Update costs a pass over the items and a
// sort, and is only worth calling when they have changed.
package list

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"adpdeck/tui/command"
)

// Field is a column as the list sees it: a name to filter and sort by.
type Field[T any] struct {
	// Name is the word in filters, lower case without spaces.
	Name string
	// Text is what filters look at; nil for columns that are numbers only.
	Text func(T) string
	// Number is what > and < and the order look at; nil for texts. NaN is
	// unknown and comes last in either order.
	Number func(T) float64
	// Exact says that name:value wants the whole text.
	Exact bool
	// Compare orders items; nil orders by Number, else by Text.
	Compare func(a, b T) int
	// Falling says that the greatest comes first when the column is chosen.
	Falling bool
}

// Config describes a list.
type Config[K comparable, T any] struct {
	Key    func(T) K
	Fields []Field[T]
	Sort   string // name of the field that orders at first
}

// List is the state of one list.
type List[K comparable, T any] struct {
	cfg  Config[K, T]
	info []FieldInfo

	items []T       // as given
	rows  []T       // filtered and ordered
	at    map[K]int // row of each key
	sort  int
	desc  bool

	cursor    K
	hasCursor bool
	line      int  // row of the cursor
	onLine    bool // the cursor stays on its line instead of its item
	touched   bool // the operator has used the list: the cursor is an identity
	top       int  // first row shown

	marks    map[K]bool
	lastMark K
	hold     bool

	filter Filter
	typing bool
	input  input
	before Filter // what esc goes back to while typing
	err    error
}

// New returns an empty list.
func New[K comparable, T any](cfg Config[K, T]) *List[K, T] {
	l := &List[K, T]{cfg: cfg, marks: map[K]bool{}, at: map[K]int{}}
	for i, f := range cfg.Fields {
		l.info = append(l.info, FieldInfo{Name: f.Name, Number: f.Number != nil, Exact: f.Exact})
		if f.Name == cfg.Sort {
			l.sort, l.desc = i, f.Falling
		}
	}
	return l
}

// Update takes new items; hold keeps the order of those that were there and
// puts new ones last. The order is held too while anything is marked.
func (l *List[K, T]) Update(items []T, hold bool) {
	l.items, l.hold = items, hold
	l.arrange()
}

// Held reports whether the order is held.
func (l *List[K, T]) Held() bool { return l.hold || len(l.marks) > 0 }

// arrange filters and orders anew and finds the cursor again.
func (l *List[K, T]) arrange() {
	rows := make([]T, 0, len(l.items))
	for _, it := range l.items {
		if l.passes(it) {
			rows = append(rows, it)
		}
	}
	old := l.at
	compare := l.compare()
	if l.Held() && len(old) > 0 {
		last := len(old)
		place := func(t T) int {
			if i, ok := old[l.cfg.Key(t)]; ok {
				return i
			}
			return last
		}
		sorted := compare
		compare = func(a, b T) int {
			if c := cmp.Compare(place(a), place(b)); c != 0 {
				return c
			}
			return sorted(a, b)
		}
	}
	slices.SortStableFunc(rows, compare)
	l.rows = rows
	l.at = make(map[K]int, len(rows))
	for i, it := range rows {
		l.at[l.cfg.Key(it)] = i
	}
	l.dropMarks()
	l.findCursor()
}

// dropMarks forgets marks of items that are gone altogether.
func (l *List[K, T]) dropMarks() {
	if len(l.marks) == 0 {
		return
	}
	alive := make(map[K]bool, len(l.marks))
	for _, it := range l.items {
		if k := l.cfg.Key(it); l.marks[k] {
			alive[k] = true
		}
	}
	l.marks = alive
}

// findCursor puts the cursor on its item, or on the item that now stands in
// its line when the item is gone or the cursor stays on its line.
func (l *List[K, T]) findCursor() {
	if len(l.rows) == 0 {
		return // the item may come back: keep its key
	}
	if !l.touched && !l.Held() {
		l.line, l.hasCursor = 0, false // nobody aims yet: the first row is the one to show
	}
	if i, ok := l.at[l.cursor]; ok && l.hasCursor && (!l.onLine || l.Held()) {
		l.line = i
		return
	}
	l.line = min(max(l.line, 0), len(l.rows)-1)
	l.cursor, l.hasCursor = l.cfg.Key(l.rows[l.line]), true
}

func (l *List[K, T]) compare() func(a, b T) int {
	f := l.cfg.Fields[l.sort]
	by := f.Compare
	switch {
	case by != nil:
	case f.Number != nil:
		return func(a, b T) int { return compareNumbers(f.Number(a), f.Number(b), l.desc) }
	default:
		by = func(a, b T) int { return strings.Compare(f.Text(a), f.Text(b)) }
	}
	if l.desc {
		return func(a, b T) int { return by(b, a) }
	}
	return by
}

// compareNumbers orders numbers with the unknown last in either direction.
func compareNumbers(a, b float64, desc bool) int {
	na, nb := math.IsNaN(a), math.IsNaN(b)
	switch {
	case na && nb:
		return 0
	case na:
		return 1
	case nb:
		return -1
	case desc:
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

func (l *List[K, T]) passes(it T) bool {
	text := func(i int) string {
		if f := l.cfg.Fields[i]; f.Text != nil {
			return f.Text(it)
		}
		return ""
	}
	number := func(i int) float64 { return l.cfg.Fields[i].Number(it) }
	return l.filter.match(l.info, text, number)
}

// Rows returns the rows in order; the caller does not write to them.
func (l *List[K, T]) Rows() []T { return l.rows }

// Total returns how many items there are without the filter.
func (l *List[K, T]) Total() int { return len(l.items) }

// Selected returns the item under the cursor.
func (l *List[K, T]) Selected() (it T, ok bool) {
	if i, found := l.at[l.cursor]; found && l.hasCursor {
		return l.rows[i], true
	}
	return it, false
}

// Touch says that the operator acts on what the cursor shows: from now on it
// belongs to its item. Do and Key touch too.
func (l *List[K, T]) Touch() { l.touched = true }

// Line returns the row of the cursor, -1 when there is none.
func (l *List[K, T]) Line() int {
	if _, ok := l.at[l.cursor]; !ok || !l.hasCursor {
		return -1
	}
	return l.line
}

// Select puts the cursor on an item and reports whether it is there.
func (l *List[K, T]) Select(k K) bool {
	i, ok := l.at[k]
	if ok {
		l.cursor, l.hasCursor, l.line, l.touched = k, true, i, true
	}
	return ok
}

// Order returns the name of the field that orders and whether the greatest
// comes first.
func (l *List[K, T]) Order() (name string, falling bool) {
	return l.cfg.Fields[l.sort].Name, l.desc
}

// SortBy orders by the named field in its own direction, and reports whether
// there is one of that name.
func (l *List[K, T]) SortBy(name string) bool {
	for i, f := range l.cfg.Fields {
		if f.Name == name {
			l.sort, l.desc = i, f.Falling
			l.reorder()
			return true
		}
	}
	return false
}

// FieldNames returns the names to filter and sort by.
func (l *List[K, T]) FieldNames() []string {
	out := make([]string, len(l.info))
	for i, f := range l.info {
		out[i] = f.Name
	}
	return out
}

// reorder orders anew even while the order is held: it was asked for.
func (l *List[K, T]) reorder() {
	l.at = map[K]int{}
	l.arrange()
}

// Do carries out a command; page is the number of rows on the screen. It
// reports whether the command is one of a list's.
func (l *List[K, T]) Do(c command.ID, page int) bool {
	l.touched = true
	switch c {
	case command.Down:
		l.move(1)
	case command.Up:
		l.move(-1)
	case command.First:
		l.move(-len(l.rows))
	case command.Last:
		l.move(len(l.rows))
	case command.PageDown:
		l.move(max(1, page/2))
	case command.PageUp:
		l.move(-max(1, page/2))
	case command.SortLeft, command.SortRight:
		step := len(l.cfg.Fields) - 1
		if c == command.SortRight {
			step = 1
		}
		l.sort = (l.sort + step) % len(l.cfg.Fields)
		l.desc = l.cfg.Fields[l.sort].Falling
		l.reorder()
	case command.Reverse:
		l.desc = !l.desc
		l.reorder()
	case command.Follow:
		l.onLine = !l.onLine
	case command.Filter:
		l.startTyping()
	case command.Mark, command.MarkRange, command.MarkAll:
		l.mark(c)
	case command.NextMatch, command.PrevMatch:
		step := 1
		if c == command.PrevMatch {
			step = -1
		}
		l.Seek(step, func(T) bool { return true })
	default:
		return false
	}
	return true
}

// Follows reports whether the cursor follows its item.
func (l *List[K, T]) Follows() bool { return !l.onLine }

func (l *List[K, T]) move(n int) {
	if len(l.rows) == 0 {
		return
	}
	l.line = min(max(l.line+n, 0), len(l.rows)-1)
	l.cursor, l.hasCursor = l.cfg.Key(l.rows[l.line]), true
}

// Seek moves the cursor on, or back when step is -1, to the next row that want
// takes, round about, and reports whether there is one; the row it is on comes
// last.
func (l *List[K, T]) Seek(step int, want func(T) bool) (it T, ok bool) {
	n := len(l.rows)
	for i := 1; i <= n; i++ {
		at := ((l.line+i*step)%n + n) % n
		if want(l.rows[at]) {
			l.touched = true
			l.move(at - l.line)
			return l.rows[at], true
		}
	}
	return it, false
}

// Back closes one level (text being typed, then the filter, then the marks)
// and reports whether there was one.
func (l *List[K, T]) Back() bool {
	switch {
	case l.typing:
		l.stopTyping(false)
	case !l.filter.Empty():
		l.filter = Filter{}
		l.arrange()
	case len(l.marks) > 0:
		l.ClearMarks()
	default:
		return false
	}
	return true
}
