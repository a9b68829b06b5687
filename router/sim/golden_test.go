package sim

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"adpdeck/router/model"
)

// TestGoldenRuns holds two minutes of the console under each policy to what
// they were: the report, and a digest of everything the router was asked. A
// difference that is meant is taken over with UPDATE_GOLDEN=1.
func TestGoldenRuns(t *testing.T) {
	for _, p := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		t.Run(string(p), func(t *testing.T) {
			set := settingsFor(p, model.PlaceLeastTokens)
			set.AttentionDpConfig.EnableBalance = p == model.PolicyDefault
			s, sc := console(t, set)
			sc.now = s.Now
			if _, err := s.Advance(2*time.Minute, 0); err != nil {
				t.Fatal(err)
			}
			h := fnv.New64a()
			for _, line := range sc.log {
				fmt.Fprintln(h, line)
			}
			r := s.Report(0)
			var got bytes.Buffer
			if err := r.WriteTable(&got); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "%-16s %d calls, %016x\n", "router", len(sc.log), h.Sum64())
			path := filepath.Join("testdata", "console_"+string(p)+".golden")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("the run has changed:\n%s\nwant\n%s", got.Bytes(), want)
			}
		})
	}
}
