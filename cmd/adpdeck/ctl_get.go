package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/settings"

	"github.com/spf13/cobra"
)

// part is one thing that ctl get prints.
type part struct {
	name string
	data func(*model.State) any
	text func(io.Writer, *model.State)
}

func parts() []part {
	return []part{
		{"settings", func(s *model.State) any { return s.Settings }, printSettings},
		{"workers", func(s *model.State) any { return listed(s.Workers) }, printWorkers},
		{"ranks", func(s *model.State) any { return listed(s.Ranks) }, printRanks},
		{"convs", func(s *model.State) any { return listed(s.Convs) }, printConvs},
		{"history", func(s *model.State) any { return listed(s.Revisions) }, printHistory},
		{"events", func(s *model.State) any { return listed(s.Events) }, printEvents},
		{"findings", func(s *model.State) any { return listed(s.Findings) }, printFindings},
		{"totals", func(s *model.State) any { return s.Totals }, printTotals},
	}
}

// listed is a list as scripts want it: an empty one is [], not null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (f *ctlFlags) get() *cobra.Command {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return &cobra.Command{
		Use: "get WHAT", Short: "print " + strings.Join(names, ", ") + ", or one settings field",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("ctl get: want one of %s, or a settings field", strings.Join(names, ", "))
			}
			return f.show(cmd, args[0], names)
		},
	}
}

func (f *ctlFlags) show(cmd *cobra.Command, what string, names []string) error {
	state, err := f.state(cmd)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	for _, p := range parts() {
		switch {
		case p.name != what:
		case f.output == "json":
			return printJSON(out, p.data(state))
		default:
			w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
			p.text(w, state)
			return w.Flush()
		}
	}
	field, target, err := fieldNamed(what)
	if err != nil {
		return fmt.Errorf("ctl get %q: want one of %s, or a settings field; %s", what, strings.Join(names, ", "), meant(what, names...))
	}
	value := model.FieldText(&state.Settings, field, target)
	if f.output == "json" {
		return printJSON(out, map[string]string{what: value})
	}
	fmt.Fprintln(out, value)
	return nil
}

// fieldNamed reads a field's name; a rank's weight is weight:w0/3.
func fieldNamed(what string) (string, model.Target, error) {
	name, rank, ranked := strings.Cut(what, ":")
	field, ok := model.FieldByName(name)
	if !ok || field.PerTarget != ranked {
		return "", model.Target{}, errors.New("no such field")
	}
	if !ranked {
		return name, model.Target{}, nil
	}
	t, err := model.ParseTarget(rank)
	return name, t, err
}

func (f *ctlFlags) export() *cobra.Command {
	return &cobra.Command{
		Use: "export [FILE]", Short: "print the settings in force as a settings file (YAML)",
		Long: `Prints the settings as they stand. attention_dp_config can be pasted into
TensorRT-LLM's own file, cluster_config holds Dynamo's parameters.

With FILE, one that adpdeck reads, prints that file with what was tuned since put
into it: each value that differs, where it stands or at the end of its block.
Comments, order and everything else stay as they are; FILE itself is not written.`,
		Example: `  adpdeck ctl export
  adpdeck ctl export cluster.yaml > tuned.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("ctl export: %d arguments, want none or one settings file", len(args))
			}
			state, err := f.state(cmd)
			if err != nil {
				return err
			}
			doc, err := exported(state.Settings, args)
			if err != nil {
				return fmt.Errorf("ctl export: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(doc.Bytes())
			return err
		},
	}
}

// exported is a document that says s: a new one, or the file named with s put
// into it.
func exported(s model.Settings, file []string) (*settings.Document, error) {
	if len(file) == 0 {
		return settings.New(s)
	}
	text, err := os.ReadFile(file[0])
	if err != nil {
		return nil, err
	}
	doc, err := settings.Parse(file[0], text)
	if err != nil {
		return nil, err
	}
	return doc, doc.Update(s)
}

// state fetches one snapshot.
func (f *ctlFlags) state(cmd *cobra.Command) (*model.State, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	c, state, err := f.connect(ctx, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	return state, c.Close()
}

func printSettings(w io.Writer, s *model.State) {
	for _, f := range model.Fields() {
		if !f.PerTarget {
			fmt.Fprintf(w, "%s\t%s\n", f.Name, model.FieldText(&s.Settings, f.Name, model.Target{}))
		}
	}
	for _, x := range s.Settings.Weights {
		fmt.Fprintf(w, "weight:%s\t%v\n", shown(x.Target.String()), x.Weight)
	}
}

func printWorkers(w io.Writer, s *model.State) {
	fmt.Fprintln(w, "WORKER\tENGINE\tRANKS\tLIVE\tSTATE\tADDRESS\tSTEERING\tWAITING\tRESTARTS\tWHY")
	for i := range s.Workers {
		x := &s.Workers[i]
		why := x.LivenessWhy
		if x.Liveness == model.LiveUp {
			why = "" // of a loss that is over: the events have it
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", shown(x.ID), shown(x.Engine), x.Ranks, dash(string(x.Liveness)), takes(s, x.ID), dash(shown(x.Address)),
			dash(string(x.Steering)), x.Waiting, x.Restarts, dash(shown(why)))
	}
}

func printRanks(w io.Writer, s *model.State) {
	fmt.Fprintln(w, "RANK\tSTATE\tWEIGHT\tIN FLIGHT\tACTIVE\tTOKENS\tHIT\tPINS\tBY HAND")
	for i := range s.Ranks {
		x := &s.Ranks[i]
		active, tokens := "-", "-"
		if !x.ReportedAt.IsZero() {
			active, tokens = fmt.Sprint(x.Active), fmt.Sprint(x.Tokens)
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%d\t%s\t%s\t%s\t%d\t%d\n", shown(x.Target.String()), rankState(s, x), x.Weight, x.InFlight, active, tokens, percent(x.Hit), x.Pins, x.OperatorPins)
	}
}

func printConvs(w io.Writer, s *model.State) {
	fmt.Fprintln(w, "CONVERSATION\tTENANT\tMODEL\tPIN\tRANK\tTURNS\tMOVES\tLAST")
	for _, x := range s.Convs {
		at := x.Last
		if x.Pin != model.PinNone {
			at = x.Bound
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", shown(x.Key.ID), dash(shown(x.Key.Tenant)), dash(shown(x.Key.Model)), dash(string(x.Pin)), shown(at.String()),
			x.Turns, x.Moves, x.LastAt.Format(time.DateTime))
	}
}

func printHistory(w io.Writer, s *model.State) {
	fmt.Fprintln(w, "VERSION\tTIME\tWHO\tWHAT\tUNDONE BY\tREASON")
	for i := range s.Revisions {
		x := &s.Revisions[i]
		undone := ""
		if x.UndoneBy != 0 {
			undone = fmt.Sprint("v", x.UndoneBy)
		}
		fmt.Fprintf(w, "v%d\t%s\t%s\t%s\t%s\t%s\n", x.Version, x.At.Format(time.DateTime), shown(x.Actor), shown(x.What), dash(undone), shown(x.Reason))
	}
}

func printEvents(w io.Writer, s *model.State) {
	fmt.Fprintln(w, "TIME\tLEVEL\tWHO\tWHAT")
	for i := range s.Events {
		x := &s.Events[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.At.Format(time.DateTime), x.Level, shown(x.Who), shown(x.What))
	}
}

func printFindings(w io.Writer, s *model.State) {
	for i := range s.Findings {
		x := &s.Findings[i]
		at := "cluster"
		if x.Target.Worker != "" {
			at = shown(x.Target.String())
		}
		fmt.Fprintf(w, "%s\t%s\t%s; %s\n", at, x.Code, shown(x.Message), shown(x.Next))
	}
}

func printTotals(w io.Writer, s *model.State) {
	t := &s.Totals
	fmt.Fprintf(w, "requests per second\t%s\nTTFT p50 / p99, ms\t%s / %s\nhit\t%s\nskew\t%s\n", number(t.RequestsPerSec), number(t.TTFTMsP50), number(t.TTFTMsP99), percent(t.Hit), number(t.Skew))
	fmt.Fprintf(w, "queued\t%d\nopen\t%d\nconversations\t%d\npins, by hand\t%d, %d\nkeyless\t%d\nconflicts\t%d\n", t.Queued, t.Open, t.Convs, t.Pins, t.OperatorPins, t.Keyless, t.Conflicts)
	n := &t.Refused
	fmt.Fprintf(w, "refused\t%d: %d no eligible rank, %d overloaded, %d queue full, %d no room, %d left the queue, %d named no worker, rank or model that can be had\n",
		n.Sum(), n.NoEligible, n.Overloaded, n.QueueFull, n.NoRoom, n.LeftQueue, n.Other)
}

// shown makes foreign text harmless for a terminal and for columns.
func shown(s string) string {
	q := fmt.Sprintf("%q", s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func number(m model.Maybe) string {
	if !m.Known() {
		return "-"
	}
	return fmt.Sprintf("%.4g", float64(m))
}

func percent(m model.Maybe) string {
	if !m.Known() {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(m))
}
