// Command adpdeck is the operator's console for attention-data-parallel LLM
// clusters: it routes, shows why, and lets an operator change it.
//
// Without a sub-command it opens the console over an embedded router and a
// simulated cluster. The command line only wires rooms together; what it wires
// is documented in the rooms.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// endings are the signals that end the program in good order, so that the
// terminal is put back. A hang-up counts only where it was not ignored: a run
// under nohup goes on.
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// errReported is returned by a command that has already said what went wrong,
// line by line; the exit status is 1 and nothing more is printed.
var errReported = errors.New("already reported")

// run is main without the process: it returns the exit status, 0 or 1.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errReported):
		return 1
	}
	fmt.Fprintf(errOut, "adpdeck: %v\n", err)
	return 1
}
