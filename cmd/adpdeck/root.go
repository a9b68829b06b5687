package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	var c clusterFlags
	var s screenFlags
	root := &cobra.Command{
		Use:   "adpdeck",
		Short: "operator console for attention-data-parallel LLM clusters",
		Long: `adpdeck routes requests to (worker, dp_rank) targets as TensorRT-LLM's
attention-DP router does, shows live what it does and why, and lets an operator
change it while it runs: weights, placement policy, pins.

Without a command it opens the console over a simulated cluster. No set-up, no
network: the feed listens on a free loopback port. adpdeck dev cluster does the
same over real HTTP with fakes of engines, adpdeck serve stands before real ones.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q: no such command; adpdeck help lists them", args[0])
			}
			return nil
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runConsole(cmd, &c, &s, "")
		},
	}
	root.Version = version()
	root.SetVersionTemplate(versionLine())
	c.register(root.Flags())
	s.register(root.Flags())
	root.AddCommand(newReplay(), newAttach(), newRoute(), newVersion(), newCtl(), newServe(), newTheme(), newDev())
	return root
}

// oneArgument refuses any other number and shows the form.
func oneArgument(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: %d arguments, want one: %s", cmd.Name(), len(args), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
	return nil
}
