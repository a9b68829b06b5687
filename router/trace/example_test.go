package trace_test

import (
	"fmt"
	"strings"

	"adpdeck/router/trace"
)

// A file is recognised by its content; rows that cannot be used are named, and
// Mooncake's are linked into conversations by their blocks.
func ExampleRead() {
	file := `{"timestamp": 0, "input_length": 1600, "output_length": 2, "hash_ids": [0, 1, 2, 3]}
{"timestamp": 1000, "input_length": 600, "output_length": 2, "hash_ids": [0]}
{"timestamp": 2000, "input_length": 2100, "output_length": 2, "hash_ids": [0, 1, 2, 4, 5]}
`
	t, err := trace.Read(strings.NewReader(file), "example.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Format, len(t.Rows), "rows,", t.Conversations, "conversation,", t.Bad.String())
	for _, r := range t.Rows {
		fmt.Println(r.At, r.Conv.ID == t.Rows[0].Conv.ID, "turn", r.Turn)
	}
	// Output:
	// mooncake 2 rows, 1 conversation, 1 bad row was left out: line 2: input_length 600 needs 2 hash_ids of 512 tokens, not 1
	// 0s true turn 1
	// 2s true turn 2
}

// Measure tells how generated traffic compares with a trace.
func ExampleMeasure() {
	g, err := trace.NewGenerator(trace.DefaultGenerator())
	if err != nil {
		fmt.Println(err)
		return
	}
	rows := make([]trace.Row, 20_000)
	for i := range rows {
		g.Next(&rows[i])
	}
	m := trace.Measure(rows)
	fmt.Printf("about half of the requests belong to multi-turn conversations: %v\n", m.MultiTurnShare() > .45 && m.MultiTurnShare() < .55)
	// Output:
	// about half of the requests belong to multi-turn conversations: true
}
