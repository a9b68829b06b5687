package feed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"adpdeck/router/model"
)

// decisionBytes bounds the decisions sent with one change; older ones are left
// out and counted.
const decisionBytes = 128 << 10

// stateHead is what a State holds beside its lists.
type stateHead struct {
	At       time.Time       `json:"at"`
	Version  uint64          `json:"version"`
	Settings *model.Settings `json:"settings"`
	Initial  *model.Settings `json:"initial"`
	Totals   *model.Totals   `json:"totals"`
	Source   *model.Source   `json:"source"`

	IndexTotals *model.IndexTotals `json:"index_totals,omitempty"`
}

// changeHead is what a Change holds beside its lists.
type changeHead struct {
	At       time.Time       `json:"at"`
	Version  uint64          `json:"version"`
	Settings *model.Settings `json:"settings,omitempty"`
	Totals   *model.Totals   `json:"totals,omitempty"`
	Source   *model.Source   `json:"source,omitempty"`

	IndexTotals     *model.IndexTotals `json:"index_totals,omitempty"`
	Findings        []model.Finding    `json:"findings,omitempty"`
	FindingsChanged bool               `json:"findings_changed,omitempty"`
}

// fitFindings cuts findings to what a message holds beside the rest: they are
// replaced as a whole, so that they may not be split.
func fitFindings(findings []model.Finding) []model.Finding {
	size := 0
	for i := range findings {
		f := &findings[i]
		// A byte of foreign text takes up to six in JSON.
		if size += 256 + 6*(len(f.Message)+len(f.Next)+len(f.Target.Worker)); size > partBytes/2 {
			return findings[:i]
		}
	}
	return findings
}

// begin writes the members that every frame of the stream starts with.
func begin(dst []byte, kind, epoch string, seq uint64) []byte {
	dst = append(append(append(dst, `{"kind":"`...), kind...), `","epoch":`...)
	quoted, _ := json.Marshal(epoch)
	dst = append(append(dst, quoted...), `,"seq":`...)
	return strconv.AppendUint(dst, seq, 10)
}

// snapshot writes a state in parts, one at a time, so that a client that does
// not read holds one part and not a whole encoded state.
type snapshot struct {
	epoch string
	seq   uint64
	part  int
	state *model.State
	*packer
}

func newSnapshot(epoch string, seq uint64, s *model.State) *snapshot {
	return &snapshot{epoch: epoch, seq: seq, state: s, packer: newPacker(
		listOf("workers", s.Workers), listOf("ranks", s.Ranks), listOf("index", s.Index), listOf("findings", s.Findings),
		listOf("revisions", s.Revisions), listOf("events", s.Events), listOf("convs", s.Convs),
	)}
}

// next returns the next part and whether another follows.
func (s *snapshot) next() (msg []byte, more bool, err error) {
	s.part++
	msg = begin(s.room(), kindSnapshot, s.epoch, s.seq)
	msg = strconv.AppendInt(append(msg, `,"part":`...), int64(s.part), 10)
	msg = append(msg, `,"state":`...)
	if s.part > 1 {
		msg = append(msg, '{')
	} else {
		head, err := json.Marshal(&stateHead{
			s.state.At, s.state.Version, &s.state.Settings, &s.state.Initial, &s.state.Totals, &s.state.Source,
			s.state.IndexTotals,
		})
		if err != nil {
			return nil, false, fmt.Errorf("encode snapshot: %w", err)
		}
		msg = append(msg, head[:len(head)-1]...)
	}
	msg = append(s.fill(msg), '}')
	if more = s.more(); more {
		msg = append(msg, `,"more":true`...)
	}
	msg = append(msg, '}')
	return msg, more, checkShape(msg)
}

// encodeChange writes a change as one message, or as several of consecutive
// numbers from seq on when it is long. Decisions, outcomes and events are left
// to frames of their own. LeftOut counts values that fit no message.
func encodeChange(epoch string, seq uint64, ch *model.Change) (msgs [][]byte, leftOut uint64, err error) {
	head, err := json.Marshal(&changeHead{
		ch.At, ch.Version, ch.Settings, ch.Totals, ch.Source, ch.IndexTotals, fitFindings(ch.Findings), ch.FindingsChanged,
	})
	if err != nil {
		return nil, 0, fmt.Errorf("encode change: %w", err)
	}
	p := newPacker( // what has left first: a message may end anywhere
		listOf("workers_gone", ch.WorkersGone), listOf("ranks_gone", ch.RanksGone),
		listOf("workers", ch.Workers), listOf("ranks", ch.Ranks), listOf("index", ch.Index), listOf("gone", ch.Gone),
		listOf("convs", ch.Convs), listOf("revisions", ch.Revisions),
	)
	for len(msgs) == 0 || p.more() {
		msg := begin(p.room(), kindChange, epoch, seq)
		msg = append(append(msg, `,"change":`...), head[:len(head)-1]...)
		msg = append(p.fill(msg), `}}`...)
		if err := checkShape(msg); err != nil {
			return nil, 0, fmt.Errorf("encode change: %w", err)
		}
		msgs, seq = append(msgs, msg), seq+1
		if len(msgs) == 1 { // what is said once need not be said again
			head, _ = json.Marshal(&changeHead{At: ch.At, Version: ch.Version})
		}
	}
	return msgs, p.leftOut, nil
}

// encodeEvents writes the events of a change, nothing when it has none.
func encodeEvents(epoch string, seq uint64, events []model.Event) (msgs [][]byte, leftOut uint64) {
	p := newPacker(listOf("events", events))
	for p.more() {
		msgs = append(msgs, append(p.fill(begin(p.room(), kindEvent, epoch, seq)), '}'))
	}
	return msgs, p.leftOut
}

// encodeDecisions writes decisions and outcomes, nothing when there are none.
// The newest decisions that fit decisionBytes are sent, oldest first; the count
// of the others is added to leftOut. It returns the ids that were sent.
func encodeDecisions(epoch string, seq uint64, decisions []*model.Decision, leftOut uint64, settled []model.Settled) (msgs [][]byte, sent []uint64) {
	var kept []json.RawMessage
	size := 0
	for _, d := range slices.Backward(decisions) {
		raw, err := json.Marshal(d)
		if err != nil || size+len(raw) > decisionBytes && len(kept) > 0 || values(raw) > maxValues/4 {
			leftOut++
			continue
		}
		size += len(raw)
		kept, sent = append(kept, raw), append(sent, d.ID)
	}
	slices.Reverse(kept)
	p := newPacker(listOf("decisions", kept), listOf("settled", settled))
	for p.more() || leftOut > 0 {
		msg := begin(p.room(), kindDecisions, epoch, seq)
		if leftOut > 0 {
			msg = strconv.AppendUint(append(msg, `,"left_out":`...), leftOut, 10)
			leftOut = 0
		}
		msgs = append(msgs, append(p.fill(msg), '}'))
	}
	return msgs, sent
}

// encodeReply writes a reply. Results of single conversations that do not fit
// are left out, which What then says.
func encodeReply(r model.Reply) []byte {
	msg, err := json.Marshal(replyFrame{kindReply, &r})
	if err == nil && checkShape(msg) == nil {
		return msg
	}
	short := model.Reply{ID: r.ID, Accepted: r.Accepted, Version: r.Version, What: r.What}
	if len(short.What) > 4096 {
		short.What = ""
	}
	if r.Refusal != nil {
		short.Refusal = &model.Refusal{Code: r.Refusal.Code, Message: "refused; the explanation was too long to send"}
	}
	if len(r.Items) > 0 {
		short.What += fmt.Sprintf(" (%d results left out, too long to send)", len(r.Items))
	}
	msg, _ = json.Marshal(replyFrame{kindReply, &short})
	return msg
}
