package load

import (
	"errors"
	"testing"

	"adpdeck/router/model"

	"pgregory.net/rapid"
)

// TestConserved drives a ledger with random calls beside a plain map: whatever
// happens, waiting plus in flight is what is open, and tokens follow.
func TestConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := []int{1, 3}
		b := New[int](ranks)
		open := map[int64]*Booking[int]{}
		strays := uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			id := rapid.Int64Range(0, 12).Draw(t, "id")
			k := open[id]
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				w := rapid.IntRange(0, 1).Draw(t, "worker")
				got, err := b.Open(id, w)
				if (k != nil) != errors.Is(err, ErrDuplicate) {
					t.Fatalf("open %d: %v", id, err)
				}
				if k == nil {
					open[id] = got
				}
			case 1:
				if k != nil {
					b.Place(k, rapid.IntRange(0, ranks[k.Worker]-1).Draw(t, "rank"), 100, 40)
				}
			case 2:
				if k != nil && k.Rank != model.NoRank {
					w := rapid.IntRange(0, 1).Draw(t, "to")
					b.Move(k, w, rapid.IntRange(0, ranks[w]-1).Draw(t, "rank"))
				}
			case 3:
				if k != nil && k.Rank != model.NoRank {
					b.Adjust(k, rapid.IntRange(0, 100).Draw(t, "tokens"))
				}
			case 4:
				if b.Release(id) != (k != nil) {
					t.Fatalf("release %d", id)
				}
				if k == nil {
					strays++
				}
				delete(open, id)
			}
			check(t, b, open, strays)
		}
	})
}

func check(t *rapid.T, b *Book[int], open map[int64]*Booking[int], strays uint64) {
	inFlight, waiting, total, prompt, effective := 0, 0, 0, 0, 0
	for w := range b.ranks {
		waiting += b.Waiting(w)
		total += b.WorkerOpen(w)
		for k := range b.ranks[w] {
			c := b.Rank(w, k)
			if c.InFlight < 0 || c.PromptTokens < 0 || c.EffectiveTokens < 0 {
				t.Fatalf("rank %d/%d: %+v", w, k, c)
			}
			inFlight += c.InFlight
			prompt += c.PromptTokens
			effective += c.EffectiveTokens
		}
	}
	wantPrompt, wantEffective := 0, 0
	for id, k := range open {
		if b.Get(id) != k {
			t.Fatalf("booking %d is another", id)
		}
		wantPrompt += k.Prompt
		wantEffective += k.Effective
	}
	if inFlight+waiting != len(open) || total != len(open) || b.Len() != len(open) || b.Strays() != strays {
		t.Fatalf("%d in flight + %d waiting, %d by worker, %d open, %d strays", inFlight, waiting, total, len(open), b.Strays())
	}
	if prompt != wantPrompt || effective != wantEffective {
		t.Fatalf("tokens %d and %d, want %d and %d", prompt, effective, wantPrompt, wantEffective)
	}
}

func TestReusedWithoutAllocation(t *testing.T) {
	b := New[[]int32]([]int{4})
	lead := []int32{1, 2, 3}
	n := testing.AllocsPerRun(1000, func() {
		k, _ := b.Open(7, 0)
		k.Value = append(k.Value[:0], lead...)
		b.Place(k, 2, 10, 5)
		b.Release(7)
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
