package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"adpdeck/router/model"
	"adpdeck/router/settings"
)

// reload reads the settings file again and carries out what differs: settings
// are set by one command under its id, so that it stands in the history and can be
// undone; then workers come, go and change. What an operator changed since the
// start is overruled by the file. On any error nothing changes.
func (h *house) reload(cmd model.Command) model.Reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first, ok := h.live.Answered(cmd.ID); ok {
		return first
	}
	refused := func(next string, err error) model.Reply {
		return model.Reply{
			ID: cmd.ID, Version: h.live.Snapshot().Version,
			Refusal: &model.Refusal{Code: model.RefusedFile, Message: "reload: " + err.Error(), Next: next},
		}
	}
	if h.read == nil {
		return refused("end it and start it with other flags", errors.New("these workers come from the command line, there is no settings file"))
	}
	p, err := h.read()
	if err == nil {
		err = h.fleet.Check(p.serve.Workers)
	}
	if err != nil {
		return refused("mend the file and reload again; nothing was changed", err)
	}
	if what := needsRestart(&h.now.serve, &p.serve); what != "" {
		return refused("restart serve, or put the old value back; nothing was changed", fmt.Errorf("%s cannot change while it serves", what))
	}
	workers, planned := turnover(h.now.serve.Workers, p.serve.Workers), false
	reply := h.live.Reload(cmd, func(from model.Settings) []model.FieldValue {
		planned = true
		return settings.Changes(from, p.settings)
	}, func(values int) string { return "reload: " + told(values, workers) })
	if !reply.Accepted || !planned {
		return reply
	}
	if err := h.fleet.Set(p.serve.Workers); err != nil {
		return refused("reload again: the settings were set, not all workers", err)
	}
	h.now = p
	return reply
}

// needsRestart names what only a new start can change.
func needsRestart(old, is *model.ServeSpec) string {
	switch {
	case old.FeedListen != is.FeedListen:
		return "feed.listen"
	case !reflect.DeepEqual(old.Gateway, is.Gateway):
		return "gateway"
	}
	return ""
}

// maxTold bounds the workers that a reload names.
const maxTold = 6

// turnover names the workers that came, went or differ. One under a new name is
// two: pins and weights stay with the old name.
func turnover(old, is []model.EngineSpec) (names []string) {
	was := map[string]model.EngineSpec{}
	for _, w := range old {
		was[w.ID] = w
	}
	for _, w := range is {
		before, had := was[w.ID]
		switch {
		case !had:
			names = append(names, w.ID+" is new")
		case !reflect.DeepEqual(before, w):
			names = append(names, w.ID+" differs")
		}
		delete(was, w.ID)
	}
	for _, w := range old {
		if _, gone := was[w.ID]; gone {
			names = append(names, w.ID+" is gone")
		}
	}
	return names
}

func told(values int, workers []string) string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{values, "setting"}, {len(workers), "worker"}} {
		switch c.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+c.what)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", c.n, c.what))
		}
	}
	if len(parts) == 0 {
		return "nothing has changed"
	}
	text := strings.Join(parts, ", ") + " changed"
	switch n := len(workers); {
	case n > maxTold:
		text += fmt.Sprintf(" (%s and %d more)", strings.Join(workers[:maxTold], ", "), n-maxTold)
	case n > 0:
		text += " (" + strings.Join(workers, ", ") + ")"
	}
	return text
}
