package model

// Verb names what a command does; the same word stands on keys, in the
// palette, in scripts, in the audit and in logs.
type Verb string

// The verbs. Speed acts on the simulation, reload on the whole server, all
// others on the router.
const (
	VerbSet     Verb = "set"     // fields and rank weights, all or nothing
	VerbPin     Verb = "pin"     // operator pin of conversations to a target
	VerbUnpin   Verb = "unpin"   // remove the operator pin
	VerbEvict   Verb = "evict"   // forget pin and binding: the next turn is placed afresh
	VerbMigrate Verb = "migrate" // move binding or pin to a target; to the ranks with the fewest tokens when none is named
	VerbDrain   Verb = "drain"   // no new conversations, bound ones stay; of a rank, or with NoRank of all ranks of a worker
	VerbReady   Verb = "ready"   // take new work again; likewise
	VerbClear   Verb = "clear"   // drop the phantom load of a rank; cannot be undone
	VerbResync  Verb = "resync"  // forget what a rank's cache is known to hold and learn it afresh; cannot be undone
	VerbUndo    Verb = "undo"    // a new version that restores what a version changed
	VerbSpeed   Verb = "speed"   // simulation speed: 0 pauses
	VerbReload  Verb = "reload"  // adpdeck serve reads its settings file again
)

// Undoable reports that an undo takes back what the verb did.
func (v Verb) Undoable() bool { return v != VerbClear && v != VerbResync }

// Limits that bound a command.
const (
	MaxCommandIDBytes = 64
	MaxReasonBytes    = 256
	MaxCommandConvs   = 4096
	MaxOperatorPins   = 4096
)

// Field names of a set command beside upstream's own attention_dp_config
// names. FieldWeight needs a target; FieldPolicy is sugar for the two switches.
const (
	FieldPolicy                   = "policy"
	FieldRouterMode               = "router_mode"
	FieldWeight                   = "weight"
	FieldMinGenerationRequests    = "min_generation_requests"
	FieldLowOccupancyTimeoutIters = "low_occupancy_timeout_iters"
)

// FieldValue is one value to set. Value is written as in YAML: true, 0.25,
// least_tokens.
type FieldValue struct {
	Field  string  `json:"field"`
	Target *Target `json:"target,omitempty"`
	Value  string  `json:"value"`
}

// Command is the one path by which state changes.
type Command struct {
	// ID is chosen by the sender, unique to the command. The same ID again
	// returns the first answer and acts once.
	ID   string `json:"id"`
	Verb Verb   `json:"verb"`
	// Expect is the version that the sender saw; the command is refused when
	// the version is another. 0 expects nothing.
	Expect uint64 `json:"expect,omitempty"`
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`

	Set    []FieldValue `json:"set,omitempty"`
	Target *Target      `json:"target,omitempty"`
	Convs  []ConvKey    `json:"convs,omitempty"`
	// Undo is the version to take back; 0 takes back the newest that can be.
	Undo uint64 `json:"undo,omitempty"`
	// Speed is the factor for VerbSpeed, 0 to pause.
	Speed float64 `json:"speed,omitempty"`
}

// RefusalCode is why a command was refused, for programs.
type RefusalCode string

// The refusals. Sentences for people are in Refusal.Message and Refusal.Next.
const (
	RefusedConflict  RefusalCode = "conflict"      // the version is not the expected one
	RefusedBounds    RefusalCode = "out_of_bounds" // a value outside its range or of the wrong type
	RefusedField     RefusalCode = "no_such_field"
	RefusedTarget    RefusalCode = "no_such_rank"
	RefusedDraining  RefusalCode = "draining"      // the target takes no new conversations
	RefusedLast      RefusalCode = "last_eligible" // it would leave no eligible rank: in all, in mode direct at a worker
	RefusedConv      RefusalCode = "no_such_conversation"
	RefusedFull      RefusalCode = "pins_full"    // MaxOperatorPins reached
	RefusedEngine    RefusalCode = "engine_picks" // the worker's engine picks the rank: it cannot be told
	RefusedPhantom   RefusalCode = "no_phantom_load"
	RefusedIndex     RefusalCode = "no_index" // the router keeps none
	RefusedUndo      RefusalCode = "nothing_to_undo"
	RefusedMalformed RefusalCode = "malformed"
	RefusedVerb      RefusalCode = "no_such_verb"
	RefusedBusy      RefusalCode = "too_many_commands"
	RefusedFile      RefusalCode = "bad_settings_file" // for VerbReload
)

// Refusal explains why nothing was changed and what to do about it.
type Refusal struct {
	Code    RefusalCode `json:"code"`
	Message string      `json:"message"`
	Next    string      `json:"next,omitempty"`
	// Current is the newest revision, set for RefusedConflict: who changed what.
	Current *Revision `json:"current,omitempty"`
	// Settings is the document as it stands, set for RefusedConflict.
	Settings *Settings `json:"settings,omitempty"`
}

// Error makes a Refusal an error: message, then the next step.
func (r *Refusal) Error() string {
	if r.Next == "" {
		return r.Message
	}
	return r.Message + "; " + r.Next
}

// ItemResult is the result for one conversation of a command that names
// several; such a command acts on those it can.
type ItemResult struct {
	Conv    ConvKey  `json:"conv"`
	Done    bool     `json:"done"`
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Reply answers a command.
type Reply struct {
	ID       string       `json:"id"`
	Accepted bool         `json:"accepted"`
	Version  uint64       `json:"version"` // the version after the command
	Refusal  *Refusal     `json:"refusal,omitempty"`
	Items    []ItemResult `json:"items,omitempty"`
	// What says in one line what was done: "β 1.00 → 4.00".
	What string `json:"what,omitempty"`
}
