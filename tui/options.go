// Package tui is the console's program: one Bubble Tea model around the views.
//
// It reads the newest immutable view of a client four times a second through a
// pointer, so nothing it does can hold up the router: no message is sent per
// event, no lock is shared. It draws header, tabs, status and hints, keeps the
// dialogs, the staged values, the trends and the last five minutes, sends
// commands and tells what became of them. What stands between is drawn by the
// views (package view), which know nothing of Bubble Tea.
//
// Model belongs to Bubble Tea's goroutine. Run restores the terminal on every
// way out, also when a goroutine started through it panics.
package tui

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"time"

	_ "adpdeck/tui/background" // before Bubble Tea

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/themes"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// Client is what the console consumes: a feed client or the player of a
// recording.
type Client interface {
	// View returns the newest view, never nil, without waiting.
	View() *feed.View
	// Do sends a command; the channel gives one reply, or is closed without one
	// when the link is lost and the outcome is unknown.
	Do(model.Command) <-chan model.Reply
	// RetryNow ends the wait before the next try to connect.
	RetryNow()
	// Close ends the client.
	Close() error
}

// player is a client that plays a recording.
type player interface {
	Pause(paused bool)
	Speed(x float64)
}

// Options describe a console. Client, Views and Theme are needed.
type Options struct {
	Client Client
	Views  []view.View
	// Theme and Depth colour it; Themes are what ctrl+t goes through by name.
	Theme *themes.File
	// ThemePath is the file that Theme was read from, looked at once a second so
	// that an edit shows at once; empty for a built-in one.
	ThemePath string
	Themes    []*themes.File
	Depth     themes.Depth
	Glyphs    themes.Glyphs
	// Keys is the command table with the keys in force; nil is the default one.
	Keys *command.Table
	// Note is told once when the console opens, as something that went wrong;
	// empty is nothing.
	Note string
	// Context is the label in the header; empty takes the source's kind.
	Context string
	// Actor stands in commands and so in the audit.
	Actor string
	// ExportDir is where exports are written; empty is the working directory.
	ExportDir string
	// Embedded says that traffic runs through this process: quitting asks.
	Embedded bool
	// Address is where the client connects to, for the waiting page.
	Address string
	// Log never reaches the terminal; nil discards.
	Log *slog.Logger
	// Now is the wall clock, NewID makes command ids; nil takes the real ones.
	Now   func() time.Time
	NewID func() string
}

func (o *Options) defaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = randomID
	}
	if o.Glyphs.Unknown == "" {
		o.Glyphs = themes.Unicode()
	}
	if o.Keys == nil {
		o.Keys = command.New()
	}
	if o.Actor == "" {
		o.Actor = "operator"
	}
}

func randomID() string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return "tui-" + hex.EncodeToString(b[:])
}
