package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adpdeck/router/engine/steer"
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

var findingCode = regexp.MustCompile(`\bFinding\w+ += +"(\w+)"`)

// findingsOf are the codes of findings that the sources in some folders declare.
func findingsOf(t *testing.T, folders ...string) (codes []string) {
	t.Helper()
	for _, dir := range folders {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range findingCode.FindAllSubmatch(raw, -1) {
				codes = append(codes, string(m[1]))
			}
		}
	}
	if len(codes) < 11 {
		t.Fatalf("only %v are declared", codes)
	}
	return codes
}

// inFirstCells reports that a table, told by the beginning of its head, has a row
// for a name.
func inFirstCells(page, head, name string) bool {
	_, table, _ := strings.Cut(page, "\n"+head)
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) > 1 && strings.HasPrefix(line, "| ") && strings.Contains(cells[0], "`"+name+"`") && strings.TrimSpace(cells[len(cells)-1]) != "|" {
			return true
		}
	}
	return false
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
	findings := findingsOf(t, "../../router/model", "../../router/engine")
	for k := event.FindSilent; k <= event.FindRestarted; k++ {
		findings = append(findings, k.String())
	}
	for _, n := range findings {
		if !inFirstCells(page, "| code |", n) {
			t.Errorf("the findings of the page lack %s", n)
		}
	}
	for _, c := range []struct{ file, table, prefix string }{
		{"workers: [{zzz: 1}]", "| of a worker |", ""},
		{"workers: [{events: {zzz: 1}}]", "| of a worker |", "events."},
		{"gateway: {zzz: 1}", "| of `gateway` |", ""},
		{"feed: {zzz: 1}", "| of `feed` |", ""},
	} {
		_, err := settings.Parse("f", []byte(c.file))
		_, list, ok := strings.Cut(fmt.Sprint(err), "allowed are ")
		if !ok {
			t.Fatalf("%s: %v", c.file, err)
		}
		list, _, _ = strings.Cut(list, "\n")
		for key := range strings.SplitSeq(list, ", ") {
			if key != "events" && !inFirstCells(page, c.table, c.prefix+key) {
				t.Errorf("the table %s of the page lacks %s%s", c.table, c.prefix, key)
			}
		}
	}
	g := settings.DefaultServe().Gateway
	for _, row := range []string{
		"| `listen` | " + g.Listen + " |", fmt.Sprintf("| `request_timeout_secs` | %v |", g.RequestTimeoutSecs), fmt.Sprintf("| `queue_timeout_secs` | %v |", g.QueueTimeoutSecs),
		fmt.Sprintf("| `drain_secs` | %v |", g.DrainSecs), fmt.Sprintf("| `derive_conversation` | %v |", g.DeriveConversation), fmt.Sprintf("| `retry` | %v |", g.Retry),
		fmt.Sprintf("| `decision_headers` | %v |", g.DecisionHeaders), "| `tokenize` | " + g.Tokenize + " |", "| `listen` | " + settings.DefaultServe().FeedListen + " |",
		fmt.Sprintf("| `tenant_header`, `tenant_from_key` | none, %v |", g.TenantFromKey),
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page does not say %s", row)
		}
	}
}
