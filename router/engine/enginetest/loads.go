package enginetest

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/model"
)

// The topics of loads on Dynamo's event plane.
const (
	topicActiveLoad  = "kv_metrics"
	topicForwardPass = "forward-pass-metrics"
)

// heartbeat is how long a rank without a step is silent before it says that it has
// none.
const heartbeat = time.Second

// LoadHabits spoil the loads that are published, those of Dynamo's workers and
// vLLM's forward passes.
type LoadHabits struct {
	// LoadsSilent publishes none, LoadsRank0Only those of rank 0 of each worker,
	// NoHeartbeat nothing of ranks without work.
	LoadsSilent    bool `json:"loads_silent"`
	LoadsRank0Only bool `json:"loads_rank0_only"`
	NoHeartbeat    bool `json:"no_heartbeat"`
	// LoadsBad is version (an unknown one), text (words for counts), cut (the end
	// is missing), named (a worker id that is no number) or negative (counts below
	// 0). Empty: none.
	LoadsBad string `json:"loads_bad"`
}

// speakers publish loads: a socket for each worker behind a Dynamo frontend, or
// for each rank of vLLM. It belongs to Engine.sending.
type speakers struct{ ports []*zmq.Publisher }

// listenLoads opens the sockets of loads.
func (e *Engine) listenLoads() (*speakers, error) {
	if e.cfg.Events.Loads == "" {
		return nil, nil
	}
	s := &speakers{}
	for i := range e.publishers {
		number := i
		if e.cfg.Kind != model.EngineDynamo {
			number += e.cfg.StartRank
		}
		at, err := countUp(e.cfg.Events.Loads, number)
		if err == nil {
			var p *zmq.Publisher
			if p, err = zmq.Listen(zmq.Options{Endpoint: at}); err == nil {
				s.ports = append(s.ports, p)
				continue
			}
		}
		s.close()
		return nil, fmt.Errorf("publish loads of rank %d: %w", number, err)
	}
	return s, nil
}

func (s *speakers) close() {
	if s == nil {
		return
	}
	for _, p := range s.ports {
		p.Close()
	}
}

// speaks reports whether loads are published at all.
func (e *Engine) speaks() bool { return e.cfg.Events.Loads != "" || e.cfg.Events.OnLoad != nil }

// beat sends a heartbeat of each rank without a step, again and again until the
// engine is down.
func (e *Engine) beat() {
	e.mu.Lock()
	now := e.clock.Now()
	for _, k := range e.ranks {
		if !e.habits.Load().NoHeartbeat && now.Sub(k.spoke) >= heartbeat {
			k.step = stepped{}
			k.tell(now, 0)
		}
	}
	if !e.down {
		e.beating = e.clock.AfterFunc(heartbeat, e.beat)
	}
	e.mu.Unlock()
	e.flush()
}

// tell publishes the step that the rank has done, in took, and how much of its
// cache is used where that is another figure than before.
func (k *rank) tell(now time.Time, took time.Duration) {
	h := k.e.habits.Load()
	if !k.e.speaks() || h.LoadsSilent || h.LoadsRank0Only && k.local > 0 {
		return
	}
	k.spoke = now
	k.passes++
	k.put(topicForwardPass, k.forwardPass(h, took), now)
	if used := k.cache.used(); k.e.cfg.Kind == model.EngineDynamo && (!k.toldUsed || used != k.used) {
		k.used, k.toldUsed = used, true
		k.put(topicActiveLoad, k.activeLoad(h), now)
	}
}

// put gives a load its number and envelope, if it has one.
func (k *rank) put(topic string, payload []byte, now time.Time) {
	e := k.e
	if e.habits.Load().LoadsBad == "cut" {
		payload = payload[:len(payload)-3]
	}
	b := Batch{Publisher: k.pub.at, Topic: topic, Payload: payload}
	if e.cfg.Kind == model.EngineDynamo {
		b.Seq = e.spoken[topic]
		e.spoken[topic]++
		b.Payload = envelope(e.instance(k.worker), b.Seq, now, topic, payload)
	} else {
		b.Topic, b.Seq = "", k.passes-1
	}
	e.loadbox = append(e.loadbox, b)
}

// speak sends a load over the wire and to those who listen in process.
func (e *Engine) speak(b *Batch) {
	switch {
	case e.speakers == nil:
	case e.cfg.Kind == model.EngineDynamo:
		e.speakers.ports[b.Publisher].PublishFrames(planeFrames(b, e.instance(b.Publisher))...)
	default:
		e.speakers.ports[b.Publisher].PublishFrames([]byte(b.Topic), binary.BigEndian.AppendUint64(nil, b.Seq), b.Payload)
	}
	if e.cfg.Events.OnLoad != nil {
		e.cfg.Events.OnLoad(*b)
	}
}

func (k *rank) activeLoad(h *Habits) []byte {
	p := msgp.AppendMapHeader(nil, 5)
	p = msgp.AppendUint64(msgp.AppendString(p, "worker_id"), k.e.instance(k.worker))
	p = msgp.AppendInt(msgp.AppendString(p, "dp_rank"), k.number())
	p = count(msgp.AppendString(p, "active_decode_blocks"), k.cache.used(), h)
	p = msgp.AppendNil(msgp.AppendString(p, "active_prefill_tokens"))
	return count(msgp.AppendString(p, "kv_used_blocks"), k.cache.used(), h)
}

// forwardPass is one step as Dynamo's instrumented vLLM encodes it: maps, all
// fields named.
func (k *rank) forwardPass(h *Habits, took time.Duration) []byte {
	version, worker := 1, strconv.FormatUint(k.e.instance(k.worker), 10)
	switch h.LoadsBad {
	case "version":
		version = 2
	case "named":
		worker = "decode-a"
	}
	p := msgp.AppendMapHeader(nil, 7)
	p = msgp.AppendInt(msgp.AppendString(p, "version"), version)
	p = msgp.AppendString(msgp.AppendString(p, "worker_id"), worker)
	p = msgp.AppendInt(msgp.AppendString(p, "dp_rank"), k.number())
	p = msgp.AppendUint64(msgp.AppendString(p, "counter_id"), k.passes)
	p = msgp.AppendFloat64(msgp.AppendString(p, "wall_time"), took.Seconds())
	s := &k.step
	p = msgp.AppendMapHeader(msgp.AppendString(p, "scheduled_requests"), 7)
	p = count(msgp.AppendString(p, "num_prefill_requests"), s.context, h)
	p = count(msgp.AppendString(p, "sum_prefill_tokens"), s.contextTokens, h)
	p = msgp.AppendFloat64(msgp.AppendString(p, "var_prefill_length"), 0)
	p = count(msgp.AppendString(p, "sum_prefill_kv_tokens"), s.contextKV, h)
	p = count(msgp.AppendString(p, "num_decode_requests"), s.generation, h)
	p = count(msgp.AppendString(p, "sum_decode_kv_tokens"), s.generationKV, h)
	p = msgp.AppendFloat64(msgp.AppendString(p, "var_decode_kv_tokens"), 0)
	waiting := 0
	for _, w := range k.waiting {
		waiting += len(w.tokens)
	}
	p = msgp.AppendMapHeader(msgp.AppendString(p, "queued_requests"), 6)
	p = count(msgp.AppendString(p, "num_prefill_requests"), len(k.waiting), h)
	p = count(msgp.AppendString(p, "sum_prefill_tokens"), waiting, h)
	p = msgp.AppendFloat64(msgp.AppendString(p, "var_prefill_length"), 0)
	p = count(msgp.AppendString(p, "num_decode_requests"), 0, h)
	p = count(msgp.AppendString(p, "sum_decode_kv_tokens"), 0, h)
	return msgp.AppendFloat64(msgp.AppendString(p, "var_decode_kv_tokens"), 0)
}

// count appends a count, spoilt as the habits will have it.
func count(p []byte, n int, h *Habits) []byte {
	switch h.LoadsBad {
	case "text":
		return msgp.AppendString(p, strconv.Itoa(n))
	case "negative":
		return msgp.AppendInt(p, -1-n)
	}
	return msgp.AppendInt(p, n)
}

// LoadEndpoint is where a rank's loads are published, or those of a worker behind
// a Dynamo frontend. Empty without any.
func (e *Engine) LoadEndpoint(rank int) string {
	e.sending.Lock()
	defer e.sending.Unlock()
	if e.speakers == nil || rank < 0 || rank >= len(e.speakers.ports) {
		return ""
	}
	return e.speakers.ports[rank].Endpoint()
}
