package events

import (
	"strings"
	"time"

	"adpdeck/tui/view"
)

// CopyText is the event under the cursor as one line of fields with tabs
// between: time, level, kind, who, what, version.
func (v *View) CopyText(f *view.Frame) string {
	v.update(f)
	e, ok := v.list.Selected()
	if !ok {
		return ""
	}
	version := ""
	if e.Version != 0 {
		version = "v" + e.versionText()
	}
	fields := []string{e.At.Format(time.RFC3339Nano), e.Level, e.kind, e.Who, e.What, version}
	plain := strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")
	for i := range fields {
		fields[i] = plain.Replace(fields[i])
	}
	return strings.TrimRight(strings.Join(fields, "\t"), "\t")
}

// Export is every event that passes the filter, newest first.
func (v *View) Export(f *view.Frame) view.Table {
	v.update(f)
	t := view.Table{Name: "events", Columns: []string{
		"event", "at", "level", "kind", "who", "what", "version", "about", "before", "after", "reason", "command", "verb", "undoes", "undone_by",
	}}
	for _, e := range v.list.Rows() {
		row := []any{
			e.ID, e.At, e.Level, e.kind, e.Who, e.What, nil, name(v.about(e).target), e.Before, e.After, e.reason(), e.Command, e.verb(), nil, nil,
		}
		if e.Version != 0 {
			row[6] = e.Version
		}
		if e.rev != nil {
			row[13], row[14] = e.rev.Undoes, e.rev.UndoneBy
		}
		if v.about(e).target.Worker == "" {
			row[7] = nil
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
