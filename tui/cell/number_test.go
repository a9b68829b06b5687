package cell

import (
	"math"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

func TestNumbersAsWritten(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		got  Text
		want string
	}{
		"int":               {Int(1412), "1412"},
		"greatest int":      {Int(uint64(math.MaxUint64)), "18446744073709551615"},
		"full":              {Full(61204), "61,204"},
		"full small":        {Full(999), "999"},
		"full negative":     {Full(-1234567), "-1,234,567"},
		"count":             {Count(412), "412"},
		"count fraction":    {Count(8.0123), "8.01"},
		"count thousands":   {Count(48102), "48.1k"},
		"count rounds up":   {Count(999.6), "1.00k"},
		"count millions":    {Count(1.92e6), "1.92M"},
		"count near a unit": {Count(999_960), "1.00M"},
		"count giga":        {Count(2.5e9), "2.50G"},
		"kilo":              {Kilo(487), "0.5k"},
		"kilo large":        {Kilo(688_044), "688.0k"},
		"kilo larger":       {Kilo(1_920_000), "1.92M"},
		"fixed":             {Fixed(1, 2), "1.00"},
		"short whole":       {Short(4), "4.00"},
		"short long":        {Short(0.125), "0.125"},
		"ratio":             {Ratio(1.384), "1.38×"},
		"ratio large":       {Ratio(12.34), "12.3×"},
		"percent":           {Percent(0.874), "87.4 %"},
		"percent short":     {PercentShort(0.874), "87%"},
		"microseconds":      {Ms(0.041), "41 µs"},
		"milliseconds":      {Ms(183.4), "183 ms"},
		"seconds":           {Ms(1900), "1.9 s"},
		"many seconds":      {Ms(72_000), "72 s"},
		"no time":           {Ms(0), "0 ms"},
		"age seconds":       {Age(44 * time.Second), "44s"},
		"age minutes":       {Age(29*time.Minute + 59*time.Second), "29m"},
		"age hours":         {Age(5 * time.Hour), "5h"},
		"age days":          {Age(72 * time.Hour), "3d"},
		"age of the future": {Age(-time.Second), "0s"},
		"badge":             {Seconds(7200 * time.Millisecond), "7.2 s"},
		"badge late":        {Seconds(250 * time.Second), "250 s"},
		"clock":             {Clock(time.Date(2026, 1, 2, 14, 2, 31, 0, time.UTC)), "14:02:31"},
		"no clock":          {Clock(time.Time{}), "—"},
		"unknown count":     {Count(nan), "—"},
		"unknown kilo":      {Kilo(nan), "—"},
		"unknown ratio":     {Ratio(math.Inf(1)), "—"},
		"unknown percent":   {Percent(nan), "—"},
		"unknown time":      {Ms(nan), "—"},
		"unknown fixed":     {Fixed(nan, 2), "—"},
		"unknown short":     {Short(nan), "—"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.got.String() != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
			if w := ansi.StringWidth(c.want); c.got.Width() != w {
				t.Errorf("claims %d cells, takes %d", c.got.Width(), w)
			}
		})
	}
}

func TestSayPutsPartsIntoSentences(t *testing.T) {
	got := Say("%s → %s at %s", Int(1), Foreign("a\x9bb"))
	if got.String() != `1 → a\x9bb at —` || got.Width() != ansi.StringWidth(got.String()) {
		t.Errorf("got %q, %d cells", got, got.Width())
	}
}
