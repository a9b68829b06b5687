package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"adpdeck/router/model"

	"github.com/spf13/cobra"
)

// foreign is an id as a client may choose it: 8-bit and UTF-8 controls, lines,
// tabs, what turns the direction, a plane beyond the first.
const foreign = "evil\x1b[31m\u009b2J\r\nv9 set x\t\u202e\u200b\x7f\U000e0001end"

// TestCtlAnswersAreHarmless: what a reply quotes writes no line of its own and
// tells the terminal nothing, in text and in JSON, whose reader gets it unchanged.
func TestCtlAnswersAreHarmless(t *testing.T) {
	refused := &model.Refusal{Code: model.RefusedConv, Message: "pin " + foreign + ": no such conversation", Next: "name " + foreign}
	key := model.ConvKey{ID: foreign, Tenant: foreign}
	for name, c := range map[string]struct {
		reply model.Reply
		lines int
	}{
		"accepted": {model.Reply{Accepted: true, Version: 2, What: "pin " + foreign + " to w0/1", Items: []model.ItemResult{{Conv: key, Refusal: refused}}}, 2},
		"refused":  {model.Reply{Version: 2, Refusal: refused, Items: []model.ItemResult{{Conv: key, Refusal: refused}, {Conv: key, Refusal: refused}}}, 3},
	} {
		for _, output := range []string{"text", "json"} {
			var out bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			if err := (&ctlFlags{output: output}).answer(cmd, model.VerbPin, &c.reply); err != nil && output == "text" {
				out.WriteString(err.Error() + "\n")
			}
			want := c.lines
			if output == "json" {
				want = 1
				var back model.Reply
				if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Items[0].Conv != key {
					t.Errorf("%s: %v, %+v", name, err, back.Items)
				}
			}
			for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
				if i >= want || strings.ContainsFunc(line, func(c rune) bool { return !unicode.IsPrint(c) }) {
					t.Errorf("%s, %s: line %d is %q", name, output, i, line)
				}
			}
		}
	}
}
