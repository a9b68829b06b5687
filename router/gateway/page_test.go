package gateway

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// TestEveryMetricStandsInThePage: with its labels, and none that there is not.
func TestEveryMetricStandsInThePage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	page := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && strings.HasPrefix(name, "adpdeck_") {
			page[name] = rest
		}
	}
	descs := make(chan *prometheus.Desc, 1024)
	newMetrics(nil).registry.Describe(descs)
	for _, d := range []*prometheus.Desc{descInFlight, descRequests, descWeight, descReady, descPins, descHit, descUp, descRestarts} {
		descs <- d
	}
	close(descs)
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatal(d)
		}
		name, labels := m[1], m[2]
		if !strings.HasPrefix(name, "adpdeck_") {
			continue
		}
		row, ok := page[name]
		if !ok {
			t.Errorf("the page does not name %s", name)
		}
		for l := range strings.SplitSeq(labels, ",") {
			if l != "" && !strings.Contains(row, "`"+l+"`") {
				t.Errorf("the page does not name the label %s of %s", l, name)
			}
		}
		delete(page, name)
	}
	for name := range page {
		t.Errorf("the page names %s, which is not there", name)
	}
}
