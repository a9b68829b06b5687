package list

import (
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
)

// mark carries out the three marking commands.
func (l *List[K, T]) mark(c command.ID) {
	it, ok := l.Selected()
	if !ok {
		return
	}
	k := l.cfg.Key(it)
	switch c {
	case command.Mark:
		if l.marks[k] {
			delete(l.marks, k)
		} else {
			l.marks[k] = true
			l.lastMark = k
		}
		l.move(1)
	case command.MarkRange:
		from, ok := l.at[l.lastMark]
		if !ok || !l.marks[l.lastMark] {
			from = l.line
		}
		for i := min(from, l.line); i <= max(from, l.line); i++ {
			l.marks[l.cfg.Key(l.rows[i])] = true
		}
		l.lastMark = k
	case command.MarkAll:
		for _, it := range l.rows {
			l.marks[l.cfg.Key(it)] = true
		}
	}
}

// Marked reports whether an item is marked.
func (l *List[K, T]) Marked(k K) bool { return l.marks[k] }

// Marks returns how many items are marked.
func (l *List[K, T]) Marks() int { return len(l.marks) }

// MarkedItems returns the marked items: those shown in their order, then those
// that the filter hides.
func (l *List[K, T]) MarkedItems() []T {
	out := make([]T, 0, len(l.marks))
	for _, it := range l.rows {
		if l.marks[l.cfg.Key(it)] {
			out = append(out, it)
		}
	}
	if len(out) < len(l.marks) {
		for _, it := range l.items {
			if k := l.cfg.Key(it); l.marks[k] {
				if _, shown := l.at[k]; !shown {
					out = append(out, it)
				}
			}
		}
	}
	return out
}

// Targets returns what a command acts on: the marked items, or else the one
// under the cursor.
func (l *List[K, T]) Targets() []T {
	if len(l.marks) > 0 {
		return l.MarkedItems()
	}
	if it, ok := l.Selected(); ok {
		return []T{it}
	}
	return nil
}

// SetMarks marks exactly these items, for example those that were refused.
func (l *List[K, T]) SetMarks(keys []K) {
	l.marks = make(map[K]bool, len(keys))
	for _, k := range keys {
		l.marks[k] = true
	}
}

// ClearMarks unmarks everything and lets the order go.
func (l *List[K, T]) ClearMarks() {
	clear(l.marks)
	l.arrange()
}

// Window returns which rows to show in h lines; it moves as little as it can.
func (l *List[K, T]) Window(h int) (from, to int) {
	from, to = layout.Window(len(l.rows), h, l.Line(), l.top)
	l.top = from
	return from, to
}
