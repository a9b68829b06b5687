package cell

import (
	"math"
	"strconv"
	"time"
)

// dash is how a figure that is not known is painted; it is never 0.
func dash() Text { return Text{s: "—", w: 1} }

func plain(b []byte) Text { return Text{s: string(b), w: len(b)} }

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Unknown is the dash that stands for a figure that is not known.
func Unknown() Text { return dash() }

// Int writes a whole number as it is: 1412.
func Int[T ~int | ~int32 | ~int64 | ~uint64](n T) Text {
	return plain(appendInt(make([]byte, 0, 20), int64(n), n > 0 && uint64(n) > math.MaxInt64, uint64(n)))
}

func appendInt(b []byte, n int64, big bool, u uint64) []byte {
	if big {
		return strconv.AppendUint(b, u, 10)
	}
	return strconv.AppendInt(b, n, 10)
}

// Full writes a whole number with all its digits in groups: 61,204.
func Full[T ~int | ~int32 | ~int64 | ~uint64](n T) Text {
	digits := appendInt(make([]byte, 0, 20), int64(n), n > 0 && uint64(n) > math.MaxInt64, uint64(n))
	out := make([]byte, 0, len(digits)+8)
	start := 0
	if digits[0] == '-' {
		out, start = append(out, '-'), 1
	}
	for i := start; i < len(digits); i++ {
		if i > start && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return plain(out)
}

// Count writes a count with at most three significant digits: 412, 4.81k,
// 48.1k, 688k, 1.92M.
func Count(v float64) Text {
	if !known(v) {
		return dash()
	}
	b := make([]byte, 0, 12)
	for _, unit := range [...]struct {
		size float64
		name byte
	}{{1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}} {
		if math.Abs(v) >= unit.size*0.9995 {
			return plain(append(three(b, v/unit.size), unit.name))
		}
	}
	if v == math.Trunc(v) {
		return plain(strconv.AppendInt(b, int64(v), 10))
	}
	return plain(three(b, v))
}

// Kilo writes a count in thousands with one decimal, 48.1k, so that a column
// of them lines up; from 1,000k on like Count.
func Kilo(v float64) Text {
	if !known(v) || math.Abs(v) >= 999_950 {
		return Count(v)
	}
	return plain(append(strconv.AppendFloat(make([]byte, 0, 12), v/1e3, 'f', 1, 64), 'k'))
}

// three writes v below 1000 with three significant digits.
func three(b []byte, v float64) []byte {
	prec := 2
	switch a := math.Abs(v); {
	case a >= 99.95:
		prec = 0
	case a >= 9.995:
		prec = 1
	}
	return strconv.AppendFloat(b, v, 'f', prec, 64)
}

// Fixed writes v with prec decimals: 1.00.
func Fixed(v float64, prec int) Text {
	if !known(v) {
		return dash()
	}
	return plain(strconv.AppendFloat(make([]byte, 0, 16), v, 'f', prec, 64))
}

// Short writes v with as few decimals as say it exactly, at least two where
// there are any: 4.00 becomes 4.00 by Fixed, but 0.125 stays 0.125.
func Short(v float64) Text {
	if !known(v) {
		return dash()
	}
	b := strconv.AppendFloat(make([]byte, 0, 24), v, 'f', -1, 64)
	point := -1
	for i, c := range b {
		if c == '.' {
			point = i
		}
	}
	if point < 0 || len(b)-point < 3 {
		return Fixed(v, 2)
	}
	return plain(b)
}

// Ratio writes a ratio: 1.38×.
func Ratio(v float64) Text {
	if !known(v) {
		return dash()
	}
	b := append(three(make([]byte, 0, 12), v), "×"...)
	return Text{s: string(b), w: len(b) - 1}
}

// Percent writes a share of 1 with one decimal: 87.4 %.
func Percent(v float64) Text {
	if !known(v) {
		return dash()
	}
	return plain(append(strconv.AppendFloat(make([]byte, 0, 12), v*100, 'f', 1, 64), " %"...))
}

// PercentShort writes a share of 1 in whole percent, for columns: 87%.
func PercentShort(v float64) Text {
	if !known(v) {
		return dash()
	}
	return plain(append(strconv.AppendFloat(make([]byte, 0, 8), v*100, 'f', 0, 64), '%'))
}

// Ms writes a time given in milliseconds: 41 µs, 183 ms, 1.9 s, 72 s.
func Ms(v float64) Text {
	if !known(v) {
		return dash()
	}
	b := make([]byte, 0, 12)
	switch a := math.Abs(v); {
	case a < 0.9995 && a > 0:
		b = append(strconv.AppendFloat(b, v*1000, 'f', 0, 64), " µs"...)
		return Text{s: string(b), w: len(b) - 1}
	case a < 999.5:
		return plain(append(strconv.AppendFloat(b, v, 'f', 0, 64), " ms"...))
	case a < 9950:
		return plain(append(strconv.AppendFloat(b, v/1000, 'f', 1, 64), " s"...))
	}
	return plain(append(strconv.AppendFloat(b, v/1000, 'f', 0, 64), " s"...))
}

// Age writes a whole time in one unit, for columns: 44s, 6m, 2h, 3d. A negative
// one, which clocks of two machines can give, is 0s.
func Age(d time.Duration) Text {
	d = max(d, 0)
	b := make([]byte, 0, 8)
	switch {
	case d < time.Minute:
		return plain(append(strconv.AppendInt(b, int64(d/time.Second), 10), 's'))
	case d < time.Hour:
		return plain(append(strconv.AppendInt(b, int64(d/time.Minute), 10), 'm'))
	case d < 48*time.Hour:
		return plain(append(strconv.AppendInt(b, int64(d/time.Hour), 10), 'h'))
	}
	return plain(append(strconv.AppendInt(b, int64(d/(24*time.Hour)), 10), 'd'))
}

// Seconds writes a time with one decimal, for badges: 7.2 s; from 100 s on
// without.
func Seconds(d time.Duration) Text {
	prec := 1
	if d >= 100*time.Second {
		prec = 0
	}
	return plain(append(strconv.AppendFloat(make([]byte, 0, 12), d.Seconds(), 'f', prec, 64), " s"...))
}

// Lasting writes a length of time in words: 36 s, 4 min, 2 h; minutes only from
// three on, so that little is lost.
func Lasting(d time.Duration) Text {
	d = max(d, 0)
	switch {
	case d < 3*time.Minute:
		return plain(append(strconv.AppendInt(nil, int64(d.Round(time.Second)/time.Second), 10), " s"...))
	case d < 3*time.Hour:
		return plain(append(strconv.AppendInt(nil, int64(d.Round(time.Minute)/time.Minute), 10), " min"...))
	}
	return plain(append(strconv.AppendInt(nil, int64(d.Round(time.Hour)/time.Hour), 10), " h"...))
}

// Clock writes the time of day: 14:02:31. The zero time is unknown.
func Clock(t time.Time) Text {
	if t.IsZero() {
		return dash()
	}
	return plain(t.AppendFormat(make([]byte, 0, 8), "15:04:05"))
}
