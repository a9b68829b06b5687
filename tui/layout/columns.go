package layout

// Column is what a table's column asks of the width.
type Column struct {
	// Width in cells, with the gap that belongs to it.
	Width int
	// Priority says which column goes first when width is short: the lowest.
	// Among equals the rightmost goes.
	Priority int
	// Grow is the column's share of width that is left over; 0 takes none.
	Grow int
	// Most is the width that a growing column does not exceed; 0 is no limit.
	Most int
}

// Columns fits columns into w cells. widths holds 0 for a column that is not
// shown; hidden counts those.
func Columns(w int, cols []Column) (widths []int, hidden int) {
	widths = make([]int, len(cols))
	sum := 0
	for i, c := range cols {
		widths[i] = c.Width
		sum += c.Width
	}
	for sum > w {
		drop := -1
		for i, c := range cols {
			if widths[i] > 0 && (drop < 0 || c.Priority <= cols[drop].Priority) {
				drop = i
			}
		}
		if drop < 0 {
			break
		}
		sum -= widths[drop]
		widths[drop] = 0
		hidden++
	}
	grow(widths, cols, w-sum)
	return widths, hidden
}

// grow gives spare cells to the columns that take them, one share at a time.
func grow(widths []int, cols []Column, spare int) {
	for spare > 0 {
		gave := false
		for i, c := range cols {
			if widths[i] == 0 || c.Grow == 0 || spare == 0 {
				continue
			}
			n := min(c.Grow, spare)
			if c.Most > 0 {
				n = min(n, c.Most-widths[i])
			}
			if n > 0 {
				widths[i] += n
				spare -= n
				gave = true
			}
		}
		if !gave {
			return
		}
	}
}

// Window returns which rows of a list of n to show in h lines so that the
// cursor is seen, moving as little as possible from the first row shown before.
func Window(n, h, cursor, before int) (from, to int) {
	if h <= 0 || n <= 0 {
		return 0, 0
	}
	from = min(max(before, 0), max(0, n-h))
	if cursor >= 0 && cursor < n {
		if cursor < from {
			from = cursor
		}
		if cursor >= from+h {
			from = cursor - h + 1
		}
	}
	return from, min(n, from+h)
}
