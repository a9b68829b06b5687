package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"adpdeck/feed"
	"adpdeck/tui"

	"github.com/spf13/cobra"
)

// tokenEnv names the variable that holds a feed's token: a flag would show it
// to everyone on the machine.
const tokenEnv = "ADPDECK_TOKEN"

func newAttach() *cobra.Command {
	s := &screenFlags{}
	cmd := &cobra.Command{
		Use:   "attach URL|FILE",
		Short: "console over a running router, or over a recorded feed",
		Long: `Opens the console over the feed at URL (HOST:PORT, ws:// or wss://), or plays
back the FILE that --record wrote. A feed that asks for a token is given the one
in ` + tokenEnv + `.`,
		Example: `  adpdeck attach 127.0.0.1:7700
  adpdeck attach incident.feed`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return attach(cmd, s, args[0])
		},
	}
	s.registerLook(cmd.Flags())
	return cmd
}

func attach(cmd *cobra.Command, s *screenFlags, where string) error {
	rest()
	log, closeLog, err := s.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	screen, err := s.look(cmd, log)
	if err != nil {
		return err
	}
	switch _, err := os.Stat(where); {
	case err == nil:
		p, err := feed.OpenRecording(where, feed.PlayerOptions{})
		if err != nil {
			return fmt.Errorf("attach: %w", err)
		}
		screen.Client = p
	case errors.Is(err, fs.ErrNotExist) && !strings.Contains(where, ":"):
		return fmt.Errorf("attach: %s is no file here and no address: want HOST:PORT, ws://HOST:PORT or a recording", where)
	case errors.Is(err, fs.ErrNotExist):
		screen.Client = feed.Dial(cmd.Context(), where, feed.ClientOptions{Token: os.Getenv(tokenEnv), ViewPeriod: tui.ReadPeriod})
	default:
		return fmt.Errorf("attach: %w", err)
	}
	screen.Address = where
	return s.showScreen(cmd.Context(), screen)
}

// rest makes a process that only shows a screen cheap: it does a millisecond of
// work a few times a second, for which a second processor would only be woken
// to find nothing, and its small heap need not be swept every other second.
// Who sets the runtime's own variables has the last word.
func rest() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}
