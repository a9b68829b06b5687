package main

import (
	"fmt"
	"os"
	"time"

	"adpdeck/router/sim"
	"adpdeck/router/trace"

	"github.com/charmbracelet/x/term"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

func newReplay() *cobra.Command {
	c := &clusterFlags{}
	s := &screenFlags{}
	var headless bool
	var output string
	cmd := &cobra.Command{
		Use:   "replay TRACE",
		Short: "drive the simulated cluster with a trace file",
		Long: `Replays a trace on the simulated cluster: Mooncake JSONL, agent sessions JSONL
or Azure's LLM inference CSV, recognised by content. A row that cannot be used
is counted and named, and the rest is used.

With --headless it runs as fast as the machine can and prints the figures.`,
		Example: `  adpdeck replay conversation_trace.jsonl --speed 4
  adpdeck replay conversation_trace.jsonl --headless -o json --ranks 32 --policy conversation`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s: want json, or leave it out for a table", output)
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
	nameBadRows(cmd, tr, cl.sim)
	if asJSON {
		return report.WriteJSON(cmd.OutOrStdout())
	}
	return report.WriteTable(cmd.OutOrStdout())
}

// nameBadRows says on standard error which rows were left out and why.
func nameBadRows(cmd *cobra.Command, tr *trace.Trace, s *sim.Sim) {
	w := cmd.ErrOrStderr()
	for _, note := range tr.Notes {
		fmt.Fprintf(w, "adpdeck: %s: %s\n", tr.Name, note)
	}
	for _, b := range tr.Bad.First {
		fmt.Fprintf(w, "adpdeck: %s: %s\n", tr.Name, b)
	}
	if n := tr.Bad.Count - len(tr.Bad.First); n > 0 {
		fmt.Fprintf(w, "adpdeck: %s: %d more rows were left out\n", tr.Name, n)
	}
	if err := s.Refusal(); err != nil {
		fmt.Fprintf(w, "adpdeck: the first row that was not routed: %v\n", err)
	}
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
