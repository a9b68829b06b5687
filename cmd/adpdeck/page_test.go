package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"adpdeck/router/engine"
	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
	"adpdeck/router/settings"
)

var update = flag.Bool("update", false, "write the table of docs/serve.md anew")

const (
	servePage = "../../docs/serve.md"
	tableFrom = "-update -->\n"
	tableTo   = "<!-- end of steering -->"
)

// steering is the table of channels as the page shows it.
func steering() string {
	var b strings.Builder
	b.WriteString("\n| engine | route | rank by header | rank in the body | a port for each rank | conversation |\n|---|---|---|---|---|---|\n")
	cell := func(name string, reads steer.Reads) string {
		if name == "" {
			return "no"
		}
		return "`" + strings.ReplaceAll(name, ", ", "`, `") + "`: " + string(reads)
	}
	for _, r := range steer.Table() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Kind, r.Route, cell(r.HeaderName, r.Header), cell(r.BodyName, r.Body), r.Port, cell(r.ConversationName, r.Conversation))
	}
	b.WriteString("\n")
	return b.String()
}

// TestServePage: the table of channels is the program's, and no key, finding or
// default is missing.
func TestServePage(t *testing.T) {
	raw, err := os.ReadFile(servePage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	head, rest, ok := strings.Cut(page, tableFrom)
	_, tail, there := strings.Cut(rest, tableTo)
	if !ok || !there {
		t.Fatal("the page has no place for the table of channels")
	}
	if want := head + tableFrom + steering() + tableTo + tail; want != page {
		if *update {
			if err := os.WriteFile(servePage, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			t.Error("the table of channels is not the program's; go test ./cmd/adpdeck -run TestServePage -update writes it anew")
		}
	}
	names := []string{
		engine.FindingDisagrees, engine.FindingUnknown, engine.FindingRefused, engine.FindingFigures, engine.FindingEvents, engine.FindingLoads,
		model.FindingPhantom, model.FindingPinNotHonoured, model.FindingPinGone, model.FindingNoBlockSize,
	}
	for k := event.FindSilent; k <= event.FindRestarted; k++ {
		names = append(names, k.String())
	}
	for _, file := range []string{"workers: [{zzz: 1}]", "workers: [{events: {zzz: 1}}]", "gateway: {zzz: 1}", "feed: {zzz: 1}"} {
		_, err := settings.Parse("f", []byte(file))
		_, list, ok := strings.Cut(fmt.Sprint(err), "allowed are ")
		if !ok {
			t.Fatalf("%s: %v", file, err)
		}
		list, _, _ = strings.Cut(list, "\n")
		names = append(names, strings.Split(list, ", ")...)
	}
	for _, n := range names {
		if !strings.Contains(page, "`"+n+"`") && !strings.Contains(page, "`"+n+": ") && !strings.Contains(page, "{"+n+": ") {
			t.Errorf("the page does not name %s", n)
		}
	}
	g := settings.DefaultServe().Gateway
	for _, row := range []string{
		"| `listen` | " + g.Listen + " |", fmt.Sprintf("| `request_timeout_secs` | %v |", g.RequestTimeoutSecs), fmt.Sprintf("| `queue_timeout_secs` | %v |", g.QueueTimeoutSecs),
		fmt.Sprintf("| `drain_secs` | %v |", g.DrainSecs), fmt.Sprintf("| `derive_conversation` | %v |", g.DeriveConversation), fmt.Sprintf("| `retry` | %v |", g.Retry),
		fmt.Sprintf("| `decision_headers` | %v |", g.DecisionHeaders), "| `tokenize` | " + g.Tokenize + " |", fmt.Sprintf("| `tenant_header`, `tenant_from_key` | none, %v |", g.TenantFromKey),
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page does not say %s", row)
		}
	}
}
