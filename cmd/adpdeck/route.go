package main

import (
	"fmt"

	"adpdeck/router/adp/jsonl"

	"github.com/spf13/cobra"
)

func newRoute() *cobra.Command {
	var explain bool
	cmd := &cobra.Command{
		Use:   "route",
		Short: "JSON lines in, placements out: what would TensorRT-LLM have done?",
		Long: `Reads one router object with its steps per line on standard input and writes
its placements, one line each: assignments by rank, the expected value and the
state left behind. Admission and balance lines are recognised by their fields.
Where TensorRT-LLM raises, the step carries its error instead.

A malformed line gives a line that names its number and the cause; the rest
goes on, and the exit status is 1.`,
		Example: `  adpdeck route < vectors.jsonl > placements.jsonl
  zcat vectors.jsonl.gz | adpdeck route --explain | head -1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			malformed, err := jsonl.Run(cmd.InOrStdin(), cmd.OutOrStdout(), jsonl.Options{Explain: explain, Parity: true})
			if err != nil {
				return fmt.Errorf("route: %w", err)
			}
			if malformed > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "adpdeck: route: malformed lines: %d, each named in the output\n", malformed)
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&explain, "explain", false, "add the decision record of every request")
	return cmd
}
