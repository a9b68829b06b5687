package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadTokens: vLLM tells its max_model_len; SGLang its tokenizer's
// model_max_length (openai/serving_tokenize.py), which is int(1e30) where the
// tokenizer names none, and -1 where it has none.
func TestReadTokens(t *testing.T) {
	t.Parallel()
	for page, most := range map[string]int{
		`{"tokens":[5,6],"count":2,"max_model_len":131072}`:                          131072,
		`{"tokens":[5,6],"count":2,"max_model_len":1000000000000000019884624838656}`: 0,
		`{"tokens":[5,6],"count":2,"max_model_len":-1}`:                              0,
		`{"tokens":[5,6],"count":2}`:                                                 0,
	} {
		got, err := readTokens(answer{status: 200, body: []byte(page)})
		if d := cmp.Diff(TokenList{Tokens: []uint32{5, 6}, MaxTokens: most}, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", page, err, d)
		}
	}
	for _, page := range []string{`{"tokens":[[5],[6]],"count":[1,1]}`, `{"tokens":[-1]}`, `{}`} {
		if got, err := readTokens(answer{status: 200, body: []byte(page)}); err == nil {
			t.Errorf("%s: %v", page, got)
		}
	}
}
