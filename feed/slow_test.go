package feed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/feed"
	"adpdeck/feed/feedtest"
	"adpdeck/router/model"
)

// TestSlowLinkIsStale: a link that brings less than is sent holds minutes of
// frames under way. What comes is in order and without a gap, and it is old: it
// must not be shown as live.
func TestSlowLinkIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, feedtest.State(2, 4, 10), feed.ServerOptions{})
		c := r.client(feed.ClientOptions{})
		until(t, c, "live", live)
		versions := map[uint64]time.Time{} // when each was overtaken
		version := c.View().State.Version
		r.bad.Bandwidth(1 << 10)
		ages, stale := time.Duration(0), 0
		for range 600 {
			now := time.Now()
			versions[version] = now
			version++
			ch := &model.Change{Version: version, At: now, Ranks: feedtest.State(2, 4, 0).Ranks}
			r.src.Publish(ch)
			synctest.Wait()
			v := c.View()
			over, ok := versions[v.State.Version]
			if v.Link.Stale(now) {
				stale++
			} else if ok && now.Sub(over) > 4*v.Link.Period+500*time.Millisecond {
				ages = max(ages, now.Sub(over))
			}
			<-time.After(100 * time.Millisecond)
		}
		if ages > 0 {
			t.Errorf("a state overtaken %v ago was shown as live", ages)
		}
		if stale == 0 {
			t.Error("it was never stale: the test shows nothing")
		}
		r.bad.Bandwidth(0)
		until(t, c, "in step", func(v *feed.View) bool { return v.State.Version == version && !v.Link.Stale(time.Now()) })
		c.Close()
		r.close()
	})
}
