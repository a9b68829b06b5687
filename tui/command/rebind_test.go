package command

import (
	"errors"
	"testing"
)

func TestEverySetKeepsTheRules(t *testing.T) {
	for _, set := range Sets() {
		table := NewSet(set)
		if _, err := table.Rebind(nil); err != nil {
			t.Errorf("%s: %v", set, err)
		}
		for i := range table.Commands {
			c := &table.Commands[i]
			if c.ID == Interrupt {
				continue
			}
			if why := Forbids(c.ID, c.Keys); why != "" {
				t.Errorf("%s: %s", set, why)
			}
		}
	}
}

func TestKeysAreReadAsTheyAreWritten(t *testing.T) {
	for _, set := range Sets() {
		for _, c := range NewSet(set).Commands {
			for _, k := range c.Keys {
				for _, written := range []string{KeyName(k), k} {
					if written == " " {
						continue
					}
					if got, err := ParseKey(written); err != nil || got != k {
						t.Errorf("%q is read as %q, %v; want %q", written, got, err, k)
					}
				}
			}
		}
	}
}

func TestRebindLeavesTheTableAsItWas(t *testing.T) {
	table := New()
	next, err := table.Rebind(map[ID][]string{Drain: {"T"}, Filter: {}})
	if err != nil {
		t.Fatal(err)
	}
	if table.KeyOf(Drain) != "D" || next.KeyOf(Drain) != "T" || next.KeyOf(Filter) != ":filter" {
		t.Errorf("%s, %s, %s", table.KeyOf(Drain), next.KeyOf(Drain), next.KeyOf(Filter))
	}
	if next.ByKey(Ranks, "D") != nil || next.ByKey(Ranks, "T").ID != Drain {
		t.Error("the keys do not start what they should")
	}
	_, err = table.Rebind(map[ID][]string{Copy: {"z"}})
	var clash *Clash
	if !errors.As(err, &clash) || *clash != (Clash{"z", Ranks, Freeze, Copy}) {
		t.Errorf("clash %+v", err)
	}
}

func TestReasonsNameTheKeysInForce(t *testing.T) {
	table, err := New().Rebind(map[ID][]string{Freeze: {"f5"}})
	if err != nil {
		t.Fatal(err)
	}
	s := Situation{View: Convs, Link: LinkFrozen, Keys: table}
	if got := table.Get(Pin).Reason(&s); got != "the screen is frozen: F5 goes live again" {
		t.Error(got)
	}
}
