package engine

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/model"
)

// together checks what only shows between workers.
func (c *checker) together(workers []model.EngineSpec) {
	ids := map[string]int{}
	groups := map[string][]int{}
	for i := range workers {
		w := &workers[i]
		c.at, c.w = i, w
		if first, twice := ids[w.ID]; twice && w.ID != "" {
			c.say("ID", fmt.Sprintf("workers %d and %d have the same id", first+1, i+1), "give each its own: pins name it")
		} else {
			ids[w.ID] = i
		}
		key := "group " + w.Group
		if w.Group == "" {
			key = "alone " + strconv.Itoa(i)
		}
		groups[key] = append(groups[key], i)
	}
	for _, key := range sortedKeys(groups) {
		c.group(workers, groups[key])
	}
	c.shared(workers)
	c.ports(workers)
	c.binds(workers)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// group checks that the ranges of one group cover 0 to its end exactly once.
func (c *checker) group(workers []model.EngineSpec, members []int) {
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(workers[a].StartRank, workers[b].StartRank) })
	end, before := 0, ""
	for n, i := range members {
		w := &workers[i]
		c.at, c.w = i, w
		where := ""
		if w.Group != "" {
			where = fmt.Sprintf(" of group %q", w.Group)
		}
		switch {
		case w.StartRank < 0: // said before
			return
		case w.Kind != workers[members[0]].Kind:
			c.say("Group", fmt.Sprintf("it is %s in a group of %s", w.Kind, workers[members[0]].Kind), "a group is one deployment of one kind; use another name")
			return
		case len(members) > 1 && ranksOf(w) == 0:
			c.say("Ranks", "it does not say how many ranks of its group it has", "set ranks on each worker of a group")
			return
		case w.StartRank > end:
			c.say("StartRank", fmt.Sprintf("its ranks begin at %d and leave a hole: nobody has %s%s", w.StartRank, span(end, w.StartRank-1), where),
				fmt.Sprintf("begin at %d, or name the worker that has them", end))
			return
		case w.StartRank < end:
			c.say("StartRank", fmt.Sprintf("its %s overlap those of worker %q%s", span(w.StartRank, lastOf(w)), before, where),
				fmt.Sprintf("begin at %d", end))
			return
		}
		if n < len(members)-1 {
			end, before = w.StartRank+ranksOf(w), w.ID
		}
	}
}

func span(from, to int) string {
	if from == to {
		return "rank " + strconv.Itoa(from)
	}
	return fmt.Sprintf("ranks %d to %d", from, to)
}

// shared refuses that two workers are one engine: its load would count twice.
// Workers behind one Dynamo frontend are told apart by their instance ids.
func (c *checker) shared(workers []model.EngineSpec) {
	byURL := map[string]int{} // the worker that has the address
	for i := range workers {
		w := &workers[i]
		c.at, c.w = i, w
		urls := w.RankURLs
		if w.URL != "" {
			urls = []string{w.URL}
		}
		for _, u := range urls {
			key := addressKey(u)
			if w.Kind == model.EngineDynamo {
				key += "#" + strconv.FormatUint(w.InstanceID, 10)
			}
			first, twice := byURL[key]
			switch {
			case !twice:
				byURL[key] = i
				continue
			case first == i: // said by addresses
			case w.Kind == model.EngineDynamo:
				c.say("InstanceID", fmt.Sprintf("it is the same instance of the same frontend as worker %q", workers[first].ID), "give each worker behind a frontend its own instance id")
			default:
				c.say("URL", fmt.Sprintf("it has the address %s of worker %q", u, workers[first].ID), "name each engine once, with all of its ranks")
			}
			break
		}
	}
	c.frontends(workers)
}

// frontends refuses a Dynamo worker without an instance id beside others of the
// same frontend: requests for it could land on them.
func (c *checker) frontends(workers []model.EngineSpec) {
	users := map[string]int{}
	for i := range workers {
		if workers[i].Kind == model.EngineDynamo {
			users[addressKey(workers[i].URL)]++
		}
	}
	for i := range workers {
		w := &workers[i]
		if w.Kind == model.EngineDynamo && w.InstanceID == 0 && users[addressKey(w.URL)] > 1 {
			c.at, c.w = i, w
			c.say("InstanceID", "it shares its frontend with other workers and has no instance id", "set the id under which Dynamo knows it")
		}
	}
}

// ports refuses two publishers on one port. A range of ports that counts up from
// the base runs into its neighbour's unless the bases are far enough apart.
func (c *checker) ports(workers []model.EngineSpec) {
	users := map[string]string{}
	for i := range workers {
		w := &workers[i]
		if transportOf(w) != transportZMQ || w.Kind == model.EngineDynamo {
			continue
		}
		c.at, c.w = i, w
		live, replay := Endpoints(w)
		for r := range max(len(live), len(replay)) {
			for _, p := range []struct {
				what string
				list []string
			}{{"the kv events", live}, {"the replay", replay}} {
				if r >= len(p.list) {
					continue
				}
				addr, use := p.list[r], fmt.Sprintf("%s of %s/%d", p.what, w.ID, r)
				if other, twice := users[addr]; twice {
					c.say("Events", fmt.Sprintf("%s is the port of %s and of %s", addr, other, use),
						"put the bases further apart: each rank has its own port, counted up from its base")
					return
				}
				users[addr] = use
			}
		}
	}
}

// binds refuses two workers that listen at one port and cannot be told apart there
// by their topics.
func (c *checker) binds(workers []model.EngineSpec) {
	type user struct {
		at   int
		rank int
	}
	users := map[string][]user{}
	for i := range workers {
		w := &workers[i]
		if w.Events.Bind == "" {
			continue
		}
		for r := range max(ranksOf(w), 1) {
			at := bindAt(w, r)
			if at == "" {
				break // no place at all, which is said of the worker alone
			}
			for _, u := range users[at] {
				other := &workers[u.at]
				a, b := w.Events.Topic, other.Events.Topic
				if !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a) {
					continue
				}
				c.at, c.w = i, w
				c.say("Events", fmt.Sprintf("%s/%d and %s/%d listen at %s for the topics %q and %q, which do not tell them apart", other.ID, u.rank, w.ID, r, at, b, a),
					"give each a topic of its own that is not the beginning of another, such as kv@POD@")
				return
			}
			users[at] = append(users[at], user{i, r})
		}
	}
}

// Endpoints are the addresses of a worker's publishers by rank, and of their
// replays; empty where it has none. A base address is that of rank 0 of the
// group, and each further rank has the next port. It is for specs that passed
// Check and are read over zmq.
func Endpoints(w *model.EngineSpec) (live, replay []string) {
	return endpointList(w, w.Events.Endpoint, w.Events.RankEndpoints), endpointList(w, w.Events.Replay, w.Events.RankReplays)
}

func endpointList(w *model.EngineSpec, base string, list []string) []string {
	if base == "" {
		return list
	}
	host, port, cause, _ := splitEndpoint(base)
	if cause != "" {
		return nil
	}
	if w.Kind == model.EngineDynamo {
		return []string{base}
	}
	out := make([]string, max(ranksOf(w), 1))
	for r := range out {
		out[r] = "tcp://" + net.JoinHostPort(host, strconv.Itoa(port+w.StartRank+r))
	}
	return out
}
