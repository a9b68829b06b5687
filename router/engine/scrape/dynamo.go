package scrape

import (
	"slices"
	"strconv"

	"adpdeck/router/model"
)

// The families of a Dynamo frontend's page.
const (
	dynamoBlocks     = "dynamo_frontend_worker_active_decode_blocks"
	dynamoPrefill    = "dynamo_frontend_worker_active_prefill_tokens"
	dynamoWaiting    = "dynamo_frontend_worker_waiting_requests"
	dynamoRegistered = "dynamo_component_router_worker_registered"
	dynamoModelBlock = "dynamo_frontend_model_kv_cache_block_size"
	dynamoModelKV    = "dynamo_frontend_model_total_kv_blocks"
	dynamoModelSeqs  = "dynamo_frontend_model_max_num_seqs"
	dynamoModelBatch = "dynamo_frontend_model_max_num_batched_tokens"
)

// MaxWorkers is how many workers one Dynamo page may name.
const MaxWorkers = 4096

// DynamoPage is what a Dynamo frontend says of its workers.
type DynamoPage struct {
	// Workers are ordered by ID.
	Workers []DynamoWorker
	// Models has the sizes that the frontend says of the workers of a model, by
	// its name.
	Models map[string]Advert
	// Duplicates and Refused as in Page, for the whole page.
	Duplicates int
	Refused    Refusals
}

// DynamoWorker is one worker behind the frontend.
type DynamoWorker struct {
	// ID is its instance id, above what a float holds.
	ID uint64
	// Kind is Dynamo's worker_type: decode, prefill, or "" where not said.
	Kind string
	// Page holds its ranks. KVUsedBlocks and PendingTokens are what the
	// frontend's own router has booked there, not what the engine measured.
	Page
}

// Worker gives the worker with an id, nil if the page does not name it.
func (d *DynamoPage) Worker(id uint64) *DynamoWorker {
	i, ok := slices.BinarySearchFunc(d.Workers, id, func(w DynamoWorker, id uint64) int {
		if w.ID < id {
			return -1
		}
		return int(min(w.ID-id, 1))
	})
	if !ok {
		return nil
	}
	return &d.Workers[i]
}

// Dynamo reads a Dynamo frontend's metrics page by worker and dp_rank. Where
// the page says which workers are registered, only those ranks are advertised:
// frontends have kept the series of workers that are gone.
func Dynamo(a Answer) (DynamoPage, error) {
	var d DynamoPage
	v := vocabulary{
		prefix: "dynamo_",
		families: []string{
			dynamoBlocks, dynamoPrefill, dynamoWaiting, dynamoRegistered,
			dynamoModelBlock, dynamoModelKV, dynamoModelSeqs, dynamoModelBatch,
		},
		labels: []string{"worker_id", "router_worker_id", "dp_rank", "worker_type", "model"},
	}
	found, err := v.read(a, &d.Refused)
	if err != nil {
		return d, err
	}
	f := fleet{page: &d, tables: map[uint64]*fleetWorker{}}
	f.each(found, dynamoBlocks, "worker_id", func(r *Rank, v float64) { r.KVUsedBlocks = model.Maybe(v) })
	f.each(found, dynamoPrefill, "worker_id", func(r *Rank, v float64) { r.PendingTokens = model.Maybe(v) })
	f.each(found, dynamoWaiting, "worker_id", func(r *Rank, v float64) { r.Waiting = model.Maybe(v) })
	f.registered(found)
	d.models(found)
	f.finish(len(found[dynamoRegistered]) > 0)
	return d, nil
}

// fleet sorts a page's series by worker.
type fleet struct {
	page   *DynamoPage
	tables map[uint64]*fleetWorker
}

type fleetWorker struct {
	kind string
	own  Page
	*table
	registered []int
}

// split gives a family's series by worker, in rising order of ids.
func (f *fleet) split(list []series, family, label string) (ids []uint64, of map[uint64][]series) {
	of = map[uint64][]series{}
	for i := range list {
		named := list[i].get(label)
		id, err := strconv.ParseUint(named, 10, 64)
		if err != nil {
			f.page.Refused.add(BadWorker, "%s has the %s %s, which is no number of 64 bits", family, label, quoted(named))
			continue
		}
		if f.worker(id) == nil {
			continue
		}
		if of[id] == nil {
			ids = append(ids, id)
		}
		of[id] = append(of[id], list[i])
	}
	slices.Sort(ids)
	return ids, of
}

// worker gives a worker's table, nil over the limit.
func (f *fleet) worker(id uint64) *fleetWorker {
	if w := f.tables[id]; w != nil {
		return w
	}
	if len(f.tables) == MaxWorkers {
		f.page.Refused.add(TooMany, "more than %d workers: %d and further ones are left out", MaxWorkers, id)
		return nil
	}
	w := &fleetWorker{}
	w.table = newTable(&w.own)
	f.tables[id] = w
	return w
}

// each puts a family's figures where they belong. dp_rank was not always said:
// without it, a worker is one rank.
func (f *fleet) each(found samples, family, label string, put func(r *Rank, v float64)) {
	ids, of := f.split(found[family], family, label)
	for _, id := range ids {
		w, k := f.tables[id], picker{rank: "dp_rank"}
		if w.kind == "" {
			w.kind = of[id][0].get("worker_type")
		}
		ranked := k.ranked(samples{family: of[id]})
		for rank, v := range rising(k.figures(w.table, family, of[id], ranked)) {
			put(w.rank(rank), v)
		}
	}
}

func (f *fleet) registered(found samples) {
	const label = "router_worker_id"
	ids, of := f.split(found[dynamoRegistered], dynamoRegistered, label)
	for _, id := range ids {
		w, k := f.tables[id], picker{rank: "dp_rank"}
		if w.kind == "" {
			w.kind = of[id][0].get("worker_type")
		}
		ranked := k.ranked(samples{dynamoRegistered: of[id]})
		for rank, v := range rising(k.figures(w.table, dynamoRegistered, of[id], ranked)) {
			if v > 0 {
				w.registered = append(w.registered, rank)
			}
		}
	}
}

// finish makes the workers of the page. said: the page says which ranks are
// registered.
func (f *fleet) finish(said bool) {
	d := f.page
	for id, w := range f.tables {
		w.finish()
		if said {
			w.own.Advertised = w.registered
		}
		w.own.Unranked = w.own.Unranked && len(w.own.Ranks) == 1
		d.Workers = append(d.Workers, DynamoWorker{ID: id, Kind: w.kind, Page: w.own})
	}
	slices.SortFunc(d.Workers, func(a, b DynamoWorker) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	for i := range d.Workers {
		w := &d.Workers[i]
		d.Duplicates += w.Duplicates
		d.Refused.merge(&w.Refused)
		if len(d.Models) == 1 {
			for _, sizes := range d.Models {
				sizes.Advertised = w.Advertised
				w.Advert = sizes
			}
		}
	}
}

// models reads the sizes of each model's workers.
func (d *DynamoPage) models(found samples) {
	set := func(family string, put func(a *Advert, n int)) {
		for i := range found[family] {
			s := &found[family][i]
			name := clip(s.get("model"))
			v, ok := number(s.value, &d.Refused, func() string { return family + " of model " + quoted(name) })
			if !ok || v < 1 {
				continue
			}
			if _, there := d.Models[name]; !there && len(d.Models) == MaxModels {
				d.Refused.add(TooMany, "more than %d models: %s and further ones are left out", MaxModels, quoted(name))
				continue
			}
			if d.Models == nil {
				d.Models = map[string]Advert{}
			}
			a := d.Models[name]
			put(&a, int(v))
			d.Models[name] = a
		}
	}
	set(dynamoModelBlock, func(a *Advert, n int) { a.BlockTokens = n })
	set(dynamoModelKV, func(a *Advert, n int) { a.KVBlocks = n })
	set(dynamoModelSeqs, func(a *Advert, n int) { a.MaxActive = n })
	set(dynamoModelBatch, func(a *Advert, n int) { a.MaxBatchedTokens = n })
}
