package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// convList paints conversations by name: those of a command, exactly.
type convList struct{ convs []*model.Conv }

// shownConvs is how many conversations are listed before the rest is counted.
const shownConvs = 6

func (l convList) rows() int {
	return min(len(l.convs), shownConvs)
}

// paint fills at most h rows.
func (l convList) paint(b *cell.Block, f *view.Frame, h int) {
	n := min(l.rows(), max(h, 0))
	if n == 0 {
		return
	}
	whole := n
	if len(l.convs) > n {
		whole = n - 1
	}
	if n == 1 && whole == 0 {
		b.Begin(cell.Normal)
		b.Gap(pad)
		more := cell.Say(" and %s more", cell.Full(len(l.convs)-1))
		b.Left(cell.Strong, min(cell.Fit(l.convs[0].Key.ID, 40).Width(), b.Width()-2*pad-more.Width()), cell.Fit(l.convs[0].Key.ID, 40))
		b.Put(cell.Dim, more)
		return
	}
	tenantW := 10
	if b.Width() >= 60 {
		tenantW = 14
	}
	idW := max(10, b.Width()-2*pad-24-tenantW)
	now := l.now(f, whole)
	for _, c := range l.convs[:whole] {
		b.Begin(cell.Normal)
		b.Gap(pad)
		b.Left(cell.Strong, idW, cell.Fit(c.Key.ID, idW))
		b.Gap(1)
		b.Left(cell.Dim, tenantW, cell.Fit(c.Key.Tenant, tenantW))
		fresh, here := now[c.Key]
		if !here {
			b.Right(cell.Plain, 8, cell.Unknown())
			b.Gap(3)
			b.Put(cell.Warn, cell.Lit("gone"))
			continue
		}
		b.Right(cell.Plain, 8, cell.Kilo(float64(fresh.CachedTokens)))
		b.Gap(3)
		b.Put(cell.Dim, idle(f, fresh))
	}
	if whole < n {
		b.Begin(cell.Normal)
		b.Gap(pad)
		b.Put(cell.Dim, cell.Say("… and %s more", cell.Full(len(l.convs)-whole)))
	}
}

// now looks up the first n conversations in the frame being drawn: they go on
// while the dialog is open, and may be gone.
func (l convList) now(f *view.Frame, n int) map[model.ConvKey]*model.Conv {
	out := make(map[model.ConvKey]*model.Conv, n)
	for _, c := range l.convs[:n] {
		out[c.Key] = nil
	}
	for _, c := range f.State.Convs {
		if _, wanted := out[c.Key]; wanted {
			out[c.Key] = c
		}
	}
	for k, c := range out {
		if c == nil {
			delete(out, k)
		}
	}
	return out
}

// idle is how long a conversation has been quiet, or that it is not.
func idle(f *view.Frame, c *model.Conv) cell.Text {
	if c.Open > 0 {
		return cell.Lit("busy")
	}
	if c.LastAt.IsZero() {
		return cell.Unknown()
	}
	return cell.Say("idle %s", cell.Age(f.Now.Sub(c.LastAt)))
}

// keys are the conversations' keys.
func (l convList) keys() []model.ConvKey {
	out := make([]model.ConvKey, 0, len(l.convs))
	for _, c := range l.convs {
		out = append(out, c.Key)
	}
	return out
}

// cached is the sum of their cached tokens.
func (l convList) cached() (sum int) {
	for _, c := range l.convs {
		sum += c.CachedTokens
	}
	return sum
}

// where is the rank they are on: one, or a count of several.
func (l convList) where() cell.Text {
	seen := map[model.Target]bool{}
	for _, c := range l.convs {
		seen[Where(c)] = true
	}
	if len(seen) == 1 {
		return cell.Foreign(Where(l.convs[0]).String())
	}
	return cell.Say("%s ranks", cell.Int(len(seen)))
}

// Where is the rank that holds a conversation: its pin or binding, else where
// its last turn ran.
func Where(c *model.Conv) model.Target {
	if c.Pin != model.PinNone {
		return c.Bound
	}
	return c.Last
}

// named is 3 conversations, or the one's name.
func (l convList) named() cell.Text {
	if len(l.convs) == 1 {
		return cell.Fit(l.convs[0].Key.ID, 40)
	}
	return cell.Say("%s conversations", cell.Full(len(l.convs)))
}

// line paints a name and a sentence.
func line(b *cell.Block, h *int, name cell.Text, role cell.Role, text cell.Text) {
	if *h <= 0 {
		return
	}
	*h--
	b.Begin(cell.Normal)
	b.Gap(pad)
	nameW := 9
	if b.Width() < 48 {
		nameW = name.Width() + 1
	}
	b.Left(cell.Dim, nameW, name)
	b.Left(role, b.Width()-b.At()-1, text)
}

// gap is a blank row when there is one to spare.
func gap(b *cell.Block, h *int, spare int) {
	if *h > spare {
		*h--
		b.Blank(1)
	}
}
