package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"adpdeck/feed"
	"adpdeck/router/sim"
	"adpdeck/tui"

	"github.com/spf13/cobra"
)

// consoleMaxActive is the hard cap of a rank when a trace is replayed on the
// screen: low enough that a load bar says something. A headless replay has so
// many slots that the cap does not bind.
const consoleMaxActive = 64

// runConsole opens the console over an embedded router and a simulated
// cluster, driven by the trace at path, or by generated conversations. The
// console goes through the websocket like any other.
func runConsole(cmd *cobra.Command, c *clusterFlags, s *screenFlags, path string) error {
	if err := c.check(false); err != nil {
		return err
	}
	log, closeLog, err := s.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	screen, err := s.look(cmd, log)
	if err != nil {
		return err
	}
	traffic, cfg, tr, err := c.traffic(path)
	if err != nil {
		return err
	}
	if path != "" {
		cfg.HardCap = consoleMaxActive
	}
	for _, line := range badRows(tr, nil) {
		log.Warn(line)
	}
	cl, err := c.build(traffic, cfg, time.Now(), 1, true)
	if err != nil {
		return err
	}
	runner, err := sim.NewRunner(cl.sim, wall(), c.speed)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", s.listen)
	if err != nil {
		return fmt.Errorf("feed: %w; choose another address with --listen", err)
	}
	recorder, closeRecording, err := s.recorder()
	if err != nil {
		return err
	}
	defer closeRecording()
	token := os.Getenv(tokenEnv) // guards a feed beyond loopback
	srv := feed.NewServer(feed.From(desk{cl.live, runner}), feed.ServerOptions{
		Version: version(), Role: "operator", Recorder: recorder, Token: token,
	})
	screen.Embedded = true
	screen.Address = ln.Addr().String()

	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	screen.Client = feed.Dial(ctx, screen.Address, feed.ClientOptions{Token: token, ViewPeriod: tui.ReadPeriod})
	return s.showScreen(ctx, screen,
		tui.Job{Name: "simulation", Run: runner.Run},
		tui.Job{Name: "feed", Run: func(ctx context.Context) error { return serve(ctx, srv, ln) }},
	)
}

// serve says where a token that is needed comes from.
func serve(ctx context.Context, srv *feed.Server, ln net.Listener) error {
	err := srv.Serve(ctx, ln)
	if errors.Is(err, feed.ErrToken) {
		return fmt.Errorf("%w; %s holds it", err, tokenEnv)
	}
	return err
}

// wall is the machine's own clock.
func wall() sim.Wall {
	return sim.Wall{
		Now: time.Now,
		Tick: func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTicker(d)
			return t.C, t.Stop
		},
	}
}

// recorder starts the recording that was asked for; without one both results
// do nothing.
func (s *screenFlags) recorder() (*feed.Recorder, func(), error) {
	if s.record == "" {
		return nil, func() {}, nil
	}
	f, err := os.OpenFile(s.record, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("record: %w; name a new file: a recording is never written over another", err)
	}
	return feed.NewRecorder(f, feed.RecorderOptions{Version: version()}), func() { _ = f.Close() }, nil
}

// openLog opens the log file. The terminal never sees the log; where no cache
// directory is known and none was named, there is no log.
func (s *screenFlags) openLog() (*slog.Logger, func(), error) {
	path := s.logFile
	if path == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return slog.New(slog.NewTextHandler(io.Discard, nil)), func() {}, nil
		}
		dir = filepath.Join(dir, "adpdeck")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, fmt.Errorf("log: %w; name a file with --log", err)
		}
		path = filepath.Join(dir, "console.log")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("log: %w; name another file with --log", err)
	}
	return slog.New(slog.NewTextHandler(f, nil)), func() { _ = f.Close() }, nil
}
