package event

import (
	"fmt"
	"time"
)

// FindingKind says what a finding is about.
type FindingKind uint8

// The kinds of finding.
const (
	_ FindingKind = iota
	// FindSilent: the rank works and sends no events.
	FindSilent
	// FindBarren: events come, and no store among them can be used.
	FindBarren
	// FindBlockSize: the engine's block size is not the router's.
	FindBlockSize
	// FindUnreadable: events that cannot be decoded.
	FindUnreadable
	// FindUnknownWords: a kind of event, medium or attention nobody knows yet.
	FindUnknownWords
	// FindContradiction: events that cannot be true.
	FindContradiction
	// FindNamespace: blocks with two salts.
	FindNamespace
	// FindGroup: cache groups of which the main one is unknown.
	FindGroup
	// FindRank: a rank that the worker does not have.
	FindRank
	// FindGap: batches are missing and may yet come.
	FindGap
	// FindLost: batches were lost a while ago, and the doubt is over.
	FindLost
	// FindDoubt: batches were lost, and matches may be too long.
	FindDoubt
	// FindJoinedLate: the beginning was not heard.
	FindJoinedLate
	// FindRestarted: the engine is a new process.
	FindRestarted
)

// String names the kind as a metric's label does.
func (k FindingKind) String() string {
	return nameOf([]string{
		"none", "silent", "no_usable_store", "block_size", "unreadable", "unknown_words", "contradiction", "cache_namespace",
		"kv_cache_group", "unknown_rank", "gap", "lost", "in_doubt", "joined_late", "restarted",
	}, int(k))
}

// Level says how much a finding matters.
type Level uint8

// The levels.
const (
	Note    Level = iota // good to know, nothing to do
	Warning              // matches are wrong or missing for a while
	Alarm                // the rank's cache is invisible until somebody acts
)

// Finding is something that keeps the index from knowing what a rank holds, for
// an operator to read. It goes away by itself when its cause does.
type Finding struct {
	Kind  FindingKind
	Level Level
	Since time.Time
	Count uint64 // events, batches or blocks concerned
	Text  string // what is wrong and what follows, a sentence
	Next  string // what to do about it
}

// keepNews is how long a finding about something past is shown.
const keepNews = 5 * time.Minute

// Findings lists what is wrong at the time now, the worst kinds first; nil when
// nothing is. The list is new at each call.
func (f *Feed) Findings(now time.Time) []Finding {
	var fs []Finding
	if f.silence.overdue(now) {
		fs = append(fs, f.silent(now))
	} else if f.barren.overdue(now) {
		fs = append(fs, f.foundBarren(now))
	}
	for r := BadMessage; r < reasons; r++ {
		if t := &f.troubles[r]; f.goesOn(t, now) && !r.Expected() {
			fs = f.mergeTrouble(fs, r, t)
		}
	}
	return append(fs, f.sequenceFindings(now)...)
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%.0f s", d.Seconds())
}

func (f *Feed) silent(now time.Time) Finding {
	x := Finding{Kind: FindSilent, Level: Alarm, Since: f.silence.since, Count: f.silence.blocks}
	age := seconds(now.Sub(f.silence.since))
	if f.stats.Events == 0 {
		x.Text = fmt.Sprintf("the rank has worked for %s (%d new blocks) and never sent a block event, so its cache looks cold", age, x.Count)
		x.Next = "check that kv events are on for this rank (some engines publish from rank 0 only), and that the address is its own: base port + rank"
		return x
	}
	x.Text = fmt.Sprintf("the rank works but has sent no block event for %s (%d new blocks), so its matches grow stale", age, x.Count)
	x.Next = "check the engine's publisher and the connection to it; then resync the rank"
	return x
}

func (f *Feed) foundBarren(now time.Time) Finding {
	x := Finding{Kind: FindBarren, Level: Alarm, Since: f.barren.since, Count: f.barren.blocks}
	x.Text = fmt.Sprintf("events arrive, but for %s of traffic none could be used, so the rank's cache looks cold", seconds(now.Sub(f.barren.since)))
	x.Next = "the engine stores nothing: check that prefix caching is on"
	if last := f.refused.LastError(); last != "" {
		x.Next = "see why they are left out; the last: " + last
	}
	return x
}

// mergeTrouble adds a trouble's finding, or adds to it if another reason gave
// the same.
func (f *Feed) mergeTrouble(fs []Finding, r Reason, t *trouble) []Finding {
	x := f.found(r, t)
	for i := range fs {
		if old := &fs[i]; old.Kind == x.Kind {
			old.Count += x.Count
			if x.Since.Before(old.Since) {
				old.Since = x.Since
			}
			return fs
		}
	}
	return append(fs, x)
}

func (f *Feed) found(r Reason, t *trouble) Finding {
	last, _ := f.refused.Last(r)
	x := Finding{Level: Alarm, Since: t.since, Count: t.n}
	switch {
	case r == BlockSize:
		x.Kind = FindBlockSize
		x.Text = fmt.Sprintf("the engine's blocks are %d tokens long, the router's %d, so nothing this rank holds can match", last.Value, last.Want)
		x.Next = fmt.Sprintf("set the router's block size to %d or the engine's to %d, then resync", last.Value, last.Want)
	case r == UnknownRank:
		x.Kind = FindRank
		x.Text = fmt.Sprintf("the publisher speaks for rank %d, which this worker does not have, so its events are left out", last.Value)
		x.Next = "check the worker's start rank and number of ranks: engines count ranks over all nodes"
	case r == AmbiguousNamespace:
		x.Kind, x.Level = FindNamespace, Warning
		x.Text = "some blocks claim two different cache salts; they are left out, since a match could cross tenants"
		x.Next = "the last: " + last.Error()
	case r == UnlearnedGroup:
		x.Kind, x.Level = FindGroup, Warning
		x.Text = fmt.Sprintf("events name KV-cache group %d, but none has said yet which group holds full attention; they are left out", last.Value)
		x.Next = "newer engines name the attention kind with each event: update the engine, or wait for group 0"
	case r == UnknownTag || r == UnknownMedium || r == UnknownSpec:
		x.Kind, x.Level = FindUnknownWords, Warning
		x.Text = fmt.Sprintf("the engine uses a word that this version does not know (%s); such events are left out", last.Got)
		x.Next = "probably a newer engine: look for a newer adpdeck; what is known still counts"
	case r.Unreadable():
		x.Kind = FindUnreadable
		x.Text = fmt.Sprintf("%d of the rank's events could not be read, so its cache is known in part at best", x.Count)
		x.Next = "the encoding may be newer than this version, or another service answers at this address; the last: " + last.Error()
	default:
		x.Kind, x.Level = FindContradiction, Warning
		x.Text = "some of the rank's events contradict themselves and are left out"
		x.Next = "report it to the engine's makers; the last: " + last.Error()
	}
	return x
}

func (f *Feed) sequenceFindings(now time.Time) []Finding {
	var fs []Finding
	if g := &f.gap; g.open && now.Sub(g.since) >= 2*time.Second {
		x := Finding{Kind: FindGap, Level: Warning, Since: g.since, Count: uint64(len(g.held))}
		x.Text = fmt.Sprintf("batches from %d on are missing for %s; %d newer ones wait, and the rank is in doubt", f.next, seconds(now.Sub(g.since)), x.Count)
		x.Next = "a replay is running"
		if !f.cfg.Replay {
			x.Next = "without a replay endpoint they count as lost soon: configure one to be able to repair this"
		} else if f.replay.tries > 0 {
			x.Next = fmt.Sprintf("%d replays brought nothing: check the replay endpoint", f.replay.tries)
		}
		fs = append(fs, x)
	}
	switch {
	case f.doubtful:
		fs = append(fs, Finding{
			Kind: FindDoubt, Level: Warning, Since: f.lost.at, Count: f.lost.n,
			Text: fmt.Sprintf("%d batches were lost before number %d, so matches may be too long; what is not told again loses its credit in %s",
				f.lost.n, f.lost.seq, seconds(max(0, f.settleAt.Sub(now)))),
			Next: "nothing to do; if it recurs, raise the publisher's queue, or give it a replay endpoint with a longer buffer",
		})
	case f.lost.within(now, keepNews):
		fs = append(fs, Finding{
			Kind: FindLost, Level: Warning, Since: f.lost.at, Count: f.lost.n,
			Text: fmt.Sprintf("%d batches were lost before number %d; what was not told again since does not count, so matches may be short for a while", f.lost.n, f.lost.seq),
			Next: "nothing to do; if it recurs, raise the publisher's queue and replay buffer",
		})
	case f.joined.within(now, keepNews):
		fs = append(fs, Finding{
			Kind: FindJoinedLate, Level: Note, Since: f.joined.at, Count: f.joined.n,
			Text: fmt.Sprintf("events are known from number %d on; what the rank held before is not, so matches are short for a while", f.joined.seq),
			Next: "nothing to do; a replay endpoint with a longer buffer would bring the rest",
		})
	}
	if !f.restartedAt.IsZero() && now.Sub(f.restartedAt) < keepNews {
		fs = append(fs, Finding{
			Kind: FindRestarted, Level: Note, Since: f.restartedAt, Count: f.stats.Restarts,
			Text: "the engine restarted with an empty cache; what was known of the rank is wiped",
			Next: "nothing to do",
		})
	}
	return fs
}
