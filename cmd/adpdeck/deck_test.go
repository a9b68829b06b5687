package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/router/sim"
	"adpdeck/router/trace"
)

// chats is traffic of conversations c0, c1, …: all of them take a turn every
// second, in order, and start with the same system prompt.
type chats struct {
	convs, turns int
	sent         int
}

func (c *chats) Total() int { return c.convs * c.turns }

func (c *chats) Next(row *trace.Row) bool {
	if c.sent == c.Total() {
		return false
	}
	conv, turn := c.sent%c.convs, c.sent/c.convs
	c.sent++
	blocks := []uint64{trace.Chain(0, 1)}
	for i := range turn + 1 {
		blocks = append(blocks, trace.Chain(blocks[i], uint64(1000*(conv+1)+i)))
	}
	*row = trace.Row{
		At:   time.Duration(turn)*time.Second + time.Duration(conv)*20*time.Millisecond,
		Conv: model.ConvKey{Tenant: "t", ID: fmt.Sprintf("c%d", conv)}, Turn: turn + 1,
		PromptTokens: 512*len(blocks) + 1, OutputTokens: 8, Blocks: blocks, BlockTokens: 512,
	}
	return true
}

func chat(i int) model.ConvKey { return model.ConvKey{Tenant: "t", ID: fmt.Sprintf("c%d", i)} }

// deck is the whole of adpdeck but its screen: simulator, live router, feed
// server and feed client, joined by a real websocket. The virtual clock moves
// only when told to.
type deck struct {
	t      *testing.T
	cl     *cluster
	client *feed.Client
	addr   string // of the feed
	now    time.Duration
	cmds   int
}

func newDeck(t *testing.T, policy string, traffic sim.Traffic, change ...func(*clusterFlags)) *deck {
	t.Helper()
	flags := &clusterFlags{workers: 2, ranks: 4, seed: 1, policy: policy}
	for _, f := range change {
		f(flags)
	}
	cl, err := flags.build(traffic, sim.DefaultConfig(), sim.DefaultConfig().Start, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	srv := feed.NewServer(feed.From(cl.live), feed.ServerOptions{Role: "operator"})
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, ln) }()
	d := &deck{t: t, cl: cl, addr: ln.Addr().String(), client: feed.Dial(ctx, ln.Addr().String(), feed.ClientOptions{ViewPeriod: time.Millisecond})}
	t.Cleanup(func() {
		_ = d.client.Close()
		stop()
		<-served
	})
	d.see("the first snapshot", func(v *feed.View) bool { return v.State != nil })
	return d
}

// advance moves the virtual clock on.
func (d *deck) advance(by time.Duration) {
	d.t.Helper()
	d.now += by
	if _, err := d.cl.sim.Advance(d.now, 0); err != nil {
		d.t.Fatal(err)
	}
	d.cl.sim.Feed()
}

// see waits until the client shows what is asked for.
func (d *deck) see(what string, shows func(*feed.View) bool) *feed.View {
	d.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if v := d.client.View(); shows(v) {
			return v
		}
	}
	d.t.Fatalf("the client never saw %s; link %+v", what, d.client.View().Link)
	return nil
}

// do sends a command through the websocket under a new id.
func (d *deck) do(cmd model.Command) model.Reply {
	d.t.Helper()
	d.cmds++
	cmd.ID, cmd.Actor = fmt.Sprintf("cmd-%d", d.cmds), "ann"
	return d.send(cmd)
}

func (d *deck) send(cmd model.Command) model.Reply {
	d.t.Helper()
	reply, ok := <-d.client.Do(cmd)
	if !ok {
		d.t.Fatalf("%s: no answer", cmd.Verb)
	}
	return reply
}

// must sends a command that has to be accepted and waits until the client sees
// its version.
func (d *deck) must(cmd model.Command) model.Reply {
	d.t.Helper()
	reply := d.do(cmd)
	if !reply.Accepted {
		d.t.Fatalf("%s refused: %v", cmd.Verb, reply.Refusal)
	}
	d.see(fmt.Sprintf("v%d (%s)", reply.Version, reply.What), func(v *feed.View) bool { return v.State.Version == reply.Version })
	return reply
}

func (d *deck) set(field, value string, target *model.Target) model.Reply {
	d.t.Helper()
	return d.must(model.Command{Verb: model.VerbSet, Set: []model.FieldValue{{Field: field, Value: value, Target: target}}})
}

func (d *deck) undo(version uint64) {
	d.t.Helper()
	d.must(model.Command{Verb: model.VerbUndo, Undo: version})
}

func find(s *model.State, i int) *model.Conv {
	at := slices.IndexFunc(s.Convs, func(c *model.Conv) bool { return c.Key == chat(i) })
	if at < 0 {
		return nil
	}
	return s.Convs[at]
}

// known is conversation i as the router has it.
func (d *deck) known(i int) *model.Conv {
	d.t.Helper()
	c := find(d.cl.live.Snapshot(), i)
	if c == nil {
		d.t.Fatalf("c%d is not known", i)
	}
	return c
}

// conv is conversation i as the client sees it once it has had its turns.
func (d *deck) conv(i int) *model.Conv {
	d.t.Helper()
	now := d.known(i)
	var seen *model.Conv
	d.see(fmt.Sprintf("%+v", now), func(v *feed.View) bool {
		seen = find(v.State, i)
		return seen != nil && seen.Turns == now.Turns && seen.Last == now.Last && seen.Pin == now.Pin && seen.Bound == now.Bound
	})
	return seen
}

// lasts is where the last turn of each of the first n conversations ran.
func (d *deck) lasts(n int) []model.Target {
	out := make([]model.Target, n)
	for i := range out {
		out[i] = d.known(i).Last
	}
	d.conv(n - 1)
	return out
}
