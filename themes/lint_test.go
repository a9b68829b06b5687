package themes

import "testing"

func TestShippedThemesAreReadable(t *testing.T) {
	for _, n := range Names() {
		f, err := Load(n)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != n {
			t.Errorf("theme %s calls itself %s", n, f.Name)
		}
		for _, finding := range Lint(f) {
			t.Errorf("%s: %s", n, finding)
		}
	}
}
