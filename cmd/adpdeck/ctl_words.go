package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"adpdeck/router/model"
)

// maxNearest is how many names are offered for one that there is not.
const maxNearest = 3

// listFields is how all names are found.
const listFields = "adpdeck ctl get settings lists all"

// meant offers the fields that may have been meant by a name that is none, and says
// how to list all. more are further names that could stand there.
func meant(name string, more ...string) string {
	name, _, _ = strings.Cut(name, ":") // a rank
	for _, f := range model.Fields() {
		more = append(more, f.Name)
	}
	near := nearest(name, more)
	if len(near) == 0 {
		return listFields
	}
	return "did you mean " + strings.Join(near, " or ") + "? " + listFields
}

// offer says of a field that there is not which was meant, in place of all of them
// in one line, and of a conversation that is not listed how to name it in full.
func (f *ctlFlags) offer(command *model.Command, reply *model.Reply) {
	f.offerConv(reply.Refusal)
	for i := range reply.Items {
		f.offerConv(reply.Items[i].Refusal)
	}
	if reply.Accepted || reply.Refusal == nil || reply.Refusal.Code != model.RefusedField {
		return
	}
	for _, v := range command.Set {
		if _, ok := model.FieldByName(v.Field); !ok {
			reply.Refusal.Next = meant(v.Field)
			return
		}
	}
}

// offerConv says what the router cannot know: that it was asked for a conversation
// without a model, because the list that ctl looked at does not have it.
func (f *ctlFlags) offerConv(r *model.Refusal) {
	if r != nil && f.unlisted && f.model == "" && strings.HasSuffix(r.Message, "no such conversation") {
		r.Next = fmt.Sprintf("the feed lists the newest %d: one that is older is known by its --model, and --tenant where it has one", model.MaxFeedConvs)
	}
}

// nearest are the names that are a few letters away from the one given or hold all
// of it, the nearest first.
func nearest(name string, names []string) []string {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	type candidate struct {
		name string
		far  int
	}
	var all []candidate
	for _, n := range names {
		far := distance(name, strings.ToLower(n))
		switch {
		case far <= max(2, min(len(name), len(n))/4):
		case len(name) >= 3 && strings.Contains(n, name):
			far = len(n) // after those that are one slip away
		default:
			continue
		}
		all = append(all, candidate{n, far})
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.far, b.far) })
	near := make([]string, 0, maxNearest)
	for _, c := range all[:min(len(all), maxNearest)] {
		near = append(near, c.name)
	}
	return near
}

// distance is how many bytes must be put in, taken out or changed to make b of a
// (Levenshtein).
func distance(a, b string) int {
	const most = 128 // no name is longer, and what is costs no more
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			swap := corner
			if a[i] != b[j] {
				swap++
			}
			corner = row[j+1]
			row[j+1] = min(swap, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// otherVersion says what a server of another version means for what is shown, empty
// for the same one.
func otherVersion(server string) string {
	if server == version() {
		return ""
	}
	return fmt.Sprintf("the server is adpdeck %.40q, this is %q: counts that an older one does not know stand as 0; use the same version on both sides", server, version())
}
