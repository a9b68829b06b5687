package pin

import (
	"strconv"
	"strings"

	"adpdeck/router/model"
)

// Encode writes a conversation key as one string that no other key shares:
//
//	<bytes of tenant>:<bytes of model>:<tenant><model><id>
//
// A keyless key gives the empty string, which the engine tier reads as "no
// conversation".
func Encode(k model.ConvKey) string {
	if k.Keyless() {
		return ""
	}
	b := make([]byte, 0, 8+len(k.Tenant)+len(k.Model)+len(k.ID))
	b = strconv.AppendInt(b, int64(len(k.Tenant)), 10)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(len(k.Model)), 10)
	b = append(b, ':')
	b = append(b, k.Tenant...)
	b = append(b, k.Model...)
	b = append(b, k.ID...)
	return string(b)
}

// Decode reads what Encode wrote; ok is false for any other text. The parts
// share the memory of s, so that a look-up allocates nothing.
func Decode(s string) (k model.ConvKey, ok bool) {
	tenant, s, ok := cutLength(s)
	if !ok {
		return model.ConvKey{}, false
	}
	name, s, ok := cutLength(s)
	if !ok || tenant+name >= len(s) {
		return model.ConvKey{}, false
	}
	return model.ConvKey{Tenant: s[:tenant], Model: s[tenant : tenant+name], ID: s[tenant+name:]}, true
}

func cutLength(s string) (n int, rest string, ok bool) {
	head, rest, ok := strings.Cut(s, ":")
	if !ok || head == "" || len(head) > 9 {
		return 0, "", false
	}
	for i := range len(head) {
		if head[i] < '0' || head[i] > '9' {
			return 0, "", false
		}
		n = n*10 + int(head[i]-'0')
	}
	return n, rest, true
}
