package router_test

import (
	"fmt"
	"time"

	"adpdeck/router"
	"adpdeck/router/model"
)

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// A router for one worker of four ranks: a conversation is routed, pinned by an
// operator, and routed again.
func Example() {
	settings := model.Settings{AttentionDpConfig: model.DefaultAttentionDpConfig().WithPolicy(model.PolicyConversation)}
	r, err := router.New(router.Config{
		Clock:    wall{},
		Workers:  []model.WorkerSpec{{ID: "w0", Ranks: 4, MaxNumActiveRequests: 16}},
		Settings: settings,
		Record:   true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	turn := func(id int64) {
		d, err := r.Route(&model.Request{ID: id, Conv: model.ConvKey{ID: "conv-8f2c"}, PromptTokens: 640}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Target, "because:", d.Why)
		r.FirstToken(id, model.Usage{Ran: d.Target, CachedTokens: 512, TTFTMs: 61})
		r.Done(id, model.OutcomeOK)
	}
	turn(1)
	reply := r.Apply(model.Command{
		ID: "1", Verb: model.VerbPin, Actor: "bob", Reason: "test",
		Target: &model.Target{Worker: "w0", Rank: 3}, Convs: []model.ConvKey{{ID: "conv-8f2c"}},
	})
	fmt.Printf("v%d: %s\n", reply.Version, reply.What)
	turn(2)
	// Output:
	// w0/0 because: new: round robin
	// v2: pin conv-8f2c to w0/3
	// w0/3 because: operator pin (bob)
}
