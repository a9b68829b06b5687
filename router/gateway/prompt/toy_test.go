package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"regexp"
	"strings"
	"sync"
	"time"

	"adpdeck/router/model"
)

// toy is a tokeniser with merges and a chat template.
type toy struct {
	// cross lets merges run over line ends, think takes the thoughts out of all
	// answers but the last, strict refuses a chat that begins with an answer.
	cross, think, refuses bool
	delay                 chan struct{} // a call waits for it, nil: none does

	mu    sync.Mutex
	calls int
	bytes int // of the texts that were tokenised
}

var errToy = errors.New("toy: no")

type toyBody struct {
	Prompt   string `json:"prompt"`
	Special  *bool  `json:"add_special_tokens"`
	Ask      *bool  `json:"add_generation_prompt"`
	Tools    []any  `json:"tools"`
	Messages []struct{ Role, Content string }
}

func (y *toy) tokenize(ctx context.Context, _ string, route model.Route, body []byte) ([]uint32, error) {
	if y.delay != nil {
		select {
		case <-y.delay:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	var b toyBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, err
	}
	if y.refuses {
		return nil, errToy
	}
	text := b.Prompt
	if route == model.RouteChat {
		text = y.render(&b)
	}
	y.mu.Lock()
	y.calls++
	y.bytes += len(text)
	y.mu.Unlock()
	var ids []uint32
	if b.Special == nil || *b.Special {
		ids = append(ids, 1)
	}
	return y.encode(ids, text), nil
}

func (y *toy) render(b *toyBody) string {
	var out strings.Builder
	if len(b.Tools) > 0 {
		out.WriteString("<|tools|>\n")
	}
	for i, m := range b.Messages {
		content := m.Content
		if y.think && m.Role == "assistant" && i < len(b.Messages)-2 {
			content = strings.ReplaceAll(content, "o", "")
		}
		out.WriteString("<|" + m.Role + "|>\n" + content + "<|end|>\n")
	}
	if b.Ask == nil || *b.Ask {
		out.WriteString("<|assistant|>\n")
	}
	return out.String()
}

var (
	special = regexp.MustCompile(`<\|[a-z]+\|>`)
	words   = regexp.MustCompile(`[A-Za-z]+|\n+|[^A-Za-z\n]+`)
)

// encode splits at special tokens, then into words, and merges inside a word: the
// longest of its known parts first.
func (y *toy) encode(ids []uint32, text string) []uint32 {
	for text != "" {
		at := special.FindStringIndex(text)
		if at == nil {
			at = []int{len(text), len(text)}
		}
		plain := text[:at[0]]
		if y.cross {
			ids = merge(ids, plain)
		} else {
			for _, w := range words.FindAllString(plain, -1) {
				ids = merge(ids, w)
			}
		}
		if at[1] > at[0] {
			ids = append(ids, id(text[at[0]:at[1]]))
		}
		text = text[at[1]:]
	}
	return ids
}

// merge takes pieces of up to five bytes whose sum allows it, else single bytes,
// so that how a text divides depends on what follows.
func merge(ids []uint32, w string) []uint32 {
	for len(w) > 0 {
		n := min(5, len(w))
		for n > 1 && id(w[:n])%3 != 0 {
			n--
		}
		ids = append(ids, id(w[:n]))
		w = w[n:]
	}
	return ids
}

func id(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32() & 0x7ffffff
}

type stoppedClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *stoppedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stoppedClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
