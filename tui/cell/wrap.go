package cell

import "strings"

// Wrap breaks t between words into texts of at most w cells. A word that is
// wider than that is cut with no mark. An empty text gives no line.
func Wrap(t Text, w int) []Text {
	if t.w == 0 || w <= 0 {
		return nil
	}
	var out []Text
	line := Text{}
	for _, word := range strings.Fields(t.s) {
		next := trusted(word)
		if line.w > 0 && line.w+1+next.w > w {
			out = append(out, line)
			line = Text{}
		}
		for next.w > w {
			head, hw := prefix(next.s, w)
			if hw == 0 {
				break
			}
			out = append(out, Text{s: head, w: hw})
			next = trusted(next.s[len(head):])
		}
		if line.w > 0 {
			line = Text{s: line.s + " " + next.s, w: line.w + 1 + next.w}
		} else {
			line = next
		}
	}
	if line.w > 0 {
		out = append(out, line)
	}
	return out
}
