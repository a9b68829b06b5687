package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"adpdeck/router/model"
)

// WriteJSON writes the results as one JSON array and a newline.
func WriteJSON(w io.Writer, results []Result) error {
	b, err := json.Marshal(results)
	if err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// columns are the table's, each with what it shows of a result.
func columns() []column {
	return []column{
		{"name", func(r *Result) string { return r.Name }},
		{"cluster", func(r *Result) string { return fmt.Sprintf("%d×%d", r.Workers, r.Ranks) }},
		{"speed", func(r *Result) string { return strconv.FormatFloat(r.Speed, 'g', -1, 64) }},
		{"mode", func(r *Result) string { return r.Mode }},
		{"policy", func(r *Result) string { return r.Policy }},
		{"hit %", func(r *Result) string { return number(r.PrefixHitRate*100, 1) }},
		{"of ideal %", func(r *Result) string { return number(r.ShareOfIdeal*100, 1) }},
		{"max/mean tokens", func(r *Result) string { return number(r.MaxOverMeanTokens, 2) }},
		{"ttft ms", func(r *Result) string { return number(r.TTFTMs.Mean, 0) }},
		{"p99", func(r *Result) string { return number(r.TTFTMs.P99, 0) }},
		{"tpot ms", func(r *Result) string { return number(r.TPOTMs.Mean, 1) }},
		{"e2e ms", func(r *Result) string { return number(r.E2EMs.Mean, 0) }},
		{"wait %", func(r *Result) string { return number(r.StepWaitShare*100, 1) }},
		{"moves", func(r *Result) string { return number(r.MovesPerConversation, 3) }},
		{"agreed %", func(r *Result) string {
			if r.Index == nil {
				return missing
			}
			return number(r.Index.Agreed*100, 2)
		}},
		{"not served", func(r *Result) string { return strconv.FormatInt(r.Refused+r.Failed+int64(r.Unserved), 10) }},
		{"wall s", func(r *Result) string { return number(model.Maybe(r.WallSeconds), 2) }},
	}
}

type column struct {
	title string
	text  func(*Result) string
}

// missing stands for a figure that is unknown.
const missing = "–"

func number(m model.Maybe, decimals int) string {
	if !m.Known() {
		return missing
	}
	return strconv.FormatFloat(float64(m), 'f', decimals, 64)
}

// WriteTable writes the results as a table, a line for each; names are on the
// left, figures on the right of their columns.
func WriteTable(w io.Writer, results []Result) error {
	cols := columns()
	lines := make([][]string, 1+len(results))
	width := make([]int, len(cols))
	for i := range lines {
		for j, c := range cols {
			text := c.title
			if i > 0 {
				text = c.text(&results[i-1])
			}
			lines[i] = append(lines[i], text)
			width[j] = max(width[j], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	for _, cells := range lines {
		for j, text := range cells {
			pad := strings.Repeat(" ", width[j]-utf8.RuneCountInString(text))
			switch {
			case j == 0:
				b.WriteString(text + pad)
			case cols[j].title == "mode" || cols[j].title == "policy":
				b.WriteString("  " + text + pad)
			default:
				b.WriteString("  " + pad + text)
			}
		}
		b.WriteByte('\n')
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}
