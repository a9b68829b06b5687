package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/router/settings"

	"github.com/spf13/cobra"
)

// feedEnv names the variable that holds the feed's address for ctl.
const feedEnv = "ADPDECK_FEED"

// ctlFlags are what every verb of ctl takes.
type ctlFlags struct {
	feed, output, reason, actor string
	tenant, model               string
	expect                      uint64
	timeout                     time.Duration
	unlisted                    bool // a conversation named is not in the state that was looked at
}

func newCtl() *cobra.Command {
	f := &ctlFlags{}
	cmd := &cobra.Command{
		Use:   "ctl VERB",
		Short: "the console's commands, for scripts",
		Long: `Sends one command to a running adpdeck serve (or to any console's feed) and
prints the answer: the same verbs, checks, versions and history as the keys of
the console. The exit status is 1 when the command was refused.

The address is --feed, or ` + feedEnv + `, or serve's default. A feed that asks for a
token is given the one in ` + tokenEnv + `.`,
		Example: `  adpdeck ctl get ranks
  adpdeck ctl set kv_cache_routing_load_balance_weight=2 --reason "hot rank"
  adpdeck ctl pin run-17/agent-0 w0/3
  adpdeck ctl drain w1 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("ctl %q: no such verb; adpdeck help ctl lists them", args[0])
			}
			return errors.New("ctl: want a verb; adpdeck help ctl lists them")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	p := cmd.PersistentFlags()
	p.StringVar(&f.feed, "feed", "", "`ADDRESS` of the feed, HOST:PORT or ws://…")
	p.StringVarP(&f.output, "output", "o", "text", "text or json")
	p.DurationVar(&f.timeout, "timeout", 5*time.Second, "how long to wait for the feed and for the answer")
	cmd.AddCommand(f.get(), f.export())
	for _, v := range f.verbs() {
		cmd.AddCommand(v)
	}
	return cmd
}

// verbs are the sub-commands that change something.
func (f *ctlFlags) verbs() []*cobra.Command {
	ranked := func(verb model.Verb, short string) *cobra.Command {
		return f.verb(verb, string(verb)+" WORKER/RANK|WORKER", short, func(_ *model.State, args []string) (model.Command, error) {
			if len(args) != 1 {
				return model.Command{}, errors.New("want one rank, for example w0/3, or a worker")
			}
			t, err := place(args[0])
			return model.Command{Target: t}, err
		})
	}
	conversations := func(verb model.Verb, use, short string, target func(string) (*model.Target, error)) *cobra.Command {
		cmd := f.verb(verb, use, short, func(s *model.State, args []string) (model.Command, error) {
			return f.conversations(s, args, target)
		})
		cmd.Flags().StringVar(&f.tenant, "tenant", "", "tenant of the conversations")
		cmd.Flags().StringVar(&f.model, "model", "", "model of the conversations")
		return cmd
	}
	return []*cobra.Command{
		f.verb(model.VerbSet, "set NAME=VALUE...", "change settings, all or nothing; weight:w0/3=0.8 for a rank", func(_ *model.State, args []string) (model.Command, error) {
			if len(args) == 0 {
				return model.Command{}, errors.New("want NAME=VALUE; adpdeck ctl get settings lists the names")
			}
			values, err := fieldValues(args)
			return model.Command{Set: values}, err
		}),
		conversations(model.VerbPin, "pin CONVERSATION... WORKER/RANK", "hold conversations on a rank, above every policy", rankArgument),
		conversations(model.VerbUnpin, "unpin CONVERSATION...", "remove the operator's pin", nil),
		conversations(model.VerbEvict, "evict CONVERSATION...", "forget pin and binding: the next turn is placed afresh", nil),
		conversations(model.VerbMigrate, "migrate CONVERSATION... WORKER/RANK|auto", "move them to a rank, or to those with the fewest tokens", func(s string) (*model.Target, error) {
			if s == "auto" {
				return nil, nil
			}
			return rankArgument(s)
		}),
		ranked(model.VerbDrain, "no new conversations there; those bound stay"),
		ranked(model.VerbReady, "take new work there again"),
		ranked(model.VerbResync, "forget what is known of its cache and ask anew"),
		ranked(model.VerbClear, "drop its phantom load"),
		f.verb(model.VerbUndo, "undo [VERSION]", "take a change back, the newest by default", func(_ *model.State, args []string) (model.Command, error) {
			switch len(args) {
			case 0:
				return model.Command{}, nil
			case 1:
				n, err := strconv.ParseUint(strings.TrimPrefix(args[0], "v"), 10, 64)
				if err != nil || n == 0 {
					return model.Command{}, fmt.Errorf("%q is no version; adpdeck ctl get history lists them", args[0])
				}
				return model.Command{Undo: n}, nil
			}
			return model.Command{}, errors.New("want one version")
		}),
		f.verb(model.VerbReload, "reload", "let adpdeck serve read its settings file again", func(_ *model.State, args []string) (model.Command, error) {
			if len(args) > 0 {
				return model.Command{}, errors.New("it takes no argument: the server knows its file")
			}
			return model.Command{}, nil
		}),
	}
}

// verb is one sub-command: read builds the command from the arguments and the
// state as it is.
func (f *ctlFlags) verb(verb model.Verb, use, short string, read func(*model.State, []string) (model.Command, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, verb, func(s *model.State) (model.Command, error) { return read(s, args) })
		},
	}
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the history")
	cmd.Flags().StringVar(&f.actor, "actor", actor(), "who, for the history")
	cmd.Flags().Uint64Var(&f.expect, "expect", 0, "refuse when the `VERSION` is another")
	return cmd
}

func (f *ctlFlags) run(cmd *cobra.Command, verb model.Verb, read func(*model.State) (model.Command, error)) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	c, state, err := f.connect(ctx, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	command, err := read(state)
	if f.unlisted { // a turn that was answered just now is told a moment later
		soon, done := context.WithTimeout(ctx, unlistedWait)
		_ = await(soon, func() bool {
			if v := c.View(); v.State != nil {
				f.unlisted = false
				command, err = read(v.State)
			}
			return !f.unlisted
		})
		done()
	}
	if err != nil {
		return fmt.Errorf("ctl %s: %w", verb, err)
	}
	command.ID, command.Verb, command.Expect, command.Actor, command.Reason = rand.Text(), verb, f.expect, f.actor, f.reason
	reply, ok := model.Reply{}, false
	select {
	case reply, ok = <-c.Do(command):
	case <-ctx.Done():
	}
	if !ok {
		return fmt.Errorf("ctl %s: the link was lost before the answer came: whether it was done is not known; see adpdeck ctl get history", verb)
	}
	// The feed tells what a command did a moment after its answer: wait for this,
	// so that a script that reads next sees it.
	if reply.Accepted {
		_ = await(ctx, func() bool { return c.View().State.Version >= reply.Version })
	}
	f.offer(&command, &reply)
	return f.answer(cmd, verb, &reply)
}

// unlistedWait is how long a conversation that is not listed is waited for: the
// feed tells changes four times a second, a busy machine fewer.
const unlistedWait = time.Second

// await polls until done or ctx ends.
func await(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// answer prints a reply; a refusal is the command's error.
func (f *ctlFlags) answer(cmd *cobra.Command, verb model.Verb, reply *model.Reply) error {
	out := cmd.OutOrStdout()
	if f.output == "json" {
		if err := printJSON(out, reply); err != nil {
			return err
		}
		if !reply.Accepted {
			return errReported
		}
		return nil
	}
	for _, it := range reply.Items {
		if !it.Done && it.Refusal != nil && (reply.Accepted || len(reply.Items) > 1) {
			fmt.Fprintf(cmd.ErrOrStderr(), "adpdeck: ctl %s: %q: %s\n", verb, it.Conv.ID, shown(it.Refusal.Error()))
		}
	}
	if !reply.Accepted {
		return fmt.Errorf("ctl %s: refused: %s", verb, shown(reply.Refusal.Error())) // it quotes names that clients chose
	}
	fmt.Fprintf(out, "v%d %s\n", reply.Version, shown(reply.What))
	return nil
}

// connect waits until the feed is in step and returns its state.
func (f *ctlFlags) connect(ctx context.Context, told io.Writer) (*feed.Client, *model.State, error) {
	if f.output != "text" && f.output != "json" {
		return nil, nil, fmt.Errorf("-o %q: want text or json", f.output)
	}
	address := f.feed
	if address == "" {
		address = os.Getenv(feedEnv)
	}
	if address == "" {
		address = defaultFeed
	}
	c := feed.Dial(ctx, address, feed.ClientOptions{Token: os.Getenv(tokenEnv), ViewPeriod: time.Millisecond})
	var v *feed.View
	err := await(ctx, func() bool {
		v = c.View()
		return v.Link.Phase == feed.PhaseLive && v.State != nil || v.Link.Err != ""
	})
	switch {
	case err != nil:
		err = fmt.Errorf("ctl: %s: no answer within %v", address, f.timeout)
	case v.Link.Err != "":
		why := v.Link.Err
		switch {
		case strings.HasSuffix(why, syscall.ECONNREFUSED.Error()):
			why = "nothing listens there; start adpdeck serve, or name the feed's address with --feed or " + feedEnv
		case !strings.Contains(why, "401"): // whose text says what to do
			why += "; name the feed's address with --feed or " + feedEnv
		}
		err = fmt.Errorf("ctl: %s: %s", address, why)
	default:
		if note := otherVersion(v.Link.Server); note != "" {
			fmt.Fprintln(told, "adpdeck: ctl: "+note)
		}
		return c, v.State, nil
	}
	_ = c.Close()
	return nil, nil, err
}

func rankArgument(s string) (*model.Target, error) {
	t, err := model.ParseTarget(s)
	return &t, err
}

// place is a rank, or a whole worker where no rank is named.
func place(s string) (*model.Target, error) {
	if !strings.Contains(s, "/") {
		return &model.Target{Worker: s, Rank: model.NoRank}, nil
	}
	return rankArgument(s)
}

// conversations reads ids, and the target behind them where there is to be one.
// An id is looked up among the conversations that the router knows.
func (f *ctlFlags) conversations(s *model.State, args []string, target func(string) (*model.Target, error)) (model.Command, error) {
	var c model.Command
	if target != nil && len(args) > 0 {
		t, err := target(args[len(args)-1])
		if err != nil {
			return c, err
		}
		c.Target, args = t, args[:len(args)-1]
	}
	if len(args) == 0 {
		return c, errors.New("want at least one conversation; adpdeck ctl get convs lists them")
	}
	for _, id := range args {
		key, err := f.conversation(s, id)
		if err != nil {
			return c, err
		}
		c.Convs = append(c.Convs, key)
	}
	return c, nil
}

func (f *ctlFlags) conversation(s *model.State, id string) (model.ConvKey, error) {
	var found []model.ConvKey
	for _, c := range s.Convs {
		if c.Key.ID == id && (f.tenant == "" || c.Key.Tenant == f.tenant) && (f.model == "" || c.Key.Model == f.model) {
			found = append(found, c.Key)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0: // it may be older than what the feed carries: the router says
		f.unlisted = true
		return model.ConvKey{Tenant: f.tenant, Model: f.model, ID: id}, nil
	}
	return model.ConvKey{}, fmt.Errorf("%q is %d conversations (%q, tenant %q, is one): say which with --tenant and --model", id, len(found), found[0].Model, found[0].Tenant)
}

// defaultFeed is where adpdeck serve's feed listens unless its file says
// otherwise.
var defaultFeed = settings.DefaultServe().FeedListen
