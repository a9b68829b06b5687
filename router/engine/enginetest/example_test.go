package enginetest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// A vLLM of four ranks, asked for one of them.
func Example() {
	e, err := enginetest.New(enginetest.Config{Kind: model.EngineVLLM, Ranks: 4, Timing: enginetest.Timing{Instant: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	if err := e.Start(context.Background(), "127.0.0.1:0"); err != nil {
		fmt.Println(err)
		return
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	body := `{"model": "fake-model", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}`
	req, _ := http.NewRequest(http.MethodPost, e.URL(model.NoRank)+"/v1/chat/completions", strings.NewReader(body))
	req.Header.Set("X-data-parallel-rank", "2")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	fmt.Println(resp.Status)
	s := e.Served()[0]
	fmt.Printf("asked for rank %d by %s, ran on %d\n", s.Asked, s.By, s.Ran)
	// Output:
	// 200 OK
	// asked for rank 2 by header, ran on 2
}
