package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"adpdeck/router/adp"
	"adpdeck/router/model"
	"adpdeck/router/trace"
)

const (
	never = math.MaxInt64
	// latest is the latest arrival, 146 years: slower traffic all comes then.
	latest = 1 << 62
	// retryEvery is how long a worker with nothing active waits before it asks
	// the router again to place requests that found no room.
	retryEvery = 50 * time.Millisecond
	// patience is how long Run goes on in virtual time when nothing but such
	// retries happens.
	patience = 10 * time.Minute
	// maxLeads bounds the leads that are remembered.
	maxLeads = 4096
	leadLen  = 64
)

// Sentinels of Run.
var (
	// ErrEndless is returned by Run for traffic without an end.
	ErrEndless = errors.New("the traffic has no end: advance to a time instead")
	// ErrNoRouter is returned while no router is in use.
	ErrNoRouter = errors.New("no router is in use")
)

// Sim is a simulated cluster. It belongs to one goroutine, Now apart.
type Sim struct {
	cfg     Config
	traffic Traffic
	router  Router
	workers []*worker
	byID    map[string]*worker

	now       atomic.Int64 // virtual nanoseconds since Start
	row       trace.Row    // the next arrival
	rowAt     int64        // when it comes, never when the traffic has ended
	nextID    int64
	leads     map[uint64][]int32
	locals    []uint64   // scratch
	publisher *publisher // nil when no events are published
	open      int        // requests submitted and not done
	onBegin   func(*request)
	onFirst   func(*request)
	onDone    func(*request)
	pool      []*request

	tally
}

// New returns a cluster at virtual time zero. Its errors wrap ErrConfig. Use
// must be called before the first Advance or Run.
func New(cfg Config, traffic Traffic) (*Sim, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Sim{
		cfg: cfg, traffic: traffic, byID: make(map[string]*worker, cfg.Workers),
		nextID: int64(cfg.HardCap), leads: map[uint64][]int32{}, tally: newTally(traffic.Total()),
	}
	if cfg.Seed != 0 {
		s.nextID += int64(trace.Chain(cfg.Seed, 0) >> 26) // below 2^38, as upstream's local ids
	}
	if cfg.KVEvents {
		v, err := newVocab(cfg.BlockTokens)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		s.publisher = &publisher{vocab: v}
	}
	for i, spec := range cfg.Specs() {
		w := newWorker(spec.ID, i, &cfg)
		s.workers = append(s.workers, w)
		s.byID[spec.ID] = w
	}
	s.onBegin, s.onFirst, s.onDone = s.prefillBegins, s.firstToken, s.done
	s.fetch()
	return s, nil
}

// Use sets the router that is asked from now on.
func (s *Sim) Use(r Router) {
	s.router = r
	r.SetSource(s.Source(s.cfg.Speed))
}

// Now is the virtual time, the clock of the router that the Sim uses. Any
// goroutine may call it.
func (s *Sim) Now() time.Time { return s.cfg.Start.Add(time.Duration(s.now.Load())) }

// Elapsed is the virtual time since the beginning.
func (s *Sim) Elapsed() time.Duration { return time.Duration(s.now.Load()) }

// Config returns the configuration.
func (s *Sim) Config() Config { return s.cfg }

// Source describes the traffic as it stands; speed is what the driver runs at.
func (s *Sim) Source(speed float64) model.Source {
	return model.Source{
		Kind: s.cfg.Kind, Name: s.cfg.Name, Speed: speed, Done: s.Done(),
		Rows: int(s.sent), Total: s.traffic.Total(), BadRow: s.cfg.BadRows,
	}
}

// Done reports whether the traffic has ended and every request with it.
func (s *Sim) Done() bool { return s.rowAt == never && s.open == 0 }

// fetch reads the next arrival.
func (s *Sim) fetch() {
	if !s.traffic.Next(&s.row) {
		s.rowAt = never
		return
	}
	s.rowAt = max(s.now.Load(), int64(min(float64(s.row.At)/s.cfg.Speed, latest)))
}

// nextEvent is the time of the next event, never when nothing is to come.
func (s *Sim) nextEvent() int64 {
	t := s.rowAt
	for _, w := range s.workers {
		t = min(t, w.endAt, w.retry)
	}
	return t
}

// Advance runs the events up to the virtual time until, at most max of them
// (0: no limit), and reports whether it got there. The clock then stands at
// until, else at the last event. Errors are the router's; the run ends there.
func (s *Sim) Advance(until time.Duration, limit int) (reached bool, err error) {
	if s.router == nil {
		return false, ErrNoRouter
	}
	for n := 0; ; n++ {
		t := s.nextEvent()
		if t > int64(until) {
			if s.now.Load() < int64(until) {
				s.now.Store(int64(until))
			}
			return true, nil
		}
		if limit > 0 && n >= limit {
			return false, nil
		}
		if err := s.event(t); err != nil {
			return false, err
		}
	}
}

// Run plays finite traffic to its end. progress, when not nil, is told from
// time to time how many of the rows have been sent. Run stops early with the
// context's error, and without one when the router has placed nothing for ten
// minutes of virtual time: the report then counts the rest as unserved.
func (s *Sim) Run(ctx context.Context, progress func(sent, total int)) error {
	switch {
	case s.router == nil:
		return ErrNoRouter
	case s.traffic.Total() == 0:
		return ErrEndless
	}
	for n := 0; ; n++ {
		if n&0x3ff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(int(s.sent), s.traffic.Total())
			}
		}
		t := s.nextEvent()
		if t == never || s.rowAt == never && s.stuck(t) {
			break
		}
		if err := s.event(t); err != nil {
			return err
		}
	}
	if progress != nil {
		progress(int(s.sent), s.traffic.Total())
	}
	return nil
}

// stuck reports whether only retries are left and nothing has been placed for
// too long.
func (s *Sim) stuck(t int64) bool {
	for _, w := range s.workers {
		if w.endAt != never {
			return false
		}
	}
	return t-max(s.lastPlaced, s.lastRow) > int64(patience)
}

// event handles all that happens at t: arrivals first, then the ends of steps,
// then the steps that begin.
func (s *Sim) event(t int64) error {
	s.now.Store(t)
	for s.rowAt <= t {
		s.arrive(t)
		s.fetch()
	}
	for _, w := range s.workers {
		if w.endAt == t {
			s.end(w)
		}
	}
	for _, w := range s.workers {
		if w.endAt != never || w.retry > t && w.retry != never {
			continue
		}
		w.retry = never
		if w.busy() || w.queue.Len() > 0 {
			if err := s.begin(w, t); err != nil {
				return err
			}
		}
	}
	s.tell()
	return nil
}

// busy reports whether a rank has an active request.
func (w *worker) busy() bool {
	for _, k := range w.ranks {
		if k.active() > 0 {
			return true
		}
	}
	return false
}

// arrive submits the next row and puts it into its worker's queue.
func (s *Sim) arrive(t int64) {
	row := &s.row
	s.sent++
	s.lastRow = t
	if row.BlockTokens != s.cfg.BlockTokens {
		s.refuse(fmt.Errorf("row %d has blocks of %d tokens, the cluster of %d", s.sent, row.BlockTokens, s.cfg.BlockTokens))
		return
	}
	if row.PromptTokens < 1 || row.OutputTokens < 1 {
		s.refuse(fmt.Errorf("row %d has %d prompt and %d output tokens, must have 1 of each at least", s.sent, row.PromptTokens, row.OutputTokens))
		return
	}
	s.arrived(row)
	id := s.nextID
	s.nextID++
	req := model.Request{ID: id, Conv: row.Conv, PromptTokens: row.PromptTokens, Lead: s.lead(row, id)}
	if s.publisher != nil {
		s.locals = s.publisher.appendLocals(s.locals[:0], row.FullBlocks())
		req.Locals, req.BlockTokens, req.ExpectedOutput = s.locals, row.BlockTokens, row.OutputTokens
	}
	target, err := s.router.Submit(&req)
	if err != nil {
		s.refuse(err)
		return
	}
	w := s.byID[target.Worker]
	if w == nil {
		s.router.Done(id, model.OutcomeError)
		s.refuse(fmt.Errorf("the router sent request %d to worker %q, which does not exist", id, target.Worker))
		return
	}
	r := s.newRequest()
	*r = request{
		id: id, conv: row.Conv, arrived: t, prompt: row.PromptTokens, output: row.OutputTokens,
		full: row.FullBlocks(), probe: row.ProbeBlocks(), target: target, lease: lease{leaf: none},
		total: (row.PromptTokens + row.OutputTokens + s.cfg.BlockTokens - 1) / s.cfg.BlockTokens,
	}
	s.open++
	w.retry = never
	w.queue.Push(adp.Item[*request]{ID: id, Payload: r})
}

func (s *Sim) newRequest() *request {
	if n := len(s.pool); n > 0 {
		r := s.pool[n-1]
		s.pool = s.pool[:n-1]
		return r
	}
	return new(request)
}

// lead invents the first token ids of a prompt from its first block, so that
// prompts that share the block share the ids.
func (s *Sim) lead(row *trace.Row, id int64) []int32 {
	first := uint64(id)
	if len(row.Blocks) > 0 {
		first = row.Blocks[0]
	}
	l, ok := s.leads[first]
	if !ok {
		l = appendLead(make([]int32, 0, leadLen), first, leadLen)
		if len(s.leads) >= maxLeads {
			clear(s.leads)
		}
		s.leads[first] = l
	}
	return l[:min(leadLen, row.PromptTokens)]
}
