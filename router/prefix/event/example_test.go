package event_test

import (
	"fmt"
	"time"

	"adpdeck/router/prefix/event"
)

// A feed hands on what a publisher sends, asks for what is missing, and says
// what is wrong.
func ExampleFeed() {
	feed, err := event.NewFeed(event.Config{Replay: true, BlockTokens: 2}, func(b *event.Batch) {
		for _, e := range b.Events {
			fmt.Println(e.Kind, e.Hashes, "on rank", e.Rank)
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var batches [][]byte
	for i := range 3 {
		var c event.Encoder // as an engine does
		batches = append(batches, c.AppendBatch(nil, float64(i), 3, []event.Event{{
			Kind: event.Stored, Group: event.NoGroup, Hashes: []event.Hash{event.Hash(7 + i)}, Tokens: []uint32{1, 2}, BlockTokens: 2,
		}}))
	}
	now := time.Unix(0, 0)
	feed.Live(now, 1, 0, batches[0])
	feed.Live(now, 1, 2, batches[2]) // 1 is missing
	fmt.Println(feed.State(now), "in doubt:", feed.InDoubt())
	if from, ok := feed.Want(now); ok {
		fmt.Println("replay from", from)
		feed.Replayed(now, 1, batches[1])
		feed.ReplayEnded(now)
	}
	fmt.Println(feed.State(now), "in doubt:", feed.InDoubt())
	// Output:
	// stored [7] on rank 3
	// gap in doubt: true
	// replay from 1
	// stored [8] on rank 3
	// stored [9] on rank 3
	// live in doubt: false
}
