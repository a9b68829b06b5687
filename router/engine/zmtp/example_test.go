package zmtp_test

import (
	"context"
	"fmt"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/engine/zmtp"
)

func ExampleSubscriber() {
	rank, err := zmq.Listen(zmq.Options{Topic: "kv@pod"}) // stands for an engine's rank
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rank.Close()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := zmtp.NewSubscriber(zmtp.SubscriberOptions{
		Endpoint: rank.Endpoint(),
		Topics:   []string{"kv@"},
		HandleBatch: func(b zmtp.Batch) {
			fmt.Printf("connection %d, batch %d: %s\n", b.Conn, b.Seq, b.Payload)
			if b.Seq == 1 {
				cancel()
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		if rank.WaitSubscribers(ctx, 1) == nil {
			rank.Publish([]byte("stored"))
			rank.Publish([]byte("removed"))
		}
	}()
	s.Run(ctx)
	// Output:
	// connection 1, batch 0: stored
	// connection 1, batch 1: removed
}

func ExampleReplay() {
	rank, err := zmq.Listen(zmq.Options{Replay: "tcp://127.0.0.1:0", Buffer: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rank.Close()
	for i := range 5 {
		rank.Publish(fmt.Appendf(nil, "batch %d", i))
	}
	got, err := zmtp.Replay(context.Background(), rank.ReplayEndpoint(), 1, func(seq uint64, payload []byte) error {
		fmt.Printf("%d: %s\n", seq, payload)
		return nil
	})
	fmt.Println(got.Count, "batches")
	fmt.Println(err != nil) // an *EvictedError: 1 and 2 are gone
	// Output:
	// 3: batch 3
	// 4: batch 4
	// 2 batches
	// true
}
