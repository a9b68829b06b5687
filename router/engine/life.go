package engine

// Numbers of answers in a row that decide on life and death. Two failures: one
// lost answer is no death, and three would take too long. Two successes after a
// death: an engine that begins again should not be believed on the first.
const (
	failsToDie   = 2
	oksToReturn  = 2
	failsToDoubt = 3 // requests to one rank while the engine itself answers
)

// life is what probes of one address have shown.
type life struct {
	judged bool // the first answer decides alone
	up     bool
	fails  int // in a row
	oks    int
	why    string // of the newest failure
}

// saw takes one probe's outcome, why empty for a good one, and reports whether
// the address came to be up or down by it.
func (l *life) saw(why string) (turned bool) {
	if why != "" {
		l.oks, l.why = 0, why
		l.fails++
		turned = !l.judged || l.up && l.fails >= failsToDie
		if turned {
			l.up = false
		}
	} else {
		l.fails = 0
		l.oks++
		turned = !l.judged || !l.up && l.oks >= oksToReturn
		if turned {
			l.up, l.why = true, ""
		}
	}
	l.judged = true
	return turned
}

// doubt is what requests have shown of one rank whose address answers: a rank
// that takes requests and never answers them is found out by nothing else.
type doubt struct {
	fails int // in a row, without one answer between
	out   bool
	why   string
}

// failed takes a request that got no answer, and reports whether the rank is out
// by it.
func (d *doubt) failed(why string) (turned bool) {
	d.fails++
	d.why = why
	turned = !d.out && d.fails >= failsToDoubt
	d.out = d.out || turned
	return turned
}

// release lets the rank take requests again, because nothing else can show
// whether it is well: one more failure and it is out, one answer and the doubt
// is gone.
func (d *doubt) release() {
	d.out, d.fails = false, failsToDoubt-1
}
