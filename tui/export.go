package tui

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// exportIntent asks for the rows of a view in a format.
type exportIntent struct {
	view.Intent
	format string
}

// exportedMsg is what became of an export.
type exportedMsg struct {
	path string
	rows int
	err  error
}

// exportAs asks in which format; nothing is written before.
type exportAs struct{ at int }

// exportFormats are the choices: the file's ending and what it is.
func exportFormats() (names [2]string, texts [2]cell.Text) {
	return [2]string{"csv", "json"}, [2]cell.Text{cell.Lit("CSV   one line a row, with a head"), cell.Lit("JSON  one array of objects")}
}

// Title implements view.Dialog.
func (d *exportAs) Title() cell.Text { return cell.Lit("Export the rows shown by the filter") }

// Foot implements view.Dialog.
func (d *exportAs) Foot(*view.Frame) cell.Text { return cell.Lit("enter writes · c j · esc") }

// Size implements view.Dialog.
func (d *exportAs) Size(*view.Frame) (w, h int) { return 44, 2 }

// Acts implements view.Dialog.
func (d *exportAs) Acts() bool { return false }

// Draw implements view.Dialog.
func (d *exportAs) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	_, texts := exportFormats()
	for i, text := range texts {
		kind, mark := cell.Normal, cell.Lit("   ")
		if i == d.at {
			kind, mark = cell.Cursor, cell.Say(" %s ", cell.Glyph(f.Ink.Glyphs.CursorMark))
		}
		b.Begin(kind)
		b.Put(cell.Plain, mark)
		b.Put(cell.Plain, text)
	}
	return b.Lines(h)
}

// Key implements view.Dialog.
func (d *exportAs) Key(_ *view.Frame, k view.Key) (view.Intent, bool) {
	switch k.Name {
	case "down", "up", "tab", "shift+tab":
		d.at = 1 - d.at
	case "c":
		return exportIntent{format: "csv"}, true
	case "j":
		return exportIntent{format: "json"}, true
	case "enter":
		names, _ := exportFormats()
		return exportIntent{format: names[d.at]}, true
	case "q", "x":
		return nil, true
	}
	return nil, false
}

// export writes the rows of the view on the screen to a new file in the working
// directory, away from the screen's goroutine.
func (m *Model) export(format string) tea.Cmd {
	e, ok := m.current().(view.Exporter)
	if !ok || m.frame.State == nil {
		m.say(view.Note, cell.Lit("this view has no rows to export"))
		return nil
	}
	t := e.Export(&m.frame)
	if len(t.Rows) == 0 {
		m.say(view.Note, cell.Lit("not exported: no row passes the filter"))
		return nil
	}
	name := fmt.Sprintf("adpdeck-%s-%s.%s", t.Name, m.opt.Now().Format("20060102-150405"), format)
	path := filepath.Join(m.opt.ExportDir, name)
	return func() tea.Msg {
		return exportedMsg{path, len(t.Rows), writeTable(path, format, t)}
	}
}

func (m *Model) onExported(e exportedMsg) {
	m.opt.Log.Info("export", "file", e.path, "rows", e.rows, "err", e.err)
	if e.err != nil {
		why := e.err
		if p := (*fs.PathError)(nil); errors.As(why, &p) { // the row is short: the name will do for the path
			why = p.Err
		}
		m.say(view.Failed, cell.Say("not exported: %s: %s", cell.Foreign(filepath.Base(e.path)), cell.Foreign(why.Error())))
		return
	}
	m.say(view.Done, cell.Say("%s rows written to %s", cell.Full(e.rows), cell.Foreign(e.path)))
}

// writeTable writes t to a new file, never over another one. A file that could
// not be finished is removed.
func writeTable(path, format string, t view.Table) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	w := bufio.NewWriter(f)
	if format == "json" {
		err = writeJSON(w, t)
	} else {
		err = writeCSV(w, t)
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

func writeCSV(out io.Writer, t view.Table) error {
	w := csv.NewWriter(out)
	if err := w.Write(t.Columns); err != nil {
		return err
	}
	line := make([]string, len(t.Columns))
	for _, row := range t.Rows {
		for i, v := range row {
			line[i] = plainValue(v)
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// plainValue is a value as text, empty where it is unknown.
func plainValue(v any) string {
	switch v := known(v).(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(v)
	}
}

// known is v, or nil where v stands for what is not known.
func known(v any) any {
	switch x := v.(type) {
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	case time.Time:
		if x.IsZero() {
			return nil
		}
	}
	return v
}

// writeJSON writes an array of objects, keys in the order of the columns.
func writeJSON(w io.Writer, t view.Table) error {
	var b bytes.Buffer
	for n, row := range t.Rows {
		b.Reset()
		b.WriteString(map[bool]string{true: "[\n{", false: ",\n{"}[n == 0])
		for i, v := range row {
			key, err := json.Marshal(t.Columns[i])
			if err != nil {
				return err
			}
			value, err := json.Marshal(known(v))
			if err != nil {
				return err
			}
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(key)
			b.WriteByte(':')
			b.Write(value)
		}
		b.WriteByte('}')
		if _, err := w.Write(b.Bytes()); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "\n]\n")
	return err
}
