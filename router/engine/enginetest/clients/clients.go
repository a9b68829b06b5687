// Package clients is made-up traffic for a gateway: people and agents who hold
// conversations over the OpenAI API, for adpdeck dev cluster and for tests. Each
// sends its whole conversation every turn, as real clients do, reads the streamed
// answer to its end, thinks, and goes on; after some turns it begins another.
//
// It measures nothing: what happened is the gateway's and the engines' to tell.
package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how many clients there are and what they do; zero fields take the
// defaults named.
type Options struct {
	// URL is the gateway's base address.
	URL string
	// Model is asked for in every request.
	Model string
	// Clients hold a conversation each, at the same time (16).
	Clients int
	// Turns is how many turns a conversation has at most (12), Think the mean
	// time between two (1 s).
	Turns int
	Think time.Duration
	// SystemWords and TurnWords are the lengths of the system prompt, which a
	// fourth of the clients share, and of a turn (400, 60); MaxTokens that of an
	// answer (64).
	SystemWords, TurnWords, MaxTokens int
	// Seed makes the same words again.
	Seed uint64
	// HTTP carries the requests (http.DefaultClient).
	HTTP *http.Client
}

func (o *Options) defaults() {
	for p, v := range map[*int]int{&o.Clients: 16, &o.Turns: 12, &o.SystemWords: 400, &o.TurnWords: 60, &o.MaxTokens: 64} {
		if *p == 0 {
			*p = v
		}
	}
	if o.Think == 0 {
		o.Think = time.Second
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
}

// Figures count what came of the requests.
type Figures struct {
	Sent, OK, Failed uint64
	// LastError is the newest failure in one line, empty before one.
	LastError string
}

// Crowd is a number of clients.
type Crowd struct {
	o                Options
	sent, ok, failed atomic.Uint64
	last             atomic.Pointer[string]
}

// New returns clients that do nothing before Run.
func New(o Options) (*Crowd, error) {
	o.defaults()
	if o.URL == "" || o.Model == "" {
		return nil, errors.New("clients: they need the gateway's URL and a model")
	}
	return &Crowd{o: o}, nil
}

// Figures may be called at any time.
func (c *Crowd) Figures() Figures {
	f := Figures{Sent: c.sent.Load(), OK: c.ok.Load(), Failed: c.failed.Load()}
	if p := c.last.Load(); p != nil {
		f.LastError = *p
	}
	return f
}

// Run lets the clients talk until ctx ends, and returns when the last has gone.
func (c *Crowd) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range c.o.Clients {
		wg.Go(func() { c.client(ctx, i) })
	}
	wg.Wait()
}

// client holds one conversation after another. Its first words come at a random
// moment, so that not all begin at once.
func (c *Crowd) client(ctx context.Context, n int) {
	r := rand.New(rand.NewPCG(c.o.Seed, uint64(n)))
	if !wait(ctx, time.Duration(r.Float64()*float64(c.o.Think))) {
		return
	}
	for k := 0; ctx.Err() == nil; k++ {
		c.converse(ctx, r, n, k)
	}
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type request struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
}

func (c *Crowd) converse(ctx context.Context, r *rand.Rand, n, k int) {
	id := fmt.Sprintf("run-%d/agent-%d", n/4, n%4*1000+k)
	system := rand.New(rand.NewPCG(c.o.Seed, uint64(n/4))) // four clients share it
	talk := []message{{"system", words(system, c.o.SystemWords)}}
	for range 1 + r.IntN(c.o.Turns) {
		talk = append(talk, message{"user", words(r, 1+r.IntN(2*c.o.TurnWords))})
		answer, err := c.turn(ctx, id, talk, 1+r.IntN(2*c.o.MaxTokens))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.fail(err)
			talk = talk[:len(talk)-1]
		} else {
			c.ok.Add(1)
			talk = append(talk, message{"assistant", answer})
		}
		if !wait(ctx, time.Duration(r.ExpFloat64()*float64(c.o.Think))) {
			return
		}
	}
}

func (c *Crowd) fail(err error) {
	text := err.Error()
	c.last.Store(&text)
	c.failed.Add(1)
}

// maxAnswer bounds what is read of one answer, in bytes.
const maxAnswer = 4 << 20

// turn sends the conversation and reads the streamed answer to its end.
func (c *Crowd) turn(ctx context.Context, id string, talk []message, tokens int) (string, error) {
	body, err := json.Marshal(request{c.o.Model, talk, tokens, true})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.o.URL, "/")+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-ID", id)
	c.sent.Add(1)
	res, err := c.o.HTTP.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close() //nolint:errcheck // it was read to the end or failed
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 512))
		return "", fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(text))
	}
	return read(io.LimitReader(res.Body, maxAnswer))
}

// read collects the words of a stream.
func read(r io.Reader) (string, error) {
	var answer strings.Builder
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		switch data = strings.TrimSpace(data); {
		case !ok:
			continue
		case data == "[DONE]":
			return answer.String(), nil
		}
		var chunk struct {
			Choices []struct {
				Delta message `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return "", fmt.Errorf("a chunk that is not JSON: %w", err)
		}
		for _, choice := range chunk.Choices {
			answer.WriteString(choice.Delta.Content)
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "", io.ErrUnexpectedEOF
}

// wait returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func words(r *rand.Rand, n int) string {
	list := strings.Fields("the rank that holds this prefix answers first because its cache is warm and no other rank has to prefill again " +
		"when a conversation moves its blocks stay behind so the next turn pays for every token once more we count them before we choose")
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(list[r.IntN(len(list))])
	}
	return b.String()
}
