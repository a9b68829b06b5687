package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shared opens one of the public traces, which are not part of this tree.
func shared(t testing.TB, name string) *Trace {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "traces", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the public trace %s is not beside this tree", name)
	}
	tr, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestMooncakeFigures(t *testing.T) {
	tr := shared(t, "mooncake_conversation_trace.jsonl")
	if tr.Format != FormatMooncake || len(tr.Rows) != 12031 || tr.Bad.Count != 0 || tr.Conversations != 8057 {
		t.Fatalf("%s: %d rows, %d bad, %d conversations", tr.Format, len(tr.Rows), tr.Bad.Count, tr.Conversations)
	}
	m := Measure(tr.Rows)
	if m.Conversations != 8057 || m.MultiTurn != 2012 || m.InMultiTurn != 5986 || m.LongestTurns != 43 {
		t.Errorf("conversations: %+v", m)
	}
	if m.Prompt.Min != 891 || m.Prompt.Max != 126195 || m.Output.Min != 1 || m.Output.Max != 2000 {
		t.Errorf("lengths: %+v", m)
	}
	if m.IdealHit < .36 || m.IdealHit > .38 {
		t.Errorf("ideal hit %.4f", m.IdealHit)
	}
	t.Logf("%+v", m)
}

func TestSessionsFigures(t *testing.T) {
	tr := shared(t, "agent_sessions_hashed.jsonl")
	m := Measure(tr.Rows)
	if tr.Format != FormatSessions || tr.Conversations != 45 || len(tr.Rows)+tr.Bad.Count != 1148 {
		t.Fatalf("%s: %d rows, %s, %d conversations", tr.Format, len(tr.Rows), tr.Bad.String(), tr.Conversations)
	}
	if m.LongestTurns > 44 || m.IdealHit < .85 {
		t.Errorf("%+v", m)
	}
	t.Logf("%+v %s %v", m, tr.Bad.String(), tr.Notes)
}

func TestAzureFigures(t *testing.T) {
	tr := shared(t, "AzureLLMInferenceTrace_conv.csv")
	if tr.Format != FormatAzure || len(tr.Rows) != 19366 || tr.Bad.Count != 0 {
		t.Fatalf("%s: %d rows, %s", tr.Format, len(tr.Rows), tr.Bad.String())
	}
	last := tr.Rows[len(tr.Rows)-1]
	if tr.Rows[1].At != 4314579*time.Microsecond || last.PromptTokens != 197 || last.OutputTokens != 183 {
		t.Errorf("second row at %s, last %d+%d", tr.Rows[1].At, last.PromptTokens, last.OutputTokens)
	}
	if m := Measure(tr.Rows); m.IdealHit != 0 || m.Conversations != 0 {
		t.Errorf("requests share something: %+v", m)
	}
}

func TestBadRowsAreNamedAndTheRestUsed(t *testing.T) {
	good := `{"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [0, 1]}`
	cases := map[string]struct{ text, why string }{
		"not json":         {`{"timestamp": 5, "input_length"`, "line 2: not JSON"},
		"an array":         {`[1]`, "line 2: not a JSON object but array"},
		"wrong type":       {`{"timestamp":5,"input_length":"x","output_length":3,"hash_ids":[0,1]}`, "line 2: input_length cannot be string"},
		"negative id":      {`{"timestamp":5,"input_length":600,"output_length":3,"hash_ids":[0,-1]}`, "line 2: hash_ids cannot be number -1"},
		"missing":          {`{"timestamp":5,"output_length":3,"hash_ids":[0,1]}`, "line 2: input_length is missing"},
		"no timestamp":     {`{"input_length":600,"output_length":3,"hash_ids":[0,1]}`, "line 2: timestamp is missing"},
		"before time":      {`{"timestamp":-5,"input_length":600,"output_length":3,"hash_ids":[0,1]}`, "line 2: timestamp -5"},
		"no answer":        {`{"timestamp":5,"input_length":600,"output_length":0,"hash_ids":[0,1]}`, "line 2: output_length is 0"},
		"too few blocks":   {`{"timestamp":5,"input_length":600,"output_length":3,"hash_ids":[0]}`, "needs 2 hash_ids of 512 tokens, not 1"},
		"unbelievable":     {`{"timestamp":5,"input_length":99999999,"output_length":3,"hash_ids":[0]}`, "is not believed"},
		"longer than line": {strings.Repeat("x", MaxLineBytes+1), "line 2: longer than 4 MiB"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tr, err := Read(strings.NewReader(good+"\n"+c.text+"\n\n"+good), "t")
			if err != nil {
				t.Fatal(err)
			}
			if len(tr.Rows) != 2 || tr.Bad.Count != 1 || !strings.Contains(tr.Bad.String(), c.why) {
				t.Errorf("%d rows, %d bad: %s", len(tr.Rows), tr.Bad.Count, tr.Bad.String())
			}
		})
	}
}

func TestBadRowsOfOtherFormats(t *testing.T) {
	session := `{"session_id":"a","turn":1,"timestamp":0,"input_chars":300,"output_chars":5,"block_chars":256,"hash_ids":[7]}` + "\n"
	azure := azureHeader + "\r\n2023-11-16 18:15:46.6805900,374,44\r\n"
	cases := map[string]struct{ good, bad, why string }{
		"no session":   {session, `{"turn":1,"timestamp":0,"input_chars":300,"output_chars":5,"block_chars":256,"hash_ids":[7]}`, "session_id is missing"},
		"turn 0":       {session, strings.Replace(session, `"turn":1`, `"turn":0`, 1), "turn is missing or below 1"},
		"other blocks": {session, strings.Replace(session, "256", "16", 1), "block_chars is missing or not 256"},
		"too many":     {session, strings.Replace(session, "[7]", "[7,8]", 1), "needs 1 hash_ids of 256 characters, not 2"},
		"two fields":   {azure, "2023-11-16 18:15:46.6805900,374", "has 2 fields, must have 3"},
		"no time":      {azure, "yesterday,374,44", `TIMESTAMP "yesterday" is not like`},
		"not a number": {azure, "2023-11-16 18:15:46.6805900,x,44", `ContextTokens "x" is not a whole number`},
		"no tokens":    {azure, "2023-11-16 18:15:46.6805900,0,44", "ContextTokens is 0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tr, err := Read(strings.NewReader(c.good+c.bad), "t")
			if err != nil {
				t.Fatal(err)
			}
			if len(tr.Rows) != 1 || tr.Bad.Count != 1 || !strings.Contains(tr.Bad.String(), c.why) {
				t.Errorf("%d rows, %d bad: %s", len(tr.Rows), tr.Bad.Count, tr.Bad.String())
			}
		})
	}
}

func TestNamedBadRowsAreBounded(t *testing.T) {
	text := `{"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [0, 1]}` + "\n" + strings.Repeat("x\n", 1000)
	tr, err := Read(strings.NewReader(text), "t")
	if err != nil || tr.Bad.Count != 1000 || len(tr.Bad.First) != MaxNamedBadRows {
		t.Errorf("%v: %d bad, %d named", err, tr.Bad.Count, len(tr.Bad.First))
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	cases := map[string]struct {
		text string
		want error
		says string
	}{
		"empty":       {"", ErrNoRows, "t: no row can be used: it is empty"},
		"mark alone":  {"\ufeff\r\n", ErrNoRows, "it is empty"},
		"nonsense":    {"x", ErrFormat, "understood are Mooncake JSONL"},
		"unknown":     {"a,b,c\n1,2,3\n", ErrFormat, `begins with "a,b,c"`},
		"all bad":     {`{"timestamp":5,"input_length":0,"output_length":1,"hash_ids":[]}`, ErrNoRows, "line 1: input_length is 0"},
		"header only": {azureHeader + "\n", ErrNoRows, "no row can be used"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text), "t")
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestByteOrderMarkAndUnsortedRows(t *testing.T) {
	text := string(utf8Mark) + `{"timestamp": 900, "input_length": 1600, "output_length": 3, "hash_ids": [0, 1, 2, 4]}
{"timestamp": 400, "input_length": 1400, "output_length": 3, "hash_ids": [0, 1, 3]}
{"timestamp": 500, "input_length": 1400, "output_length": 3, "hash_ids": [0, 9, 3]}`
	tr, err := Read(strings.NewReader(text), "t")
	if err != nil {
		t.Fatal(err)
	}
	if tr.Bad.Count != 0 || tr.Rows[0].At != 0 || tr.Rows[2].At != 500*time.Millisecond {
		t.Fatalf("%+v", tr)
	}
	if tr.Rows[2].Conv != tr.Rows[0].Conv || tr.Rows[2].Turn != 2 || tr.Rows[1].Conv == tr.Rows[0].Conv {
		t.Errorf("not linked by arrival: %+v", tr.Rows)
	}
}

func TestPlayerEnds(t *testing.T) {
	tr := &Trace{Rows: []Row{{Turn: 1}, {Turn: 2}}}
	p, row, n := tr.Play(), Row{}, 0
	for p.Next(&row) {
		n++
		if row.Turn != n {
			t.Errorf("row %d is turn %d", n, row.Turn)
		}
	}
	if n != 2 || p.Total() != 2 {
		t.Errorf("%d of %d rows", n, p.Total())
	}
}

func TestBlocksOfARow(t *testing.T) {
	cases := map[string]struct{ prompt, full, probe int }{
		"one token":        {1, 0, 0},
		"one block":        {512, 1, 0},
		"one and a token":  {513, 1, 1},
		"partial last":     {1500, 2, 2},
		"exactly all four": {2048, 4, 3},
	}
	for name, c := range cases {
		r := Row{PromptTokens: c.prompt, BlockTokens: 512, Blocks: make([]uint64, (c.prompt+511)/512)}
		if len(r.FullBlocks()) != c.full || len(r.ProbeBlocks()) != c.probe {
			t.Errorf("%s: %d full, %d to probe", name, len(r.FullBlocks()), len(r.ProbeBlocks()))
		}
	}
}
