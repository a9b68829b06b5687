package sim

import (
	"fmt"
	"time"

	"adpdeck/router/adp"
	"adpdeck/router/model"
)

// worker is one engine: ranks in lockstep behind one waiting queue.
type worker struct {
	id      string
	at      int // its number
	ranks   []*rank
	queue   adp.Queue[*request]
	gate    adp.Gate
	held    int   // steps in a row that the gate held prefill back
	endAt   int64 // end of the present step, never when none runs
	retry   int64 // when to ask the router again with nothing active, or never
	stepped bool  // a step began or ended since the router was told

	// Scratch of a step, reused.
	in      model.StepInput
	out     model.StepOutput
	counts  []int
	gateIn  []adp.GateRank
	batch   []adp.Item[*request]
	back    []adp.Item[*request]
	matches []int32
	loads   []model.RankLoad
}

func newWorker(id string, at int, c *Config) *worker {
	w := &worker{id: id, at: at, endAt: never, retry: never, counts: make([]int, c.Ranks), gateIn: make([]adp.GateRank, c.Ranks)}
	for range c.Ranks {
		k := newRank(c.Blocks)
		if c.KVEvents {
			k.cache.diary = &diary{}
		}
		w.ranks = append(w.ranks, k)
	}
	w.in.States = make([]model.RankState, c.Ranks)
	w.in.HardCap = c.HardCap
	w.loads = make([]model.RankLoad, c.Ranks)
	return w
}

// gather collects the states of all ranks and returns how many requests are
// active.
func (w *worker) gather(kvAware bool) int {
	active := 0
	for i, k := range w.ranks {
		w.in.States[i] = k.state(i, kvAware)
		w.counts[i] = w.in.States[i].NumActiveRequests
		active += w.counts[i]
	}
	return active
}

// begin starts a step at now if there is anything to do.
func (s *Sim) begin(w *worker, now int64) error {
	cfg, minGen, lowOcc := s.router.Gate(w.id)
	w.retry = never
	kvAware := cfg.Policy() == model.PolicyKVAware
	active := w.gather(kvAware)
	if w.queue.Len() > 0 {
		placed, err := s.placeBatch(w, active, kvAware)
		if err != nil {
			return err
		}
		active += placed
	}
	if active == 0 {
		if w.queue.Len() > 0 { // the router takes nothing now: ask again
			w.retry = now + int64(retryEvery)
		}
		return nil
	}
	release := true
	if cfg.EnableBalance {
		release = w.askGate(adp.GateConfig{
			TimeoutIters: cfg.TimeoutIters, BatchingWaitIters: cfg.BatchingWaitIters, MaxBatchSize: w.in.HardCap,
			MinGenerationRequests: minGen, LowOccupancyTimeoutIters: lowOcc,
		})
	}
	if w.held++; release {
		w.held = 0
	}
	slowest := time.Duration(0)
	for _, k := range w.ranks {
		for {
			r, impossible := k.reject()
			if !impossible {
				break
			}
			s.fail(r)
		}
		k.plan(&s.cfg.Timing, s.cfg.ChunkTokens, s.cfg.BlockTokens, release, s.onBegin)
		slowest = max(slowest, k.work)
	}
	if slowest == 0 { // every active request was impossible: go on with the queue
		w.retry = now + 1
		return nil
	}
	w.endAt, w.stepped = now+int64(slowest), true
	s.steps++
	s.stepTime += slowest * time.Duration(len(w.ranks))
	for _, k := range w.ranks {
		s.waitTime += slowest - k.work
	}
	return nil
}

// placeBatch admits waiting requests and has the router place them; those
// without room go back to the head of the queue. Where some wait for the rank
// that an operator pinned them to, others are admitted in their stead, so that
// a full rank does not stop the worker.
func (s *Sim) placeBatch(w *worker, active int, kvAware bool) (placed int, err error) {
	limit := len(w.ranks)*w.in.HardCap - active
	w.back = w.back[:0]
	for {
		w.batch = append(w.batch[:0], w.queue.Admit(limit-placed, w.counts, w.in.HardCap)...)
		if len(w.batch) == 0 {
			break
		}
		w.probe(kvAware, s.cfg.BlockTokens)
		if err := s.router.Step(w.id, &w.in, &w.out); err != nil {
			return 0, fmt.Errorf("step of %s: %w", w.id, err)
		}
		n, err := s.handOver(w)
		if err != nil {
			return 0, fmt.Errorf("step of %s: %w", w.id, err)
		}
		placed += n
		if w.out.PinWaits == 0 || w.queue.Len() == 0 {
			break
		}
		w.gather(kvAware)
	}
	w.queue.PushFront(w.back)
	clear(w.batch)
	clear(w.back)
	return placed, nil
}

// handOver gives the requests of a batch to the ranks that the router named
// and keeps those without one in back.
func (s *Sim) handOver(w *worker) (placed int, err error) {
	if len(w.out.Ranks) != len(w.batch) {
		return 0, fmt.Errorf("the router answered %d of %d requests", len(w.out.Ranks), len(w.batch))
	}
	for i, order := range w.out.Order {
		for _, at := range order {
			if uint(at) >= uint(len(w.batch)) || int(w.out.Ranks[at]) != i || i >= len(w.ranks) {
				return 0, fmt.Errorf("the router's order of rank %d contradicts its ranks", i)
			}
			r := w.batch[at].Payload
			r.target = model.Target{Worker: w.id, Rank: i}
			expect := 0
			if s.publisher != nil {
				expect = w.ranks[i].cache.match(r.probe) * s.cfg.BlockTokens
			}
			w.ranks[i].place(r, expect)
			s.onPlaced(r)
			placed++
		}
	}
	left := 0
	for i, it := range w.batch {
		if w.out.Ranks[i] < 0 {
			w.back = append(w.back, it)
			left++
		}
	}
	if placed+left != len(w.batch) {
		return 0, fmt.Errorf("the router placed %d requests and left %d of %d", placed, left, len(w.batch))
	}
	return placed, nil
}

// probe writes the step's requests, with the prefix that each rank holds when
// the policy asks for it.
func (w *worker) probe(kvAware bool, blockTokens int) {
	n := len(w.ranks)
	w.in.Requests = w.in.Requests[:0]
	if need := n * len(w.batch); kvAware && cap(w.matches) < need {
		w.matches = make([]int32, need)
	}
	for i, it := range w.batch {
		req := model.StepRequest{ID: it.ID}
		if kvAware {
			req.Matches = w.matches[i*n : (i+1)*n : (i+1)*n]
			for j, k := range w.ranks {
				req.Matches[j] = int32(k.cache.match(it.Payload.probe) * blockTokens)
			}
		}
		w.in.Requests = append(w.in.Requests, req)
	}
}

// askGate asks the balance gate whether prefill may run in this step.
func (w *worker) askGate(cfg adp.GateConfig) (release bool) {
	for i, k := range w.ranks {
		n := len(k.decode)
		w.gateIn[i] = adp.GateRank{Ctx: k.canPrefill(), Gen: n, RealGen: n}
	}
	w.gate.Configure(cfg)
	return w.gate.Step(w.gateIn)
}

// end closes the present step.
func (s *Sim) end(w *worker) {
	w.endAt, w.stepped = never, true
	for _, k := range w.ranks {
		k.finish(s.onFirst, s.onDone)
	}
}

// Feed reports every worker's ranks to the router, for the screen.
func (s *Sim) Feed() {
	for _, w := range s.workers {
		s.report(w)
	}
}

func (s *Sim) report(w *worker) {
	cfg, _, _ := s.router.Gate(w.id)
	w.gather(cfg.Policy() == model.PolicyKVAware)
	for i, k := range w.ranks {
		w.loads[i] = k.load(i)
	}
	s.router.Report(w.id, w.queue.Len(), w.held, w.in.States, w.loads)
}
