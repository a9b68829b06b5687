package command

import "strconv"

// Commands that look.
const (
	Down      ID = "down"
	Up        ID = "up"
	First     ID = "first"
	Last      ID = "last"
	PageDown  ID = "page-down"
	PageUp    ID = "page-up"
	Open      ID = "open"
	Back      ID = "back"
	Filter    ID = "filter"
	Sort      ID = "sort"
	SortLeft  ID = "sort-left"
	SortRight ID = "sort-right"
	Reverse   ID = "reverse"
	Mark      ID = "mark"
	MarkRange ID = "mark-range"
	MarkAll   ID = "mark-all"
	Follow    ID = "follow"
	Freeze    ID = "freeze"
	StepBack  ID = "step-back"
	StepOn    ID = "step-on"
	LeapBack  ID = "leap-back"
	LeapOn    ID = "leap-on"
	GoTime    ID = "go-to-time"
	Mouse     ID = "mouse"
	Copy      ID = "copy"
	Export    ID = "export"
	NextMatch ID = "next-match"
	PrevMatch ID = "previous-match"
	Odd       ID = "odd"
	Alert     ID = "alert"
	OneKind   ID = "one-kind"
	OtherTail ID = "other-tail"
	NextPane  ID = "next-pane"
	Columns   ID = "columns"
	Side      ID = "side"
	Theme     ID = "theme"
	Help      ID = "help"
)

// Commands that act.
const (
	Pin       ID = "pin"
	Unpin     ID = "unpin"
	Evict     ID = "evict"
	Migrate   ID = "migrate"
	Weight    ID = "weight"
	Drain     ID = "drain"
	Ready     ID = "ready"
	Resync    ID = "resync"
	Undo      ID = "undo"
	Apply     ID = "apply"
	StepLess  ID = "step-less"
	StepMore  ID = "step-more"
	LeapLess  ID = "leap-less"
	LeapMore  ID = "leap-more"
	Edit      ID = "set"
	Default   ID = "default"
	Unstage   ID = "unstage"
	Policy    ID = "policy"
	Slower    ID = "slower"
	Faster    ID = "faster"
	Pause     ID = "pause"
	Palette   ID = "command"
	NextView  ID = "next-view"
	PrevView  ID = "previous-view"
	Retry     ID = "retry"
	Redraw    ID = "redraw"
	Suspend   ID = "suspend"
	Quit      ID = "quit"
	Interrupt ID = "interrupt"
)

// ViewID is the command that shows the n-th view, counted from 1.
func ViewID(n int) ID { return ID("view-" + strconv.Itoa(n)) }

func lists() []View    { return []View{Ranks, Convs, Decisions, Index, Events, Workers} }
func sorted() []View   { return []View{Ranks, Convs, Index, Workers} }
func onRanks() []View  { return []View{Ranks} }
func onFleet() []View  { return []View{Ranks, Workers} }
func onIndex() []View  { return []View{Index} }
func onConvs() []View  { return []View{Convs} }
func onKnobs() []View  { return []View{Tuning} }
func onEvents() []View { return []View{Events} }

func looking() []Command {
	return []Command{
		{ID: Down, Keys: []string{"j", "down"}, Help: "move down", Leads: []ID{Up, First, Last}, Line: "move, first, last"},
		{ID: Up, Keys: []string{"k", "up"}, Help: "move up"},
		{ID: First, Keys: []string{"g", "home"}, Help: "go to the first"},
		{ID: Last, Keys: []string{"G", "end"}, Help: "go to the last"},
		{ID: PageDown, Keys: []string{"ctrl+d", "pgdown"}, Help: "half a page down", Leads: []ID{PageUp}, Line: "half a page"},
		{ID: PageUp, Keys: []string{"ctrl+u", "pgup"}, Help: "half a page up"},
		{ID: Filter, Keys: []string{"/"}, Help: "show only what matches", Hint: "filter", Weight: 100, Leads: []ID{NextMatch, PrevMatch}, Line: "filter, next, back", Views: lists()},
		{ID: NextMatch, Keys: []string{"n"}, Help: "next match of the filter", Hint: "next", HintWith: PrevMatch, HintJoin: "/", Weight: 72, Views: lists(), Off: needsFilter},
		{ID: PrevMatch, Keys: []string{"N"}, Help: "previous match of the filter", Views: lists(), Off: needsFilter},
		{ID: Odd, Keys: []string{"e"}, Words: map[View]string{Decisions: "next odd", Index: "next odd", Events: "next odd", Workers: "next odd"}, Weight: 77, Help: "next odd thing in this list", Leads: []ID{Alert}, Line: "next odd, next alert", Views: lists(), Off: needsState},
		{ID: Alert, Keys: []string{"!"}, Words: map[View]string{Index: "next alert", Events: "next alert", Workers: "next alert"}, Weight: 58, Help: "next finding, warning or error", Line: "next alert", Off: needsAlert},
		{ID: OneKind, Keys: []string{"o"}, Words: map[View]string{Events: "one kind"}, Weight: 57, Help: "show one kind of event, then the next", Leads: []ID{OtherTail}, Line: "one kind, other tail", Views: onEvents()},
		{ID: OtherTail, Keys: []string{"tab"}, Help: "operators' events or the machine's", Views: onEvents()},
		{ID: Sort, Keys: []string{"s"}, Help: "sort by…", Hint: "sort", Weight: 90, Leads: []ID{Reverse}, Line: "sort by…, reverse", Views: sorted()},
		{ID: Reverse, Keys: []string{"r"}, Help: "reverse the order", Views: sorted()},
		{ID: SortLeft, Keys: []string{"h", "left"}, Help: "sort by the column to the left", Leads: []ID{SortRight}, Line: "sort by next column", Views: sorted()},
		{ID: SortRight, Keys: []string{"l", "right"}, Help: "sort by the column to the right", Views: sorted()},
		{ID: Open, Keys: []string{"enter"}, Help: "open what the cursor is on", Hint: "inspect", Words: map[View]string{Decisions: "conversation", Index: "decisions", Events: "go there", Workers: "ranks"}, Weight: 88, Leads: []ID{Back}, Line: "open, back", Views: lists(), Off: opens},
		{ID: Back, Keys: []string{"esc"}, Help: "close one level"},
		{ID: Mark, Keys: []string{" "}, Help: "mark or unmark", Hint: "mark", Weight: 70, Leads: []ID{MarkRange, MarkAll}, Line: "mark, range, all", Views: onConvs(), Off: needsSelection},
		{ID: MarkRange, Keys: []string{"v"}, Help: "mark from the last mark to here", Views: onConvs(), Off: needsSelection},
		{ID: MarkAll, Keys: []string{"*"}, Help: "mark all that match", Views: onConvs(), Off: needsSelection},
		{ID: Follow, Keys: []string{"f"}, Words: map[View]string{Decisions: "follow"}, Weight: 79, Help: "cursor follows its row, or its line", Line: "follow row or line", Views: lists()},
		{ID: Freeze, Keys: []string{"z"}, Off: needsState, Help: "hold the screen, or go live again", Hint: "freeze", Weight: 78, HintAt: 2, Leads: []ID{StepBack, StepOn, LeapBack, LeapOn, GoTime}, Line: "freeze, step, go to"},
		{ID: StepBack, Keys: []string{","}, Help: "one second back", Hint: "step 1 s", HintWith: StepOn, HintJoin: " ", Weight: 85, Off: needsFrozen},
		{ID: StepOn, Keys: []string{"."}, Help: "one second on", Off: needsFrozen},
		{ID: LeapBack, Keys: []string{"<"}, Help: "ten seconds back", Hint: "10 s", HintWith: LeapOn, HintJoin: " ", Weight: 84, Off: needsFrozen},
		{ID: LeapOn, Keys: []string{">"}, Help: "ten seconds on", Off: needsFrozen},
		{ID: GoTime, Keys: []string{"t"}, Help: "go to a time…", Hint: "go to time", Weight: 57, Off: needsFrozen},
		{ID: Mouse, Keys: []string{"m"}, Help: "mouse on or off"},
		{ID: Copy, Keys: []string{"y"}, Help: "copy the name under the cursor or marks", Hint: "copy", Weight: 20, Leads: []ID{Export}, Line: "copy, export rows…", Views: lists(), Off: needsSelection},
		{ID: Export, Keys: []string{"x"}, Help: "export the rows to a file: CSV or JSON…", Hint: "export", Weight: 19, Views: lists(), Off: needsState},
		{ID: Columns, Keys: []string{"w"}, Help: "more or fewer columns", Leads: []ID{Side}, Line: "columns, side panel", Views: []View{Ranks, Convs}},
		{ID: Side, Keys: []string{"i"}, Help: "side panel on or off", Views: lists()},
		{ID: Theme, Keys: []string{"ctrl+t"}, Help: "next theme", Leads: []ID{Mouse, Help}, Line: "theme, mouse, this"},
		{ID: Help, Keys: []string{"?"}, Help: "the keys of this view", Hint: "keys", Weight: 60, HintAt: 3},
	}
}

func acting() []Command {
	return []Command{
		{ID: Pin, Keys: []string{"P"}, Class: Moves, Group: GroupAct, Line: "pin to a rank…", Help: "pin conversations to a rank…", Hint: "pin", Weight: 87, Views: onConvs(), Off: actsOnSelection},
		{ID: Unpin, Class: Moves, Group: GroupAct, Help: "remove the operator's pin…", Views: onConvs(), Off: needsPin},
		{ID: Evict, Keys: []string{"E"}, Class: Moves, Group: GroupAct, Line: "evict…", Help: "evict: the next turn is placed afresh…", Hint: "evict", Weight: 85, Views: onConvs(), Off: actsOnSelection},
		{ID: Migrate, Keys: []string{"M"}, Class: Moves, Group: GroupAct, Line: "migrate…", Help: "migrate to another rank…", Hint: "migrate", Weight: 86, Views: onConvs(), Off: actsOnSelection},
		{ID: Weight, Keys: []string{"W"}, Class: Local, Group: GroupAct, Help: "stage a weight for this rank", Hint: "weight", Weight: 84, Line: "weight of this rank", Views: onRanks(), Off: actsOnSelection},
		{ID: Drain, Keys: []string{"D"}, Class: Moves, Group: GroupAct, Help: "drain: no new conversations…", Hint: "drain", Weight: 82, Leads: []ID{Ready}, Line: "drain…, ready again", Views: onFleet(), Off: needsReady},
		{ID: Ready, Keys: []string{"R"}, Class: Local, Group: GroupAct, Help: "ready: take new work again", Views: onFleet(), Off: needsDraining},
		{ID: Resync, Keys: []string{"X"}, Class: Local, Group: GroupAct, Help: "resync: learn this rank's cache afresh", Hint: "resync", Weight: 59, Line: "learn its cache afresh", Views: onIndex(), Off: actsOnSelection},
		{ID: StepLess, Keys: []string{"-"}, Class: Local, Group: GroupAct, Help: "a small step down", Hint: "step", HintWith: StepMore, HintJoin: " ", Weight: 89, Leads: []ID{StepMore, LeapLess, LeapMore}, Line: "small, large step", Views: onKnobs(), Off: stages},
		{ID: StepMore, Keys: []string{"+", "="}, Class: Local, Group: GroupAct, Help: "a small step up", Views: onKnobs(), Off: stages},
		{ID: LeapLess, Keys: []string{"{"}, Class: Local, Group: GroupAct, Help: "a large step down", Hint: "large", HintWith: LeapMore, HintJoin: " ", Weight: 86, Views: onKnobs(), Off: stages},
		{ID: LeapMore, Keys: []string{"}"}, Class: Local, Group: GroupAct, Help: "a large step up", Views: onKnobs(), Off: stages},
		{ID: Edit, Keys: []string{"e", "enter"}, Class: Local, Group: GroupAct, Help: "type a value to stage", Hint: "edit", Weight: 85, Leads: []ID{Default, Unstage}, Line: "type, default, unstage", Views: onKnobs(), Off: stages},
		{ID: Default, Keys: []string{"0"}, Class: Local, Group: GroupAct, Help: "stage the default", Hint: "default", Weight: 83, Views: onKnobs(), Off: stages},
		{ID: Unstage, Keys: []string{"u"}, Class: Local, Group: GroupAct, Help: "take back what is staged here", Views: onKnobs(), Off: needsStaged},
		{ID: Policy, Keys: []string{"o"}, Class: Local, Group: GroupAct, Help: "choose the policy to stage", Line: "policy to stage", Hint: "policy", Weight: 56, Views: onKnobs(), Off: acts},
		{ID: Apply, Keys: []string{"A"}, Class: Moves, Group: GroupAct, Help: "apply what is staged…", Line: "apply staged…", Hint: "apply", Weight: 88, Off: appliesStaged},
		{ID: Undo, Keys: []string{"U"}, Class: Local, Group: GroupAct, Help: "undo the last change; again = redo", Line: "undo; again = redo", Hint: "undo", Words: map[View]string{Events: "undo this"}, Weight: 50, Off: undoes},
		{ID: Slower, Keys: []string{"("}, Class: Local, Group: GroupAct, Help: "simulation at half the speed", Leads: []ID{Faster, Pause}, Line: "slower, faster, pause", Off: needsSimulation},
		{ID: Faster, Keys: []string{")"}, Class: Local, Group: GroupAct, Help: "simulation at twice the speed", Off: needsSimulation},
		{ID: Pause, Keys: []string{"p"}, Class: Local, Group: GroupAct, Help: "pause the simulation, or go on", Off: needsSimulation},
	}
}

func moving() []Command {
	return []Command{
		{ID: ViewID(1), Keys: []string{"1"}, Group: GroupMove, Help: "the ranks", Leads: []ID{ViewID(2), ViewID(3), ViewID(4), ViewID(5), ViewID(6), ViewID(7), PrevView, NextView}, Line: "views"},
		{ID: ViewID(2), Keys: []string{"2"}, Group: GroupMove, Help: "the conversations"},
		{ID: ViewID(3), Keys: []string{"3"}, Group: GroupMove, Help: "the decisions: why this rank?"},
		{ID: ViewID(4), Keys: []string{"4"}, Group: GroupMove, Help: "the prefix index: what caches hold"},
		{ID: ViewID(5), Keys: []string{"5"}, Group: GroupMove, Help: "the settings, staged and applied"},
		{ID: ViewID(6), Keys: []string{"6"}, Group: GroupMove, Help: "the events: who did what, what befell"},
		{ID: ViewID(7), Keys: []string{"7"}, Group: GroupMove, Help: "the workers: engines and their feeds"},
		{ID: PrevView, Keys: []string{"["}, Group: GroupMove, Help: "the view before"},
		{ID: NextView, Keys: []string{"]"}, Group: GroupMove, Help: "the next view"},
		{ID: NextPane, Keys: []string{"tab"}, Group: GroupMove, Help: "the other pane: knobs or history", Line: "knobs or history", Views: onKnobs()},
		{ID: Palette, Keys: []string{":"}, Group: GroupMove, Help: "any command by name", Hint: "command", Weight: 80, HintAt: 1, Line: "any command by name"},
		{ID: Retry, Keys: []string{"ctrl+r"}, Group: GroupMove, Help: "connect again at once", Hint: "retry", Weight: 99, HintKey: "⏎", Line: "connect again now", Off: needsLoss},
		{ID: Redraw, Keys: []string{"ctrl+l"}, Group: GroupMove, Help: "draw the screen afresh", Leads: []ID{Suspend}, Line: "redraw, suspend"},
		{ID: Suspend, Keys: []string{"ctrl+z"}, Group: GroupMove, Help: "suspend to the shell"},
		{ID: Quit, Keys: []string{"q"}, Group: GroupMove, Help: "back, at the top: quit", Hint: "quit", Weight: 76, HintAt: 4, Leads: []ID{Interrupt}, Line: "back or quit"},
		{ID: Interrupt, Keys: []string{"ctrl+c"}, Group: GroupMove, Help: "quit from anywhere"},
	}
}
