package scrape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"adpdeck/router/model"
)

// unk is an unknown figure.
var unk = model.Unknown()

func page(t testing.TB, name string) Answer {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return Answer{Status: 200, Body: body}
}

func body(s string) Answer { return Answer{Status: 200, Body: []byte(s)} }

// report has everything unknown but what set gives.
func report(rank int, set func(r *model.RankReport)) model.RankReport {
	r := unknown(rank)
	set(&r)
	return r
}

// same compares with unknown equal to unknown.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	maybe := cmp.Comparer(func(a, b model.Maybe) bool { return a == b || !a.Known() && !b.Known() })
	if d := cmp.Diff(want, got, maybe); d != "" {
		t.Errorf("%s: -want +got\n%s", what, d)
	}
}

func refusedAs(t *testing.T, err error, want Reason, words ...string) {
	t.Helper()
	r, ok := err.(*Refusal)
	if !ok {
		t.Fatalf("got error %v, want a refusal as %s", err, want)
	}
	if r.Reason != want {
		t.Errorf("refused as %s (%s), want %s", r.Reason, r.Detail, want)
	}
	for _, w := range words {
		if !strings.Contains(r.Detail, w) {
			t.Errorf("%q does not say %q", r.Detail, w)
		}
	}
}

// reasons lists why parts were refused.
func reasons(r *Refusals) []Reason {
	var list []Reason
	for i := range r.List {
		list = append(list, r.List[i].Reason)
	}
	return list
}
