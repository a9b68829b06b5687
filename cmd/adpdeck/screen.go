package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"time"

	"adpdeck/themes"
	"adpdeck/tui"
	"adpdeck/tui/keymap"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// look resolves theme, colours, glyphs and keys before anything else starts, so that
// a typing error is told on a whole terminal.
func (s *screenFlags) look(cmd *cobra.Command, log *slog.Logger) (tui.Options, error) {
	var opt tui.Options
	if s.every < time.Second {
		return opt, fmt.Errorf("--every %v: want 1s or more", s.every)
	}
	env := os.Environ()
	depth, err := themes.DetectDepth(s.color, cmd.OutOrStdout(), env)
	if err != nil {
		return opt, err
	}
	name := s.theme
	if name == "auto" {
		name = themes.DefaultName(depth, env)
	}
	theme, err := themes.Load(name)
	if err != nil {
		return opt, err
	}
	glyphs, err := themes.ChooseGlyphs(s.glyphs, env)
	if err != nil {
		return opt, err
	}
	keys, err := s.keys()
	if err != nil {
		return opt, err
	}
	opt = tui.Options{Keys: keys.Table, Note: keys.Clash, Theme: theme, Depth: depth, Glyphs: glyphs, Actor: actor(), Log: log, Context: s.context}
	for _, n := range themes.Names() {
		t, err := themes.Load(n)
		if err != nil {
			return opt, err
		}
		opt.Themes = append(opt.Themes, t)
	}
	return opt, nil
}

// keys reads the console file: the one that was named, or the user's where
// there is one.
func (s *screenFlags) keys() (*keymap.Keys, error) {
	path := s.console
	if path == "" {
		path = keymap.DefaultPath()
	}
	if path == "" {
		return &keymap.Keys{}, nil
	}
	k, err := keymap.Load(path)
	var wrong *keymap.Error
	switch {
	case s.console == "" && errors.Is(err, fs.ErrNotExist):
		return &keymap.Keys{}, nil
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("%w; mend it, or move the file away for the default keys", err)
	}
	return k, err
}

// actor is who stands in the history: the user of this machine.
func actor() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "operator"
}

// showScreen runs the console until the operator quits, ctx ends or a job
// fails.
func (s *screenFlags) showScreen(ctx context.Context, opt tui.Options, jobs ...tui.Job) error {
	opt.Views = tui.Views()
	if s.plain {
		return tui.RunPlain(ctx, os.Stdin, os.Stdout, opt, tui.PlainOptions{Every: s.every, Prompt: term.IsTerminal(os.Stdin.Fd())}, jobs...)
	}
	return tui.Run(ctx, tui.Terminal{In: os.Stdin, Out: os.Stdout, Env: os.Environ()}, opt, jobs...)
}
