package main

import (
	"fmt"
	"os"
	"time"

	"adpdeck/router/trace"

	"github.com/charmbracelet/x/term"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

func newReplay() *cobra.Command {
	c := &clusterFlags{}
	s := &screenFlags{}
	var headless bool
	var output, list string
	cmd := &cobra.Command{
		Use:   "replay TRACE",
		Short: "drive the simulated cluster with a trace file",
		Long: `Replays a trace on the simulated cluster: Mooncake JSONL, agent sessions JSONL
or Azure's LLM inference CSV, recognised by content. A row that cannot be used
is counted and named, and the rest is used. The name generated stands for 8,000
requests of invented conversations, others for each --seed.

With --headless it runs as fast as the machine can and prints the figures.
With --compare FILE it plays the trace on several clusters in one call. FILE is
a YAML list; each entry has a name, any keys of a settings file, and workers,
ranks, blocks, max_active, speed, policy (also rotate) and placement. What an
entry does not say is as the flags say.`,
		Example: `  adpdeck replay conversation_trace.jsonl --speed 4
  adpdeck replay conversation_trace.jsonl --headless -o json --ranks 32 --policy conversation
  adpdeck replay conversation_trace.jsonl --headless --mode lockstep --set lockstep_weight=2
  adpdeck replay conversation_trace.jsonl --compare modes.yaml --speed 8`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s: want json, or leave it out for a table", output)
			}
			if list != "" {
				return replayCompared(cmd, c, args[0], list, output == "json")
			}
			if headless || output != "" {
				return replayHeadless(cmd, c, args[0], output == "json")
			}
			return runConsole(cmd, c, s, args[0])
		},
	}
	c.register(cmd.Flags())
	s.register(cmd.Flags())
	cmd.Flags().Lookup("workers").DefValue = "1"
	c.workers = 1
	cmd.Flags().BoolVar(&headless, "headless", false, "no screen: run as fast as the machine can and print the figures")
	cmd.Flags().StringVar(&list, "compare", "", "play the trace once for each entry of `FILE` and print one table (headless)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json prints one object instead of a table (headless)")
	return cmd
}

func replayHeadless(cmd *cobra.Command, c *clusterFlags, path string, asJSON bool) error {
	if err := c.check(true); err != nil {
		return err
	}
	t, cfg, tr, err := c.traffic(path)
	if err != nil {
		return err
	}
	// Every headless run begins at the same virtual time: two runs are one.
	cl, err := c.build(t, cfg, cfg.Start, c.speed, false)
	if err != nil {
		return err
	}
	bar, done := progress(cmd, t.Total())
	began := time.Now()
	err = cl.sim.Run(cmd.Context(), bar)
	took := time.Since(began)
	done()
	if err != nil {
		return err
	}
	report := cl.sim.Report(took)
	if c.policy == policyRotate {
		report.Policy = policyRotate
	}
	for _, line := range badRows(tr, cl.sim.Refusal()) {
		fmt.Fprintln(cmd.ErrOrStderr(), "adpdeck:", line)
	}
	if asJSON {
		return report.WriteJSON(cmd.OutOrStdout())
	}
	return report.WriteTable(cmd.OutOrStdout())
}

// badRows says how the trace was read and which rows were left out and why, a
// line each. tr is nil for generated traffic, refused for no refusal.
func badRows(tr *trace.Trace, refused error) (lines []string) {
	if tr == nil {
		return nil
	}
	for _, note := range tr.Notes {
		lines = append(lines, fmt.Sprintf("%s: %s", tr.Name, note))
	}
	for _, b := range tr.Bad.First {
		lines = append(lines, fmt.Sprintf("%s: %s", tr.Name, b))
	}
	if n := tr.Bad.Count - len(tr.Bad.First); n > 0 {
		lines = append(lines, fmt.Sprintf("%s: %d more rows were left out", tr.Name, n))
	}
	if refused != nil {
		lines = append(lines, fmt.Sprintf("the first row that was not routed: %v", refused))
	}
	return lines
}

// progress draws a bar on standard error when that is a terminal.
func progress(cmd *cobra.Command, total int) (told func(sent, total int), done func()) {
	f, ok := cmd.ErrOrStderr().(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return nil, func() {}
	}
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetDescription("replay"),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	return func(sent, _ int) { _ = bar.Set(sent) }, func() { _ = bar.Finish() }
}
