package trace

import (
	"bytes"
	"strings"
	"testing"
)

// fuzzRead reads head and whatever follows it; a reader may refuse it, but
// what it accepts must be usable.
func fuzzRead(f *testing.F, head string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		tr, err := Read(bytes.NewReader(append([]byte(head), data...)), "fuzz")
		if err != nil {
			return
		}
		for i := range tr.Rows {
			r := &tr.Rows[i]
			ordered := i == 0 || r.At >= tr.Rows[i-1].At
			if r.At < 0 || !ordered || r.PromptTokens < 1 || r.OutputTokens < 1 || r.BlockTokens < 1 ||
				len(r.FullBlocks()) != r.PromptTokens/r.BlockTokens || !r.Conv.Keyless() && r.Turn < 1 {
				t.Fatalf("row %d cannot be used: %+v", i, r)
			}
		}
		if tr.Bad.Count < len(tr.Bad.First) || len(tr.Bad.First) > MaxNamedBadRows {
			t.Fatalf("bad rows: %+v", tr.Bad)
		}
		lines := bytes.Count(data, []byte("\n")) + strings.Count(head, "\n") + 1
		if len(tr.Rows)+tr.Bad.Count > lines {
			t.Fatalf("%d rows and %d bad of %d lines", len(tr.Rows), tr.Bad.Count, lines)
		}
	})
}

func FuzzMooncake(f *testing.F) {
	fuzzRead(f, `{"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [0, 1]}`+"\n",
		`{"timestamp": 9, "input_length": 1600, "output_length": 3, "hash_ids": [0, 1, 2, 18446744073709551615]}`,
		`{"timestamp": 1e300}`, `{"hash_ids": null}`, "\xef\xbb\xbf{}\r\n[]\n0")
}

func FuzzSessions(f *testing.F) {
	row := `{"session_id": "a", "turn": 1, "timestamp": 0, "input_chars": 300, "output_chars": 9, "block_chars": 256, "hash_ids": [0]}` + "\n"
	fuzzRead(f, row, strings.Replace(row, `"a"`, `"\u0000b"`, 1), strings.Replace(row, `1`, `2`, 1), `{"session_id": 5}`)
}

func FuzzAzure(f *testing.F) {
	fuzzRead(f, azureHeader+"\r\n2023-11-16 18:15:46.6805900,374,44\r\n",
		"2023-11-16 18:15:46.6805900,1,1", "2023-11-16 18:15:46+02:00,65,1\r\n0001-01-01 00:00:00,1,1", ",,\n9,9,9,9")
}
