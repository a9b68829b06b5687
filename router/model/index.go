package model

import "time"

// IndexFeed says how well the index knows what a rank holds in its cache.
// There are six states, never two: a rank without blocks is not a rank that
// says nothing.
type IndexFeed string

// The states of a rank's KV-event feed.
const (
	FeedLive        IndexFeed = "live"        // events come in order
	FeedGap         IndexFeed = "gap"         // events are missing: in doubt until replayed
	FeedDoubt       IndexFeed = "doubt"       // events were lost: some of what it held may be gone
	FeedSilent      IndexFeed = "silent"      // it gets traffic and publishes nothing
	FeedNone        IndexFeed = "none"        // nothing has been heard of it since start
	FeedApproximate IndexFeed = "approximate" // no events: guessed from what was routed
)

// Lost is prompt tokens that another rank held and the chosen one did not, by
// what they were given up for, over the last minute of router time.
type Lost struct {
	Load        int `json:"load"`        // another target was cheaper
	Cap         int `json:"cap"`         // at the hard cap or overloaded
	Pin         int `json:"pin"`         // a pin, binding or explicit rank
	Filter      int `json:"filter"`      // draining, blocked or not allowed
	Tie         int `json:"tie"`         // equal cost
	Temperature int `json:"temperature"` // drawn by probability
	Mode        int `json:"mode"`        // the mode does not look at caches
}

// Why a longer match was not taken, as Decision.LostTo says it.
const (
	LostLoad        = "load"
	LostCap         = "cap"
	LostPin         = "pin"
	LostFilter      = "filter"
	LostTie         = "tie"
	LostTemperature = "temperature"
	LostMode        = "mode"
)

// Add counts tokens under a cause, one of Lost….
func (l *Lost) Add(cause string, tokens int) {
	switch cause {
	case LostLoad:
		l.Load += tokens
	case LostCap:
		l.Cap += tokens
	case LostPin:
		l.Pin += tokens
	case LostFilter:
		l.Filter += tokens
	case LostTie:
		l.Tie += tokens
	case LostTemperature:
		l.Temperature += tokens
	case LostMode:
		l.Mode += tokens
	}
}

// Sum is all of it.
func (l Lost) Sum() int {
	return l.Load + l.Cap + l.Pin + l.Filter + l.Tie + l.Temperature + l.Mode
}

// IndexRank is what the index knows of one rank.
type IndexRank struct {
	Target Target    `json:"target"`
	Feed   IndexFeed `json:"feed"`
	// EventAt is when the last event batch came, zero before the first.
	EventAt time.Time `json:"event_at"`
	// Seq is the number of the last batch applied.
	Seq      uint64 `json:"seq"`
	Gaps     uint64 `json:"gaps"`
	Restarts uint64 `json:"restarts"`
	// Refused counts events that could not be read or contradict themselves;
	// LastError says what was wrong with the newest, it holds foreign text.
	Refused   uint64 `json:"refused"`
	LastError string `json:"last_error,omitempty"`
	// Unplaced counts blocks that came to a tier by the engine's name alone, of
	// which nothing was told before: they are not counted as held.
	Unplaced uint64 `json:"unplaced"`
	// Device, Host and Disk are blocks held, by tier; Waiting those whose parent
	// is unknown, Holes missing blocks under blocks that are held.
	Device int `json:"device"`
	Host   int `json:"host"`
	Disk   int `json:"disk"`
	// Doubtful is how many of them were not told anew since events were lost.
	Doubtful int   `json:"doubtful"`
	Waiting  int   `json:"waiting"`
	Holes    int   `json:"holes"`
	Bytes    int64 `json:"bytes"`
	// Hit is the share of prompt tokens routed here that were found in its
	// cache, Reachable what the best rank held, over the last minute; Agreed the
	// share of requests whose match was as predicted. Unknown before the first.
	Hit       Maybe `json:"hit"`
	Reachable Maybe `json:"reachable"`
	Agreed    Maybe `json:"agreed"`
	// Lost is what requests routed here could have found elsewhere.
	Lost Lost `json:"lost"`
}

// IndexTotals is the index as a whole.
type IndexTotals struct {
	Blocks       int    `json:"blocks"` // distinct
	Owned        int    `json:"owned"`  // blocks times the ranks that hold them
	Bytes        int64  `json:"bytes"`
	EventsPerSec Maybe  `json:"events_per_sec"`
	Evicted      uint64 `json:"evicted"` // dropped to keep a bound
	// Shared are the prefixes that requests begin with most, of those that more
	// than one rank holds, most hit first; at most MaxSharedPrefixes.
	Shared []SharedPrefix `json:"shared,omitempty"`
}

// MaxSharedPrefixes bounds IndexTotals.Shared.
const MaxSharedPrefixes = 8

// SharedPrefix is a prefix that more than one rank holds.
type SharedPrefix struct {
	// Hash names it: the first eight hex digits of its last block's chain hash.
	Hash   string `json:"hash"`
	Tokens int    `json:"tokens"`
	// Ranks held it when a request was last looked up.
	Ranks int `json:"ranks"`
	// Hits counts the requests of the last five minutes whose longest prefix on
	// two ranks it was.
	Hits   int       `json:"hits"`
	LastAt time.Time `json:"last_at"`
}

// Finding is something wrong with what engines tell, in words for an operator.
// It clears by itself when its cause does.
type Finding struct {
	Code    string    `json:"code"`
	Target  Target    `json:"target"`
	Since   time.Time `json:"since"`
	Message string    `json:"message"` // one sentence, may hold foreign text
	Next    string    `json:"next"`    // what to do about it
}

// FindingPhantom is the code of the finding that VerbClear puts an end to.
const FindingPhantom = "phantom_load"

// Further codes of findings of the router itself.
const (
	// FindingPinNotHonoured: an engine runs requests on another rank than it is
	// asked for. It clears after three in a row that ran as asked.
	FindingPinNotHonoured = "pin_not_honoured"
	// FindingPinGone: operator pins name a rank that does not answer or is not
	// there; their requests are refused.
	FindingPinGone = "pin_target_gone"
	// FindingNoBlockSize: KV events come, and nobody has named the block size.
	FindingNoBlockSize = "block_size_unknown"
	// FindingRefusing: several requests were turned away in the last ten seconds.
	// It names no target.
	FindingRefusing = "requests_refused"
	// FindingEngineDisagrees: the settings and the engine say different things of a
	// worker. Its message is the differences, parted by "; ", each of the form
	// "ranks: 8 in the settings, 16 by its metrics".
	FindingEngineDisagrees = "engine_disagrees"
)

// TargetMatch is how much of a prompt a rank holds, in tokens.
type TargetMatch struct {
	Target Target `json:"target"`
	// Device tokens are the prefix on the device, Host and Disk how far the lower
	// tiers extend it.
	Device int `json:"device"`
	Host   int `json:"host"`
	Disk   int `json:"disk"`
	// Approximate says that they are guessed from what was routed there.
	Approximate bool `json:"approximate,omitempty"`
}

// MaxFindings bounds the findings of a State.
const MaxFindings = 256
