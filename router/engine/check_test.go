package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"adpdeck/router/model"
)

func vllmSpec(id, url string) model.EngineSpec {
	return model.EngineSpec{ID: id, Kind: model.EngineVLLM, URL: url, Ranks: 2}
}

func TestCheckAcceptsWhatEnginesOffer(t *testing.T) {
	t.Parallel()
	good := map[string][]model.EngineSpec{
		"hybrid nodes": {
			{ID: "n0", Group: "d", Kind: model.EngineVLLM, URL: "http://a:8000", Ranks: 2, Events: model.EventSource{Endpoint: "tcp://a:5557", Replay: "tcp://a:5657"}},
			{ID: "n1", Group: "d", Kind: model.EngineVLLM, URL: "http://b:8000", StartRank: 2, Ranks: 2, Events: model.EventSource{Endpoint: "tcp://b:5557", Replay: "tcp://b:5657"}},
		},
		"a port for each rank": {{ID: "w", Kind: model.EngineVLLM, RankURLs: []string{"http://a:8000", "http://a:8001"}}},
		"sglang asks for all":  {{ID: "w", Kind: model.EngineSGLang, URL: "http://a:30000/behind/a/proxy"}},
		"trtllm":               {{ID: "w", Kind: model.EngineTRTLLM, URL: "https://a", Ranks: 8, Events: model.EventSource{Transport: "http"}}},
		"dynamo behind one": {
			{ID: "w0", Kind: model.EngineDynamo, URL: "http://f:8000", InstanceID: 1 << 63, Events: model.EventSource{Endpoint: "nats://n:4222", Topic: "namespace.dynamo.component.backend.kv-events"}},
			{ID: "w1", Kind: model.EngineDynamo, URL: "http://f:8000/", InstanceID: 1<<63 + 1, Events: model.EventSource{Endpoint: "tcp://b:7001"}},
		},
		"events on other hosts": {{ID: "w", Kind: model.EngineVLLM, URL: "http://a:8000", Ranks: 2, Events: model.EventSource{RankEndpoints: []string{"tcp://a:5557", "tcp://b:5557"}}}},
	}
	for name, workers := range good {
		if err := Check(workers); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	change := func(f func(w *model.EngineSpec)) []model.EngineSpec {
		w := vllmSpec("w0", "http://a:8000")
		f(&w)
		return []model.EngineSpec{w}
	}
	group := func(parts ...[2]int) []model.EngineSpec {
		var all []model.EngineSpec
		for i, p := range parts {
			all = append(all, model.EngineSpec{ID: fmt.Sprintf("n%d", i), Group: "d", Kind: model.EngineVLLM, URL: fmt.Sprintf("http://a:%d", 8000+i), StartRank: p[0], Ranks: p[1]})
		}
		return all
	}
	events := func(e model.EventSource) []model.EngineSpec {
		return change(func(w *model.EngineSpec) { w.Events = e })
	}
	tests := map[string]struct {
		workers []model.EngineSpec
		field   string
		words   string
	}{
		"none":              {nil, "", "no workers are named"},
		"no id":             {change(func(w *model.EngineSpec) { w.ID = " " }), "ID", "no id"},
		"id with a slash":   {change(func(w *model.EngineSpec) { w.ID = "a/b" }), "ID", "WORKER/RANK"},
		"same id":           {[]model.EngineSpec{vllmSpec("w", "http://a:1"), vllmSpec("w", "http://a:2")}, "ID", "same id"},
		"kind":              {change(func(w *model.EngineSpec) { w.Kind = "tgi" }), "Kind", "use vllm, sglang, trtllm or dynamo"},
		"negative ranks":    {change(func(w *model.EngineSpec) { w.Ranks = -1 }), "Ranks", "1 to 1024"},
		"first rank":        {change(func(w *model.EngineSpec) { w.StartRank = -1 }), "StartRank", "from 0"},
		"alone with a hole": {change(func(w *model.EngineSpec) { w.StartRank = 2 }), "StartRank", "nobody has ranks 0 to 1"},
		"hole":              {group([2]int{0, 2}, [2]int{3, 2}), "StartRank", "nobody has rank 2 of group \"d\""},
		"overlap":           {group([2]int{0, 4}, [2]int{3, 2}), "StartRank", "its ranks 3 to 4 overlap those of worker \"n0\""},
		"same start":        {group([2]int{0, 2}, [2]int{0, 2}), "StartRank", "overlap"},
		"unknown in group":  {group([2]int{0, 2}, [2]int{2, 0}), "Ranks", "set ranks on each worker"},
		"no address":        {change(func(w *model.EngineSpec) { w.URL = "" }), "URL", "no address"},
		"two addresses":     {change(func(w *model.EngineSpec) { w.RankURLs = []string{"http://a:1", "http://a:2"} }), "RankURLs", "keep the one"},
		"no scheme":         {change(func(w *model.EngineSpec) { w.URL = "a:8000" }), "URL", "http://HOST:PORT"},
		"v1":                {change(func(w *model.EngineSpec) { w.URL = "http://a:8000/v1/" }), "URL", "leave that off"},
		"password":          {change(func(w *model.EngineSpec) { w.URL = "http://u:p@a:8000" }), "URL", "api_key_env"},
		"port 0":            {change(func(w *model.EngineSpec) { w.URL = "http://a:70000" }), "URL", "1 to 65535"},
		"query":             {change(func(w *model.EngineSpec) { w.URL = "http://a:8000?x=1" }), "URL", "goes on after its path"},
		"count of ports":    {change(func(w *model.EngineSpec) { w.URL, w.RankURLs = "", []string{"http://a:1"} }), "Ranks", "2 ranks and 1 addresses"},
		"equal ports":       {change(func(w *model.EngineSpec) { w.URL, w.RankURLs = "", []string{"http://a:80", "http://A/"} }), "RankURLs", "ranks 0 and 1 have the same address"},
		"same engine":       {[]model.EngineSpec{vllmSpec("w0", "http://a:80"), vllmSpec("w1", "http://A")}, "URL", "address http://A of worker \"w0\""},
		"metrics":           {change(func(w *model.EngineSpec) { w.MetricsURL = "a:9000" }), "MetricsURL", "http://HOST:PORT/metrics"},
		"body for vllm":     {change(func(w *model.EngineSpec) { w.Steering = model.SteerBody }), "Steering", "from the header only"},
		"header for trtllm": {change(func(w *model.EngineSpec) { w.Kind, w.Steering = model.EngineTRTLLM, model.SteerHeader }), "Steering", "reads no rank"},
		"ports of trtllm": {change(func(w *model.EngineSpec) {
			w.Kind, w.URL, w.RankURLs = model.EngineTRTLLM, "", []string{"http://a:1", "http://a:2"}
		}), "RankURLs", "workers of their own"},
		"conversation": {change(func(w *model.EngineSpec) { w.Steering = model.SteerConversation }), "Steering", "keeps no conversation"},
		"no such way":  {change(func(w *model.EngineSpec) { w.Steering = "cookie" }), "Steering", "no such way"},
		"port of one":  {change(func(w *model.EngineSpec) { w.Steering = model.SteerPort }), "Steering", "address of each rank"},
		"header to ports": {change(func(w *model.EngineSpec) {
			w.URL, w.RankURLs, w.Steering = "", []string{"http://a:1", "http://a:2"}, model.SteerHeader
		}), "Steering", "leave steer out"},
		"numbers":         {change(func(w *model.EngineSpec) { w.RankNumbers = "odd" }), "RankNumbers", "global or local"},
		"numbers of none": {change(func(w *model.EngineSpec) { w.RankNumbers, w.Steering = model.NumbersLocal, model.SteerNone }), "RankNumbers", "mean nothing"},
		"instance":        {change(func(w *model.EngineSpec) { w.InstanceID = 7 }), "InstanceID", "leave it out"},
		"frontend twice": {[]model.EngineSpec{
			{ID: "a", Kind: model.EngineDynamo, URL: "http://f:1", InstanceID: 7},
			{ID: "b", Kind: model.EngineDynamo, URL: "http://f:1", InstanceID: 7},
		}, "InstanceID", "same instance"},
		"frontend without ids": {[]model.EngineSpec{
			{ID: "a", Kind: model.EngineDynamo, URL: "http://f:1", InstanceID: 7},
			{ID: "b", Kind: model.EngineDynamo, URL: "http://f:1"},
		}, "InstanceID", "set the id"},
		"mixed group": {[]model.EngineSpec{
			{ID: "a", Group: "d", Kind: model.EngineVLLM, URL: "http://a:1", Ranks: 1},
			{ID: "b", Group: "d", Kind: model.EngineSGLang, URL: "http://a:2", StartRank: 1, Ranks: 1},
		}, "Group", "one kind"},
		"capacity":          {change(func(w *model.EngineSpec) { w.BlockTokens = -16 }), "BlockTokens", "from 1"},
		"models":            {change(func(w *model.EngineSpec) { w.Models = []string{"m", "m"} }), "Models", "once"},
		"the key itself":    {change(func(w *model.EngineSpec) { w.APIKeyEnv = "sk-123" }), "APIKeyEnv", "never the key itself"},
		"transport":         {events(model.EventSource{Transport: "kafka"}), "Events", "zmq, http, nats or none"},
		"zmq without":       {events(model.EventSource{Transport: "zmq"}), "Events", "tcp://HOST:PORT of rank 0"},
		"both endpoints":    {events(model.EventSource{Endpoint: "tcp://a:1", RankEndpoints: []string{"tcp://a:1", "tcp://a:2"}}), "Events", "keep one"},
		"endpoint count":    {events(model.EventSource{RankEndpoints: []string{"tcp://a:1"}}), "Events", "2 ranks and 1 endpoints"},
		"endpoint scheme":   {events(model.EventSource{Endpoint: "http://a:1"}), "Events", "use tcp://HOST:PORT"},
		"endpoint listens":  {events(model.EventSource{Endpoint: "tcp://*:5557"}), "Events", "name the engine's host"},
		"endpoint overflow": {events(model.EventSource{Endpoint: "tcp://a:65535"}), "Events", "counts up to port 65536"},
		"replay alone":      {events(model.EventSource{Transport: "zmq", Replay: "tcp://a:1"}), "Events", "names no endpoint"},
		"replay in the way": {events(model.EventSource{Endpoint: "tcp://a:5557", Replay: "tcp://a:5558"}), "Events", "port of the replay of w0/0 and of the kv events of w0/1"},
		"http of vllm":      {events(model.EventSource{Transport: "http"}), "Events", "TensorRT-LLM's"},
		"nats of vllm":      {events(model.EventSource{Transport: "nats"}), "Events", "Dynamo's"},
		"none with some":    {events(model.EventSource{Transport: "none", Endpoint: "tcp://a:1"}), "Events", "not to be read"},
		"nats subject": {
			[]model.EngineSpec{{ID: "d", Kind: model.EngineDynamo, URL: "http://f:1", Events: model.EventSource{Endpoint: "nats://n"}}},
			"Events", "set topic",
		},
		"nats address": {
			[]model.EngineSpec{{ID: "d", Kind: model.EngineDynamo, URL: "http://f:1", Events: model.EventSource{Transport: "nats", Endpoint: "n:4222", Topic: "t"}}},
			"Events", "nats://HOST:4222",
		},
		"dynamo replay": {
			[]model.EngineSpec{{ID: "d", Kind: model.EngineDynamo, URL: "http://f:1", Events: model.EventSource{Endpoint: "tcp://n:1", Replay: "tcp://n:2"}}},
			"Events", "replays nothing",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Check(tc.workers)
			var said *SpecError
			if !errors.As(err, &said) {
				t.Fatalf("got %v", err)
			}
			if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 1 {
				t.Errorf("more than one sentence: %v", err)
			}
			if said.Field != tc.field || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("of %q: %v; want %q of %q", said.Field, err, tc.words, tc.field)
			}
			if said.Next == "" || strings.ContainsRune(err.Error(), '\n') {
				t.Errorf("not one sentence with a next step: %v", err)
			}
		})
	}
}

// TestCheckAcceptsExactlyTheLayoutsWithoutHolesAndOverlaps is report A3.
func TestCheckAcceptsExactlyTheLayoutsWithoutHolesAndOverlaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "workers")
		var workers []model.EngineSpec
		start := 0
		for i := range n {
			ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
			workers = append(workers, model.EngineSpec{
				ID: fmt.Sprintf("w%d", i), Group: "d", Kind: model.EngineVLLM, URL: fmt.Sprintf("http://a:%d", 8000+i), StartRank: start, Ranks: ranks,
			})
			start += ranks
		}
		for range rapid.IntRange(0, 2).Draw(t, "shifts") {
			w := &workers[rapid.IntRange(0, n-1).Draw(t, "which")]
			w.StartRank = max(w.StartRank+rapid.IntRange(-2, 2).Draw(t, "by"), 0)
		}
		workers = rapid.Permutation(workers).Draw(t, "order")

		owners := map[int]int{}
		top := 0
		for i := range workers {
			for r := range workers[i].Ranks {
				owners[workers[i].StartRank+r]++
				top = max(top, workers[i].StartRank+r)
			}
		}
		whole := len(owners) == top+1
		for _, o := range owners {
			whole = whole && o == 1
		}
		if err := Check(workers); (err == nil) != whole {
			t.Fatalf("%v of %+v", err, workers)
		}
	})
}

func TestEndpointsCountUpFromTheBaseOfTheGroup(t *testing.T) {
	t.Parallel()
	w := model.EngineSpec{Kind: model.EngineVLLM, StartRank: 2, Ranks: 2, Events: model.EventSource{Endpoint: "tcp://[::1]:5557", RankReplays: []string{"tcp://x:1", "tcp://y:1"}}}
	live, replay := Endpoints(&w)
	if fmt.Sprint(live, replay) != "[tcp://[::1]:5559 tcp://[::1]:5560] [tcp://x:1 tcp://y:1]" {
		t.Error(live, replay)
	}
}
