package pin

import (
	"errors"
	"fmt"
	"testing"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func key(id string) model.ConvKey { return model.ConvKey{ID: id} }

func auto(worker string, rank int) Binding {
	return Binding{Target: model.Target{Worker: worker, Rank: rank}, Source: model.PinAuto}
}

func ids(t *Table) (out []string) {
	for _, e := range t.Entries() {
		out = append(out, e.Key.ID)
	}
	return out
}

func TestEncodeIsUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-b0-2:/]{0,4}`)
		a := model.ConvKey{Tenant: part.Draw(t, "tenant"), Model: part.Draw(t, "model"), ID: part.Draw(t, "id")}
		b := model.ConvKey{Tenant: part.Draw(t, "tenant2"), Model: part.Draw(t, "model2"), ID: part.Draw(t, "id2")}
		if a.Keyless() {
			if Encode(a) != "" {
				t.Fatal("a keyless key has a text")
			}
			return
		}
		if (Encode(a) == Encode(b)) != (a == b) {
			t.Fatalf("%+v and %+v: %q and %q", a, b, Encode(a), Encode(b))
		}
		if back, ok := Decode(Encode(a)); !ok || back != a {
			t.Fatalf("%+v came back as %+v, %v", a, back, ok)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no lengths": "conv", "one length": "1:x", "not a number": "a:0:x", "sign": "-1:0:xyz",
		"too long": "9:9:x", "no id": "1:1:ab", "huge": "9999999999:0:x",
	} {
		t.Run(name, func(t *testing.T) {
			if k, ok := Decode(text); ok {
				t.Fatalf("%q was read as %+v", text, k)
			}
		})
	}
}

func TestTableDropsTheOldest(t *testing.T) {
	var gone []string
	tab := NewTable(2, func(k model.ConvKey, _, after Binding) {
		if after.Source == model.PinNone {
			gone = append(gone, k.ID)
		}
	})
	v := tab.View("w0")
	v.Record(Encode(key("a")), 0)
	v.Record(Encode(key("b")), 1)
	v.Get(Encode(key("a"))) // must not touch
	v.Record(Encode(key("c")), 2)
	if diff := cmp.Diff([]string{"b", "c"}, ids(tab)); diff != "" {
		t.Fatal(diff)
	}
	v.Record(Encode(key("b")), 1) // must touch
	v.Record(Encode(key("d")), 0)
	if diff := cmp.Diff([]string{"b", "d"}, ids(tab)); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"a", "c"}, gone); diff != "" {
		t.Fatal(diff)
	}
}

func TestViewSeesItsWorkerAlone(t *testing.T) {
	tab := NewTable(8, nil)
	k := Encode(key("a"))
	migrated := Binding{Target: model.Target{Worker: "w1", Rank: 3}, Source: model.PinMigrated, Note: &Note{By: "bob"}}
	tab.Set(key("a"), migrated)
	if _, ok := tab.View("w0").Get(k); ok {
		t.Fatal("w0 sees a binding of w1")
	}
	tab.View("w0").Record(k, 5)
	if b, _ := tab.Get(key("a")); b != migrated {
		t.Fatalf("w0 overwrote the migration: %+v", b)
	}
	tab.View("w1").Record(k, 3)
	if b, _ := tab.Get(key("a")); b != migrated {
		t.Fatalf("a touch changed the source: %+v", b)
	}
	tab.View("w1").Record(k, 4)
	if b, _ := tab.Get(key("a")); b != auto("w1", 4) {
		t.Fatalf("a new rank: %+v", b)
	}
	if _, ok := tab.View("w1").Get("not encoded"); ok {
		t.Fatal("found what cannot be")
	}
}

func TestResizeAndRestore(t *testing.T) {
	tab := NewTable(5, nil)
	for i := range 5 {
		tab.Set(key(fmt.Sprint(i)), auto("w0", i))
	}
	dropped := tab.Resize(2)
	if diff := cmp.Diff([]string{"3", "4"}, ids(tab)); diff != "" {
		t.Fatal(diff)
	}
	tab.Set(key("1"), auto("w0", 7)) // bound again: stands
	tab.Resize(4)
	tab.Restore(dropped)
	if diff := cmp.Diff([]string{"0", "2", "4", "1"}, ids(tab)); diff != "" {
		t.Fatal(diff)
	}
	if b, _ := tab.Get(key("1")); b.Target.Rank != 7 {
		t.Fatalf("the newer binding was lost: %+v", b)
	}
	if NewTable(-3, nil).Size() != 1 {
		t.Fatal("a size below 1 must be 1")
	}
}

// TestTableCountsAgree replays random operations and keeps a count from the
// callbacks alone; it must agree with the table.
func TestTableCountsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := map[model.ConvKey]Binding{}
		tab := NewTable(rapid.IntRange(1, 6).Draw(t, "size"), func(k model.ConvKey, before, after Binding) {
			if seen[k] != before {
				t.Fatalf("%v was %+v, the callback says %+v", k, seen[k], before)
			}
			if seen[k] = after; after.Source == model.PinNone {
				delete(seen, k)
			}
		})
		var dropped []Entry
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			k := key(rapid.StringMatching(`[a-i]`).Draw(t, "key"))
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				tab.View("w0").Record(Encode(k), rapid.IntRange(0, 3).Draw(t, "rank"))
			case 1:
				dropped = append(dropped, tab.Set(k, auto("w1", 0))...)
			case 2:
				tab.Remove(k)
			case 3:
				dropped = append(dropped, tab.Resize(rapid.IntRange(1, 6).Draw(t, "resize"))...)
			case 4:
				tab.Restore(dropped)
				dropped = nil
			}
			if len(seen) != tab.Len() || tab.Len() > tab.Size() {
				t.Fatalf("%d seen, %d held, size %d", len(seen), tab.Len(), tab.Size())
			}
		}
	})
}

func TestOperatorsAreBounded(t *testing.T) {
	changes := 0
	o := NewOperators(func(model.ConvKey, Pin, Pin) { changes++ })
	p := Pin{Target: model.Target{Worker: "w0"}, Note: &Note{By: "bob"}}
	for i := range model.MaxOperatorPins {
		if err := o.Set(key(fmt.Sprint(i)), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Set(key("one more"), p); !errors.Is(err, ErrFull) {
		t.Fatalf("got %v", err)
	}
	if err := o.Set(key("7"), Pin{Target: model.Target{Worker: "w1"}, Note: p.Note}); err != nil {
		t.Fatalf("moving a pin: %v", err)
	}
	if err := o.Set(key("7"), Pin{}); err != nil || o.Len() != model.MaxOperatorPins-1 {
		t.Fatalf("removing: %v, %d left", err, o.Len())
	}
	if o.Remove(key("7")) || changes != model.MaxOperatorPins+2 {
		t.Fatalf("%d changes", changes)
	}
}
