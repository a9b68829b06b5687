package main

import (
	"context"
	"log/slog"
	"os"
	"os/user"

	"adpdeck/themes"
	"adpdeck/tui"

	"github.com/spf13/cobra"
)

// look resolves theme, colours and glyphs before anything else starts, so that
// a typing error is told on a whole terminal.
func (s *screenFlags) look(cmd *cobra.Command, log *slog.Logger) (tui.Options, error) {
	var opt tui.Options
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
	opt = tui.Options{Theme: theme, Depth: depth, Glyphs: glyphs, Actor: actor(), Log: log, Context: s.context}
	for _, n := range themes.Names() {
		t, err := themes.Load(n)
		if err != nil {
			return opt, err
		}
		opt.Themes = append(opt.Themes, t)
	}
	return opt, nil
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
func showScreen(ctx context.Context, opt tui.Options, jobs ...tui.Job) error {
	opt.Views = tui.Views()
	return tui.Run(ctx, tui.Terminal{In: os.Stdin, Out: os.Stdout, Env: os.Environ()}, opt, jobs...)
}
