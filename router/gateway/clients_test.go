package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"adpdeck/router/model"
)

// TestOpenAIClient talks to the gateway as applications do.
func TestOpenAIClient(t *testing.T) {
	g := newRig(t, rigOptions{spec: model.GatewaySpec{TenantFromKey: true, DecisionHeaders: true}})
	client := openai.NewClient(option.WithBaseURL(g.server.URL+"/v1"), option.WithAPIKey("sk-1"), option.WithHTTPClient(g.client), option.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}}

	whole, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil || whole.Choices[0].Message.Content != "hi" || whole.Usage.PromptTokensDetails.CachedTokens != 16 {
		t.Fatalf("%+v, %v", whole, err)
	}

	text := ""
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	for stream.Next() {
		c := stream.Current()
		if len(c.Choices) == 0 {
			t.Error("a chunk without choices was not taken out")
			continue
		}
		text += c.Choices[0].Delta.Content
	}
	if stream.Err() != nil || text != "t0t1t2" {
		t.Errorf("%q, %v", text, stream.Err())
	}

	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	used := int64(0)
	stream = client.Chat.Completions.NewStreaming(t.Context(), params)
	for stream.Next() {
		used += stream.Current().Usage.PromptTokens
	}
	if stream.Err() != nil || used != 40 {
		t.Errorf("%d tokens used, %v", used, stream.Err())
	}

	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "m" {
		t.Errorf("%+v, %v", models, err)
	}

	_, err = client.Chat.Completions.New(t.Context(), params, option.WithHeader("X-Adpdeck-Worker", "w9"))
	var said *openai.Error
	if !errors.As(err, &said) || said.StatusCode != 400 || said.Code != "no_such_worker" || !strings.Contains(said.Message, "choose one of") {
		t.Errorf("%v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	stream = client.Chat.Completions.NewStreaming(ctx, params, option.WithJSONSet("behave", "stuck"))
	if !stream.Next() {
		t.Errorf("no first chunk: %v", stream.Err())
	}
	cancel()
	_ = stream.Close()
	until(t, "the books are empty", func() bool { return g.inFlight() == 0 })
	c := g.router.Snapshot().Totals
	if c.Keyless == 0 {
		t.Errorf("%+v", c)
	}
}
