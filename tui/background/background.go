// Package background tells Lip Gloss that the terminal's ground is dark, before
// anything can ask the terminal.
//
// Bubble Tea's package init asks the terminal for its background and waits up
// to five seconds on one that does not answer. Go initialises packages that do
// not depend on each other in the order of their import paths, so this package,
// whose path sorts before Bubble Tea's, answers the question first. Themes are
// chosen without it. Every program that links Bubble Tea imports this package.
package background

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
