package jsonl

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func vectors(tb testing.TB, name string) []byte {
	tb.Helper()
	f, err := os.Open("../testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func decodeAny(tb testing.TB, text []byte) map[string]any {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%v: %.200s", err, text)
	}
	return v
}

// strip takes "expect" out of each step and returns what it was.
func strip(line map[string]any) (expect []any) {
	expect = []any{}
	for _, s := range line["steps"].([]any) {
		m := s.(map[string]any)
		expect = append(expect, m["expect"])
		delete(m, "expect")
	}
	return expect
}

func TestVectorFilesComeOutAsExpected(t *testing.T) {
	if testing.Short() {
		t.Skip("all 4,200 lines take a while under the race detector")
	}
	for name, count := range map[string]int{
		"adp_routers.jsonl.gz": 3000, "adp_admission.jsonl.gz": 600, "adp_balance.jsonl.gz": 600,
	} {
		var in bytes.Buffer
		var want []map[string]any
		for text := range bytes.Lines(vectors(t, name)) {
			v := decodeAny(t, text)
			want = append(want, map[string]any{"n": v["n"], "steps": strip(v)})
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			in.Write(append(b, '\n'))
		}
		var out bytes.Buffer
		began := time.Now()
		bad, err := Run(&in, &out, Options{Parity: true})
		t.Logf("%s: %d lines in %v", name, len(want), time.Since(began))
		if bad != 0 || err != nil || len(want) != count {
			t.Fatalf("%s: %d malformed, %v, %d lines", name, bad, err, len(want))
		}
		i := 0
		for text := range bytes.Lines(out.Bytes()) {
			if got := decodeAny(t, text); i >= len(want) || !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("%s line %d: %.400s", name, i+1, text)
			}
			i++
		}
		if i != len(want) {
			t.Errorf("%s: %d lines out, %d in", name, i, len(want))
		}
	}
}

const oneRank = `{"n":7,"router":"default","tp_size":1,"config":{},"steps":[{"rank_states":[[0,0,0]],"max_num_active_requests":4,"requests":[{"id":3,"tokens":[[1,10]]}]}]}`

func TestMalformedLinesAreNamedAndTheRestGoesOn(t *testing.T) {
	cases := map[string]struct{ line, say string }{
		"not json":       {`{"n":`, "not JSON at byte"},
		"not an object":  {`[1,2]`, "an array where an object is wanted"},
		"a bare number":  {`3`, "a number where an object is wanted"},
		"text for tp":    {`{"router":"default","tp_size":"2","steps":[]}`, `"tp_size" is a string where a whole number is wanted`},
		"text for β":     {`{"router":"kv_aware","tp_size":2,"config":{"load_balance_weight":"x"},"steps":[]}`, `config: "load_balance_weight" is a string where a number is wanted`},
		"list for conv":  {`{"router":"default","tp_size":1,"steps":[{"rank_states":[[0]],"max_num_active_requests":1,"requests":[{"id":1,"conversation_id":[]}]}]}`, `"requests.conversation_id" is an array where a string is wanted`},
		"map for states": {`{"router":"default","tp_size":1,"steps":[{"rank_states":{},"max_num_active_requests":1}]}`, `"rank_states" is an object where a list is wanted`},
		"nothing known":  {`{"n":1}`, "neither a router line"},
		"unknown router": {`{"router":"best","tp_size":1,"steps":[]}`, "want default, kv_aware or conversation"},
		"no ranks":       {`{"router":"default","tp_size":0,"steps":[]}`, `"tp_size" is 0`},
		"tp missing":     {`{"router":"default","steps":[]}`, `"tp_size" is missing`},
		"states missing": {`{"router":"default","tp_size":2,"steps":[{"max_num_active_requests":1}]}`, "step 0: \"rank_states\" has 0 entries"},
		"id missing":     {`{"router":"default","tp_size":1,"steps":[{"rank_states":[[0]],"max_num_active_requests":1,"requests":[{}]}]}`, `request 0: "id" is missing`},
		"id too large":   {`{"router":"default","tp_size":1,"steps":[{"rank_states":[[0]],"max_num_active_requests":1,"requests":[{"id":9223372036854775808}]}]}`, "requests.id"},
		"bad segment":    {`{"router":"default","tp_size":1,"steps":[{"rank_states":[[0]],"max_num_active_requests":1,"requests":[{"id":1,"tokens":[[1,-2]]}]}]}`, "want [seed, length]"},
		"bad match":      {`{"router":"kv_aware","tp_size":1,"steps":[{"rank_states":[[0]],"max_num_active_requests":1,"requests":[{"id":1,"match_lens":[[1,5]]}]}]}`, "want [rank under 1, length]"},
		"admission":      {`{"tp_size":2,"max_num_active_requests":1,"steps":[{"num_active_requests":[1],"max_req_count":1}]}`, "want one for each of 2 ranks"},
		"balance":        {`{"tp_size":1,"config":{"max_batch_size":1},"steps":[]}`, "needs"},
		"balance ranks":  {`{"tp_size":1,"config":{"max_batch_size":1,"timeout_iters":1,"batching_wait_iters":1},"steps":[{"ranks":[[1]]}]}`, "want [context"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			bad, err := Run(strings.NewReader(c.line+"\n\n"+oneRank), &out, Options{Parity: true})
			lines := strings.SplitAfter(out.String(), "\n")
			if bad != 1 || err != nil || len(lines) != 3 {
				t.Fatalf("%d malformed, %v: %s", bad, err, out.String())
			}
			first := decodeAny(t, []byte(lines[0]))
			if first["line"].(json.Number) != "1" || first["error"] != "malformed" || !strings.Contains(first["error_message"].(string), c.say) {
				t.Errorf("got %s, want it to say %q", lines[0], c.say)
			}
			if want := `{"n":7,"steps":[{"assignments":[[3]],"expected_num_active_requests":1}]}` + "\n"; lines[1] != want {
				t.Errorf("got %s, want %s", lines[1], want)
			}
		})
	}
}

// TestLineEnds: what editors and other systems put around lines is no part of
// them.
func TestLineEnds(t *testing.T) {
	want := `{"n":7,"steps":[{"assignments":[[3]],"expected_num_active_requests":1}]}` + "\n"
	for name, in := range map[string]string{
		"byte order mark": "\ufeff" + oneRank + "\n", "carriage return": oneRank + "\r\n", "no end": oneRank,
		"blank lines": "\n \r\n" + oneRank + "\n\n", "mark alone": "\ufeff\n" + oneRank,
	} {
		var out strings.Builder
		if bad, err := Run(strings.NewReader(in), &out, Options{}); bad != 0 || err != nil || out.String() != want {
			t.Errorf("%s: %d malformed, %v: %s", name, bad, err, out.String())
		}
	}
	var out strings.Builder
	if bad, err := Run(strings.NewReader(""), &out, Options{}); bad != 0 || err != nil || out.String() != "" {
		t.Errorf("nothing in: %d malformed, %v, %q out", bad, err, out.String())
	}
}

func TestExplainAddsOneRecordPerRequest(t *testing.T) {
	line := `{"router":"kv_aware","tp_size":2,"config":{},"steps":[{"rank_states":[[0,1,400],[1,0,0]],"max_num_active_requests":8,` +
		`"requests":[{"id":9,"tokens":[[1,320]],"match_lens":[[0,256]]},{"id":10,"tokens":[[2,64]]}]}]}`
	var out strings.Builder
	if _, err := Run(strings.NewReader(line), &out, Options{Explain: true, Parity: true}); err != nil {
		t.Fatal(err)
	}
	step := decodeAny(t, []byte(out.String()))["steps"].([]any)[0].(map[string]any)
	records := step["decisions"].([]any)
	if len(records) != 2 {
		t.Fatalf("got %d records: %s", len(records), out.String())
	}
	first := records[0].(map[string]any)
	if first["request"].(json.Number) != "9" || first["phase"] != "scored" || len(first["candidates"].([]any)) != 2 {
		t.Errorf("got %v", first)
	}
}

func TestALongLinePasses(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"router":"default","tp_size":1,"steps":[{"rank_states":[[0,0,0]],"max_num_active_requests":1000000,"requests":[{"id":0}`)
	for i := range 60000 {
		b.WriteString(`,{"id":`)
		b.WriteString(strings.Repeat("1", 1+i%9))
		b.WriteString(`,"tokens":[[12345,100],[99999,200]]}`)
	}
	b.WriteString(`]}]}`)
	var out bytes.Buffer
	if bad, err := Run(strings.NewReader(b.String()), &out, Options{}); bad != 0 || err != nil {
		t.Fatalf("%d malformed, %v: %.200s", bad, err, out.String())
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
func (f failing) Read([]byte) (int, error)  { return 0, f.err }

func TestErrorsOfInputAndOutputAreReturned(t *testing.T) {
	broken := errors.New("broken pipe")
	many := strings.Repeat(oneRank+"\n", 5000)
	if _, err := Run(strings.NewReader(many), failing{broken}, Options{}); !errors.Is(err, broken) {
		t.Errorf("writing: %v", err)
	}
	if _, err := Run(failing{broken}, io.Discard, Options{}); !errors.Is(err, broken) {
		t.Errorf("reading: %v", err)
	}
}

func FuzzRun(f *testing.F) {
	f.Add([]byte(oneRank))
	for _, name := range []string{"adp_routers.jsonl.gz", "adp_admission.jsonl.gz", "adp_balance.jsonl.gz"} {
		n := 0
		for text := range bytes.Lines(vectors(f, name)) {
			if n++; n%300 == 1 && len(text) < 8192 {
				f.Add(bytes.Clone(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, opt := range []Options{{Parity: true}, {Explain: true, MaxCandidates: 2}} {
			var out bytes.Buffer
			if _, err := Run(bytes.NewReader(in), &out, opt); err != nil {
				t.Fatal(err)
			}
			for text := range bytes.Lines(out.Bytes()) {
				if !json.Valid(text) {
					t.Fatalf("not JSON: %s", text)
				}
			}
		}
	})
}
