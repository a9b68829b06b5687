package feed_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/feed"
	"adpdeck/feed/feedtest"
	"adpdeck/router/model"
)

// slowDisk is a writer that can be made to hang or fail.
type slowDisk struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	hang chan struct{}
	fail error
}

func (d *slowDisk) Write(b []byte) (int, error) {
	d.mu.Lock()
	hang, fail := d.hang, d.fail
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if fail != nil {
		return 0, fail
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.Write(b)
}

// record runs a source for so many seconds, with a version a second.
func record(t *testing.T, seconds int, opt feed.RecorderOptions, disk *slowDisk, at func(second int)) (*feed.Recorder, []byte) {
	t.Helper()
	rec := feed.NewRecorder(disk, opt)
	r := serve(t, feedtest.State(2, 8, 50), feed.ServerOptions{Epoch: "rec", Version: "1.2", Recorder: rec})
	for s := 1; s <= seconds; s++ {
		<-time.After(time.Second)
		if at != nil {
			at(s)
		}
		r.src.Publish(&model.Change{
			Version: uint64(s + 1), Ranks: []model.Rank{feedtest.Rank("w0", 0, uint64(s))},
			Decisions: []*model.Decision{feedtest.Decision(uint64(s), 4)},
		})
	}
	synctest.Wait()
	r.close()
	return rec, disk.buf.Bytes()
}

func open(t *testing.T, content []byte, opt feed.PlayerOptions) *feed.Player {
	t.Helper()
	path := filepath.Join(t.TempDir(), "feed.jsonl")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := feed.OpenRecording(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRecordAndPlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, file := record(t, 70, feed.RecorderOptions{Version: "1.2"}, &slowDisk{}, nil)
		if rec.Err() != nil || rec.Dropped() != 0 || bytes.Count(file, []byte(`"kind":"snapshot"`)) != 3 {
			t.Errorf("error %v, dropped %d, %d snapshots, want 3", rec.Err(), rec.Dropped(), bytes.Count(file, []byte(`"kind":"snapshot"`)))
		}
		p := open(t, file, feed.PlayerOptions{})
		began := time.Now()
		v := until(t, p, "at version 11", func(v *feed.View) bool { return len(v.Decisions) == 10 })
		if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("ten recorded seconds took %v", took)
		}
		if v.Link.Phase != feed.PhaseReplay || v.Link.Server != "1.2" || v.Link.Stale(time.Now()) || v.Link.Slow(time.Now()) || v.State.Version != 11 {
			t.Errorf("version %d, link %+v", v.State.Version, v.Link)
		}
		if got := <-p.Do(model.Command{ID: "x", Verb: model.VerbPin}); got.ID != "x" || got.Accepted || got.Refusal == nil || got.Refusal.Next == "" {
			t.Errorf("a command: %+v", got)
		}
		p.Pause(true)
		<-time.After(time.Minute)
		if v := p.View(); v.State.Version > 11 || !v.Link.Replay.Paused {
			t.Errorf("paused, version %d", v.State.Version)
		}
		if got := <-p.Do(model.Command{ID: "y", Verb: model.VerbSpeed, Speed: 60}); !got.Accepted {
			t.Errorf("speed: %+v", got)
		}
		began = time.Now()
		v = until(t, p, "at the end", func(v *feed.View) bool { return v.Link.Replay.Ended })
		if took := time.Since(began); took > 1100*time.Millisecond || v.State.Version != 71 || len(v.Decisions) != 70 || v.LeftOut != 0 || v.Link.Gaps != 0 {
			t.Errorf("60 recorded seconds took %v; version %d, %d decisions, link %+v", took, v.State.Version, len(v.Decisions), v.Link)
		}
		if v.Link.Err != "the recording has ended" || v.Link.Stale(time.Now()) {
			t.Errorf("at the end: %+v", v.Link)
		}
		for _, speed := range []float64{-1, 65} {
			if got := <-p.Do(model.Command{ID: "z", Verb: model.VerbSpeed, Speed: speed}); got.Refusal == nil || got.Refusal.Code != model.RefusedBounds {
				t.Errorf("speed %v: %+v", speed, got)
			}
		}
		p.RetryNow()
		p.Close()
	})
}

func TestPlayDamage(t *testing.T) {
	tests := map[string]struct {
		damage  func(lines [][]byte) [][]byte
		said    string
		skipped uint64
		stale   bool // until the snapshot at 30 s
	}{
		"a bad line": {
			damage: func(l [][]byte) [][]byte { l[20] = []byte("\x00\x00"); return l },
			said:   "line 21 is damaged", skipped: 1, stale: true,
		},
		"a bad frame": {
			damage: func(l [][]byte) [][]byte {
				l[20] = []byte(`{"us":10000000,"frame":{"kind":"change","seq":"x"}}`)
				return l
			},
			said: "line 21 is damaged", skipped: 1, stale: true,
		},
		"a line too long": {
			damage: func(l [][]byte) [][]byte { l[20] = bytes.Repeat([]byte("x"), 3<<20); return l },
			said:   "too long", skipped: 1, stale: true,
		},
		"lines missing": {
			damage: func(l [][]byte) [][]byte { return append(l[:20:20], l[26:]...) },
			said:   "waiting for the next snapshot", stale: true,
		},
		"a torn last line": {
			damage: func(l [][]byte) [][]byte { n := len(l) - 1; l[n] = l[n][:len(l[n])/2]; return l },
			said:   "its writer was cut off",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, file := record(t, 40, feed.RecorderOptions{}, &slowDisk{}, nil)
				lines := bytes.Split(bytes.TrimSpace(file), []byte("\n"))
				p := open(t, bytes.Join(tt.damage(lines), []byte("\n")), feed.PlayerOptions{Speed: 4})
				v := until(t, p, "told of the damage", func(v *feed.View) bool { return strings.Contains(v.Link.Err, tt.said) })
				if v.Link.Stale(time.Now()) != tt.stale {
					t.Errorf("stale %v, want %v", !tt.stale, tt.stale)
				}
				v = until(t, p, "at the end", func(v *feed.View) bool { return v.Link.Replay.Ended })
				if v.State.Version < 40 || v.Link.Replay.Skipped != tt.skipped {
					t.Errorf("version %d, %+v", v.State.Version, v.Link)
				}
				p.Close()
			})
		})
	}
}

func TestOpenRecordingRefuses(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		content string
		want    string
	}{
		"empty":         {"", "not a recording"},
		"text":          {"hello\nworld\n", "not a recording"},
		"another JSON":  {`{"recording":"other"}` + "\n", "not a recording"},
		"newer format":  {`{"recording":"adpdeck.v1","format":2}` + "\n", "use a newer adpdeck"},
		"one long line": {strings.Repeat("x", 3<<20), "not a recording"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := feed.OpenRecording(path, feed.PlayerOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := feed.OpenRecording(filepath.Join(dir, "none"), feed.PlayerOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestRecorderSlowDisk drops what the disk cannot take, says how much, and goes
// on with a snapshot. Nobody waits meanwhile.
func TestRecorderSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowDisk{}
		gate := make(chan struct{})
		rec, file := record(t, 60, feed.RecorderOptions{QueueMessages: 10}, disk, func(second int) {
			disk.mu.Lock()
			defer disk.mu.Unlock()
			switch second {
			case 5:
				disk.hang = gate
			case 35:
				disk.hang = nil
				close(gate)
			}
		})
		if rec.Dropped() == 0 || !bytes.Contains(file, fmt.Appendf(nil, `"dropped":%d`, rec.Dropped())) {
			t.Errorf("%d dropped; the file does not say so", rec.Dropped())
		}
		p := open(t, file, feed.PlayerOptions{Speed: 64})
		v := until(t, p, "at the end", func(v *feed.View) bool { return v.Link.Replay.Ended })
		if v.State.Version != 61 || v.Link.Replay.Dropped != rec.Dropped() || v.Link.Gaps != 0 {
			t.Errorf("version %d, dropped %d, link %+v", v.State.Version, rec.Dropped(), v.Link)
		}
		p.Close()
	})
}

func TestRecorderStops(t *testing.T) {
	full := errors.New("no space left on device")
	tests := map[string]struct {
		opt  feed.RecorderOptions
		disk *slowDisk
		want string
	}{
		"disk full": {disk: &slowDisk{fail: full}, want: full.Error()},
		"size":      {disk: &slowDisk{}, opt: feed.RecorderOptions{MaxBytes: 40_000}, want: "full at 40000 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec, file := record(t, 90, tt.opt, tt.disk, nil)
				if err := rec.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v", err)
				}
				if len(file) > 40_000 {
					t.Errorf("%d bytes written", len(file))
				}
			})
		})
	}
}
