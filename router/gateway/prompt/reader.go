package prompt

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// How says how a prompt's blocks are known.
type How string

// The ways, best first.
const (
	Tokens     How = "tokens"     // the client sent tokens
	Tokenized  How = "tokenized"  // the engine tokenised all of it
	Tail       How = "tail"       // the engine tokenised what is new of it
	Remembered How = "remembered" // only what the conversation sent before
	Text       How = "text"       // hashed as text: a guess
	Unhashed   How = "none"       // not at all
)

// Modes of GatewaySpec.Tokenize.
const (
	ModeEngine = "engine"
	ModeText   = "text"
	ModeNone   = "none"
)

// Options are what a Reader is made from.
type Options struct {
	// Mode is engine, text or none; empty means text.
	Mode string
	// BlockTokens returns the engines' block size, 0 while it is not known: nothing
	// is hashed then.
	BlockTokens func() int
	// Tokenize asks an engine that serves the model for the tokens of a request
	// body, in the form of the route. It returns ErrBusy and ErrRefused, wrapped,
	// for what says nothing against the tokeniser.
	Tokenize func(ctx context.Context, model string, route model.Route, body []byte) ([]uint32, error)
	Clock    interface{ Now() time.Time }
	// Wait is how long a request waits for a tokeniser (default 30 ms), Limit how
	// long a call may take (default 5 s), AtOnce how many run (default 8).
	Wait, Limit time.Duration
	AtOnce      int
	// MaxBytes and MaxConversations bound the memory (default 256 MiB, 65,536).
	MaxBytes         int64
	MaxConversations int
}

// Source is a request whose prompt is read.
type Source struct {
	Route model.Route
	Doc   *body.Doc
	Conv  model.ConvKey
	// LoRA is the adapter as the engine's events name it, "" for the base model.
	LoRA string
}

// Prompt is what the router needs to know of a prompt.
type Prompt struct {
	How    How
	Tokens int // in all, a guess unless the tokens are known
	// Children are further sequences beside the first.
	Children    int
	Locals      []uint64
	BlockTokens int
	Lead        []int32
	Salt        string
	Guessed     bool // Locals are of text
	// Known are the blocks that did not have to be hashed.
	Known int
}

// Fill writes the prompt into a request.
func (p *Prompt) Fill(req *model.Request) {
	req.PromptTokens, req.Children, req.Salt = p.Tokens, p.Children, p.Salt
	req.Locals, req.BlockTokens, req.Lead, req.Guessed = p.Locals, p.BlockTokens, p.Lead, p.Guessed
}

// MaxBlocks bounds the blocks of a prompt that are hashed.
const MaxBlocks = 1 << 17

// maxChildren bounds the sequences that are believed of one request.
const maxChildren = 1 << 16

// textSeed keeps hashes of text apart from those of tokens.
const textSeed = 0x7e87

// Reader reads prompts. Any number of goroutines may use it.
type Reader struct {
	opt    Options
	memory *memory
	slots  chan struct{} // one for each call at once
	models models

	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex // guards closed against calls that begin
	closed bool
	calls  sync.WaitGroup
}

// New makes a reader. Close it to end its calls.
func New(o Options) *Reader {
	orTime(&o.Wait, 30*time.Millisecond)
	orTime(&o.Limit, 5*time.Second)
	if o.AtOnce <= 0 {
		o.AtOnce = 8
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 256 << 20
	}
	if o.MaxConversations <= 0 {
		o.MaxConversations = model.MaxConvs
	}
	r := &Reader{opt: o, memory: newMemory(o.MaxBytes, o.MaxConversations), slots: make(chan struct{}, o.AtOnce)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

func orTime(d *time.Duration, standard time.Duration) {
	if *d <= 0 {
		*d = standard
	}
}

// Close ends the calls to tokenisers and waits until they are gone.
func (r *Reader) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.calls.Wait()
}

// Stats returns how many conversations are remembered, in how many bytes.
func (r *Reader) Stats() (conversations int, bytes int64) { return r.memory.stats() }

// Read reads the prompt of a request. It waits for a tokeniser no longer than
// Options.Wait, nor longer than ctx.
func (r *Reader) Read(ctx context.Context, s Source) Prompt {
	salt := saltOf(s.Doc)
	if s.Route == model.RouteResponses && r.opt.Mode == ModeEngine {
		if chat, ok := asChat(s.Doc); ok {
			s.Route, s.Doc = model.RouteChat, chat
		}
	}
	f := formOf(s.Route, s.Doc)
	p := Prompt{How: Unhashed, Salt: salt, Children: children(s.Doc, f.more)}
	p.Tokens = max(len(f.ids), guess(len(f.text))) + f.moreTokens
	h, err := prefix.NewHasher(r.block(), prefix.Seed(s.LoRA, p.Salt))
	if err != nil || s.Route == model.RouteEmbeddings || f.truncated {
		return p // the block size is not known, nothing is cached by blocks, or not what was sent
	}
	j := job{r: r, source: s, form: f, hasher: h, more: f.moreTokens}
	switch {
	case len(f.ids) > 0:
		p.How = Tokens
		j.fill(&p, f.ids, head{})
	case len(f.text) == 0:
	case r.opt.Mode == ModeEngine && !f.beyond && (f.plain || len(f.messages) > 0) && j.engine(ctx, &p):
	default:
		j.guess(&p)
	}
	return p
}

// guess hashes the text itself. Texts have a memory of their own, beside what a
// tokeniser said of the same conversation.
func (j *job) guess(p *Prompt) {
	p.How, p.Guessed = Text, true
	j.hasher = j.hasher.WithSeed(prefix.Seed(j.source.LoRA, p.Salt) + textSeed)
	if !j.source.Conv.Keyless() {
		j.source.Conv.Tenant += "\x00text"
	}
	text := j.form.text
	j.fill(p, pseudo(make([]uint32, 0, guess(len(text))), text), head{})
	p.Lead = nil
}

// ReadRaw reads a prompt that is given outside a body, as tokens or else as text,
// which is not tokenised.
func (r *Reader) ReadRaw(conv model.ConvKey, ids []uint32, text, lora, salt string) Prompt {
	p := Prompt{How: Unhashed, Salt: salt, Tokens: max(len(ids), guess(len(text)))}
	h, err := prefix.NewHasher(r.block(), prefix.Seed(lora, salt))
	if err != nil || p.Tokens == 0 {
		return p
	}
	j := job{r: r, source: Source{Conv: conv, LoRA: lora}, form: form{ids: ids, text: []byte(text)}, hasher: h}
	if p.How = Tokens; len(ids) > 0 {
		j.fill(&p, ids, head{})
	} else {
		j.guess(&p)
	}
	return p
}

// block is the block size, 0 where nothing is hashed.
func (r *Reader) block() int {
	if r.opt.BlockTokens == nil || r.opt.Mode == ModeNone {
		return 0
	}
	return r.opt.BlockTokens()
}

// job is the reading of one prompt.
type job struct {
	r      *Reader
	source Source
	form   form
	hasher prefix.Hasher
	more   int // tokens of further prompts
}

// fill hashes the tokens into p.
func (j *job) fill(p *Prompt, tokens []uint32, hd head) {
	p.Tokens = len(tokens) + j.more
	if most := MaxBlocks * j.hasher.BlockTokens(); len(tokens) > most {
		tokens, hd = tokens[:most], head{}
	}
	p.Locals, p.Known = j.r.memory.locals(j.source.Conv, j.hasher, tokens, hd)
	p.BlockTokens = j.hasher.BlockTokens()
	const lead = 64 // as many as the engine tier looks at
	for _, id := range tokens[:min(lead, len(tokens))] {
		p.Lead = append(p.Lead, int32(id))
	}
}

// saltOf is the cache salt of a request. It holds nothing of the body.
func saltOf(d *body.Doc) string {
	if v := d.Get("cache_salt"); v.Type == gjson.String {
		return strings.Clone(v.Str)
	}
	if v := d.Get("nvext"); v.IsObject() {
		if v = v.Get("cache_salt"); v.Type == gjson.String {
			return strings.Clone(v.Str)
		}
	}
	return ""
}

// children counts the sequences beside the first: n for each prompt.
func children(d *body.Doc, more int) int {
	n := 1
	if v := d.Get("n"); v.Type == gjson.Number && v.Num >= 1 && v.Num <= maxChildren {
		n = int(v.Num)
	}
	return min(n*(more+1)-1, maxChildren)
}
