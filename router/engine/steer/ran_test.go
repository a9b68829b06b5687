package steer

import (
	"net/http"
	"testing"

	"adpdeck/router/model"
)

func TestRan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec   *model.EngineSpec
		header string
		body   string
		want   Report
		known  bool
	}{
		"silent":                {spec: vllm, body: `{"usage":{}}`},
		"vllm header":           {spec: vllm, header: "1", want: Report{Rank: 1, Evidence: "header"}, known: true},
		"sglang header, global": {spec: sglang, header: "6", want: Report{Rank: 2, Evidence: "header"}, known: true},
		"sglang body":           {spec: sglang, body: `{"meta_info":{"dp_rank":4}}`, want: Report{Rank: 0, Evidence: "usage"}, known: true},
		"a rank not its own":    {spec: sglang, header: "1", want: Report{Rank: model.NoRank, Evidence: "header"}, known: true},
		"nonsense":              {spec: sglang, header: "one", body: `{"meta_info":{"dp_rank":-1}}`},
		"a rank beyond reason":  {spec: dynamo, body: `{"nvext":{"worker_id":{"decode_dp_rank":18446744073709551615}}}`, want: Report{Rank: model.NoRank, Evidence: "usage"}, known: true},
		"a port counts itself":  {spec: perPort, header: "0"},
		"dynamo": {
			spec: dynamo, body: `{"nvext":{"worker_id":{"decode_worker_id":9223372036854775809,"decode_dp_rank":11}}}`,
			want: Report{Rank: 3, Instance: 1<<63 + 1, Evidence: "usage"}, known: true,
		},
		"dynamo on another worker": {
			spec: dynamo, body: `{"nvext":{"worker_id":{"decode_worker_id":9223372036854775808,"decode_dp_rank":9}}}`,
			want: Report{Rank: model.NoRank, Instance: 1 << 63, Elsewhere: true, Evidence: "usage"}, known: true,
		},
		"dynamo worker without a rank": {
			spec: dynamo, body: `{"nvext":{"worker_id":{"decode_worker_id":9223372036854775809}}}`,
			want: Report{Rank: model.NoRank, Instance: 1<<63 + 1, Evidence: "usage"},
		},
		"dynamo id as text is none": {spec: dynamo, body: `{"nvext":{"worker_id":{"decode_worker_id":"7"}}}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			if tc.header != "" {
				h.Set("x-data-parallel-rank", tc.header)
			}
			got, known := Ran(tc.spec, h, []byte(tc.body))
			if known != tc.known || got != tc.want {
				t.Errorf("got %+v %v, want %+v %v", got, known, tc.want, tc.known)
			}
		})
	}
}
