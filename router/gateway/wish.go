package gateway

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
)

// adpdeckRank counts inside the worker that X-Adpdeck-Worker names.
const adpdeckRank = "X-Adpdeck-Rank"

// Headers in which a client asks for a rank as engines are asked: by the number
// over all workers, also where it names one of them. The last of each is an older
// name.
var (
	rankHeaders   = [...]string{"X-Data-Parallel-Rank", "X-Dynamo-Dp-Rank", "X-Dp-Rank"}
	workerHeaders = [...]string{"X-Dynamo-Worker-Instance-Id", "X-Worker-Instance-Id"}
)

// wish is the worker or rank that a client asks for, nil for none.
func (g *Gateway) wish(h http.Header) (*model.Target, error) {
	worker, err := only1(h, "X-Adpdeck-Worker")
	if err != nil {
		return nil, err
	}
	if worker == "" {
		if worker, err = g.instanceAsked(h); err != nil {
			return nil, err
		}
	}
	name, rank, err := rankAsked(h)
	switch {
	case err != nil:
		return nil, err
	case worker != "" && (rank == model.NoRank || name == adpdeckRank):
		return &model.Target{Worker: worker, Rank: rank}, nil
	case worker != "":
		return g.view.inside(worker, rank, name)
	case rank == model.NoRank:
		return nil, nil
	case name == adpdeckRank:
		return nil, refusal(http.StatusBadRequest, "bad_rank", "X-Adpdeck-Rank counts inside a worker: name it in X-Adpdeck-Worker")
	}
	switch found := g.view.global(rank); len(found) {
	case 0:
		return nil, refusal(http.StatusBadRequest, "no_such_rank", "%s asks for rank %d, which no worker has: see /health for the workers and their ranks", name, rank)
	case 1:
		return &found[0], nil
	default:
		return nil, refusal(http.StatusBadRequest, "bad_rank", "%s asks for rank %d, which %s and %s have: name one in X-Adpdeck-Worker and X-Adpdeck-Rank", name, rank, found[0], found[1])
	}
}

func (g *Gateway) instanceAsked(h http.Header) (string, error) {
	for _, name := range workerHeaders {
		v, err := only1(h, name)
		if err != nil || v == "" {
			if err != nil {
				return "", err
			}
			continue
		}
		id, err := strconv.ParseUint(v, 10, 64)
		if err == nil {
			if worker, ok := g.view.instance(id); ok {
				return worker, nil
			}
		}
		return "", refusal(http.StatusBadRequest, "no_such_worker", "%s names no worker's instance_id (%.40q): use one of the settings file, or X-Adpdeck-Worker", name, v)
	}
	return "", nil
}

func rankAsked(h http.Header) (name string, rank int, err error) {
	for _, name := range append([]string{adpdeckRank}, rankHeaders[:]...) {
		v, err := only1(h, name)
		if err != nil {
			return "", model.NoRank, err
		}
		if v == "" {
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return "", model.NoRank, refusal(http.StatusBadRequest, "bad_rank", "%s is %.40q: send a whole number from 0", name, v)
		}
		return name, n, nil
	}
	return "", model.NoRank, nil
}

// only1 is a header that may be sent more than once only with one value.
func only1(h http.Header, name string) (string, error) {
	one := ""
	for _, v := range h[name] {
		if v = strings.TrimSpace(v); v != "" && one != "" && v != one {
			return "", refusal(http.StatusBadRequest, "bad_header", "the header %s is sent more than once, with different values: send one", name)
		} else if v != "" {
			one = v
		}
	}
	return one, nil
}

// hints reads what Dynamo's clients say of a request: priorities, and how long
// they expect its answer to be. Headers win over the body.
func hints(req *model.Request, d *body.Doc, h http.Header) error {
	said := gjson.Result{}
	if v := d.Get("nvext"); v.IsObject() {
		said = v.Get("agent_hints")
	}
	for _, f := range []struct {
		name, header string
		least, most  int64
		set          func(int64)
	}{
		{"priority", "X-Dynamo-Request-Priority", math.MinInt32, math.MaxInt32, func(n int64) { req.Priority = int(n) }},
		{"strict_priority", "X-Dynamo-Request-Strict-Priority", 0, math.MaxUint32, func(n int64) { req.StrictPriority = uint32(n) }},
		{"osl", "", 0, math.MaxInt32, func(n int64) { req.ExpectedOutput = int(n) }},
	} {
		text, where := "", "nvext.agent_hints."+f.name
		if v := said.Get(f.name); v.Type == gjson.Number {
			text = v.Raw
		} else if v.Exists() && v.Type != gjson.Null {
			text = "?"
		}
		if f.header != "" {
			v, err := only1(h, f.header)
			if err != nil {
				return err
			}
			if v != "" {
				text, where = v, f.header
			}
		}
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < f.least || n > f.most {
			return refusal(http.StatusBadRequest, "bad_hint", "%s is not a whole number from %d to %d: send one", where, f.least, f.most)
		}
		f.set(n)
	}
	return nil
}

// jsonString is the type of a JSON text.
const jsonString = gjson.String

// hidesUsage reports that a request streams without asking for the usage: it is
// asked for then, and taken out of the stream again. Responses always end with it.
func hidesUsage(route model.Route, d *body.Doc) bool {
	if route != model.RouteChat && route != model.RouteCompletions || d.Get("stream").Type != gjson.True {
		return false
	}
	o := d.Get("stream_options")
	return !o.Exists() || o.IsObject() && o.Get("include_usage").Type != gjson.True
}
