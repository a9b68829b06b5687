package event

import (
	"bytes"
	"testing"
)

func TestBatchLetsGoOfWhatAGiantLeft(t *testing.T) {
	var d Decoder
	var b Batch
	e := sixteen()
	small := (&Encoder{}).AppendBatch(nil, 1, 0, []Event{e})
	e.Hashes, e.Tokens = nil, nil
	for i := range MaxHashes {
		e.Hashes = append(e.Hashes, Hash(i))
		for j := range 16 {
			e.Tokens = append(e.Tokens, uint32(j))
		}
	}
	giant := (&Encoder{Hash: SignedHash}).AppendBatch(nil, 1, 0, []Event{e})
	decode(t, &d, &b, giant)
	if len(b.Events[0].Hashes) != MaxHashes || cap(b.tokens) < 16*MaxHashes {
		t.Fatal("the giant was not decoded")
	}
	for range 80 {
		decode(t, &d, &b, small)
	}
	if n := cap(b.tokens); n > keep {
		t.Errorf("still holds room for %d tokens", n)
	}
	one := (&Encoder{}).AppendBatch(nil, 1, 0, []Event{{Kind: Removed, Group: NoGroup, Hashes: make([]Hash, MaxHashes+1)}})
	if err := d.Batch(one, &b); err != nil || b.Refused.Count(TooLarge) != 1 {
		t.Errorf("one block too many: %v, %s", err, b.Refused.LastError())
	}
}

func TestNamesAreRememberedInBounds(t *testing.T) {
	var d Decoder
	name := bytes.Repeat([]byte("x"), 8)
	for i := range 5000 {
		name[0], name[1], name[2] = byte(i), byte(i>>8), 'n'
		if got := d.intern(name); got != string(name) {
			t.Fatal(got)
		}
	}
	if len(d.names) > maxNames {
		t.Errorf("%d names", len(d.names))
	}
}

func TestTally(t *testing.T) {
	var a, b Tally
	a.Add(Refusal{Reason: TokenCount, Field: fieldTokens, Value: 3, Want: 16, Index: 2})
	b.Merge(&a)
	b.Add(Refusal{Reason: UnknownTag, Field: "type", Got: "X"})
	b.Add(Refusal{}) // no reason is a bad field
	if b.Total() != 3 || b.Count(TokenCount) != 1 || b.Count(BadField) != 1 {
		t.Errorf("%d in all", b.Total())
	}
	if last, ok := b.Last(TokenCount); !ok || last.Error() != "token_count token_ids: 3, want 16 (event 2 of its message)" {
		t.Errorf("%v", last.Error())
	}
	if _, ok := b.Last(Remote); ok || b.Count(200) != 0 {
		t.Error("counted what was never added")
	}
	fault := b.LastFault()
	b.Add(Refusal{Reason: Informal, Got: "created"})
	if b.LastFault() != fault || b.LastError() == fault || fault == "" {
		t.Errorf("last fault %q, last error %q", b.LastFault(), b.LastError())
	}
	b.Reset()
	if b.Total() != 0 || b.LastError() != "" || b.LastFault() != "" {
		t.Error("not empty after Reset")
	}
}
