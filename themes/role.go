package themes

// Role is what a piece of the screen means. Views paint roles, themes give
// them colours, so a new view needs no new field in a theme.
type Role uint8

// The roles. Names in theme files are those that String writes.
const (
	Text        Role = iota // anything without another meaning
	Dim                     // secondary words, units, what is off
	Strong                  // the one figure to read first
	Title                   // column heads and titles in rules
	Rule                    // lines between parts, frames of dialogs
	Context                 // the label of the context in the header
	Tab                     // a view that is not shown
	TabActive               // the view that is shown
	Cursor                  // the row under the cursor; its ground is the whole row's
	Mark                    // the sign of a marked row
	BarFill                 // the filled part of a bar
	BarHot                  // the same above the fair share's limit
	BarTrack                // the empty part of a bar
	BarTick                 // the fair-share tick
	Trend                   // sparklines
	LinkLive                // badge: live
	LinkSlow                // badge: frames come late
	LinkStale               // badge: the figures are old
	LinkFrozen              // badge: frozen or a replay
	OK                      // a thing that went well
	Warn                    // a thing to look at
	Crit                    // a thing to act on
	Staged                  // a value that is not applied yet
	Key                     // a key in hints and help
	ButtonFocus             // the button that fires on enter
	Input                   // text being typed
	numRoles
)

// NumRoles is the number of roles.
const NumRoles = int(numRoles)

// graphic reports whether the role paints lines and bars only, for which a
// contrast of 3 is enough.
func (r Role) graphic() bool {
	switch r {
	case Rule, BarFill, BarHot, BarTrack, BarTick, Trend:
		return true
	}
	return false
}

// String returns the role's name in theme files.
func (r Role) String() string {
	names := [NumRoles]string{
		Text: "text", Dim: "dim", Strong: "strong", Title: "title", Rule: "rule", Context: "context",
		Tab: "tab", TabActive: "tab.active", Cursor: "cursor", Mark: "mark",
		BarFill: "bar.fill", BarHot: "bar.hot", BarTrack: "bar.track", BarTick: "bar.tick", Trend: "trend",
		LinkLive: "link.live", LinkSlow: "link.slow", LinkStale: "link.stale", LinkFrozen: "link.frozen",
		OK: "ok", Warn: "warn", Crit: "crit", Staged: "staged", Key: "key", ButtonFocus: "button.focus", Input: "input",
	}
	if int(r) >= NumRoles {
		return "role?"
	}
	return names[r]
}

// Roles returns every role, in order.
func Roles() []Role {
	all := make([]Role, NumRoles)
	for i := range all {
		all[i] = Role(i)
	}
	return all
}

func roleNamed(name string) (Role, bool) {
	for _, r := range Roles() {
		if r.String() == name {
			return r, true
		}
	}
	return 0, false
}
