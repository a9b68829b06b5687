package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"adpdeck/themes"
)

func newTheme() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "theme",
		Short: "check a theme file before the console uses it",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("theme %q: no such command; there is adpdeck theme lint THEME", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newThemeLint())
	return cmd
}

func newThemeLint() *cobra.Command {
	return &cobra.Command{
		Use:   "lint THEME",
		Short: "say what is wrong or hard to read in a theme",
		Long: `Reads a theme, a FILE or the name of one that is built in, and says what would be
hard to read: contrast below 4.5 for text or 3 for bars, and ok, warn and crit that
look alike with one of the common colour-vision deficiencies. The exit status is 1
when there is something to say.`,
		Example: `  adpdeck theme lint mine.yaml
  adpdeck theme lint night`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := themes.Load(args[0])
			if err != nil {
				return err
			}
			found := themes.Lint(f)
			for _, line := range found {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", args[0], line); err != nil {
					return err
				}
			}
			if len(found) > 0 {
				return fmt.Errorf("theme lint: %s: %d findings", args[0], len(found))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: nothing to say\n", args[0])
			return err
		},
	}
}
