package scrape

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"adpdeck/router/prefix/event"
)

// Bounds on any answer of up to a MiB. Time is not asserted, as machines differ
// and are shared; BenchmarkHostile shows it, and 50 ms are the bar.
const (
	hostileBytes = 1 << 20
	hostileHeap  = 64 << 20 // allocated in all, so more than is ever held at a time
)

// fill repeats a piece up to hostileBytes between a beginning and an end; piece
// gets its number.
func fill(begin, end string, piece func(i int) string) []byte {
	var b bytes.Buffer
	b.Grow(hostileBytes)
	b.WriteString(begin)
	for i := 0; ; i++ {
		p := piece(i)
		if b.Len()+len(p)+len(end) > hostileBytes {
			break
		}
		b.WriteString(p)
	}
	b.WriteString(end)
	return b.Bytes()
}

func same1(s string) func(int) string { return func(int) string { return s } }

// hostileText is what a Prometheus page can be made of, for a family that is
// looked for.
func hostileText(family, rank string) map[string][]byte {
	return map[string][]byte{
		"many ranks":         fill("", "", func(i int) string { return fmt.Sprintf("%s{%s=\"%d\"} 1\n", family, rank, i) }),
		"a rank often":       fill("", "", same1(fmt.Sprintf("%s{%s=\"0\"} 1\n", family, rank))),
		"ranks that differ":  fill("", "", func(i int) string { return fmt.Sprintf("%s{%s=\"0\"} %d\n", family, rank, i) }),
		"tiny series":        fill("", "", same1(family+" 1\n")),
		"a label of a MiB":   fill(family+"{x=\"", "\"} 1\n", same1("x")),
		"a name of a MiB":    fill(family, " 1\n", same1("x")),
		"labels in a line":   fill(family+"{", "} 1\n", func(i int) string { return fmt.Sprintf("l%d=\"\",", i) }),
		"labels in 16 KiB":   fill("", "", same1(family+"{"+strings.Repeat("l=\"\",", 3000)+"} 1\n")),
		"labels apart":       fill("", "", func(i int) string { return labelled(family, i) }),
		"the rank's label":   fill("", "", same1(family+"{"+strings.Repeat(rank+"=\"1\",", 1000)+"} 1\n")),
		"bad labels":         fill("", "", same1(family+"{ l = \"\" , m = \"\" } 1\n")),
		"many spaced labels": fill("", "", same1(family+"{"+strings.Repeat("l =\"\",", 2500)+"} 1\n")),
		"huge exponents":     fill("", "", same1(family+"{"+rank+"=\"1\"} 1e"+strings.Repeat("9", 200)+"\n")),
		"long numbers":       fill("", "", same1(family+"{"+rank+"=\"1\"} "+strings.Repeat("1", 16000)+"\n")),
		"hex numbers":        fill("", "", same1(family+"{"+rank+"=\"1\"} 0x1p-1074\n")),
		"bad lines":          fill("", "", same1(family+"{\n")),
		"every other bad":    fill("", "", same1(family+" 1\n"+family+"{x=\"\\\"} 1\n")),
		"open strings":       fill("", "", same1(family+"{x=\"\n")),
		"escapes":            fill(family+"{x=\"", "\"} 1\n", same1(`\\`)),
		"escapes in lines":   fill("", "", same1(family+"{"+rank+"=\""+strings.Repeat(`\\`, 4000)+"\"} 1\n")),
		"no line ends":       fill("", "", same1(family+" 1 ")),
		"line ends":          fill(family+" 1\n", "", same1("\n")),
		"comments":           fill(family+" 1\n", "", same1("# TYPE x counter\n")),
		"types of it":        fill("", "", same1("# TYPE "+family+" histogram\n"+family+" 1\n")),
		"white":              fill(family+" 1\n", "", same1(" ")),
		"exemplars":          fill("", "", same1(family+" 1 # {a=\"b\"} 1\n")),
		"time stamps":        fill("", "", func(i int) string { return fmt.Sprintf("%s{%s=\"%d\"} 1 %d\n", family, rank, i%4000, i) }),
		"zeros":              make([]byte, hostileBytes),
		"all bytes":          fill(family+" 1\n", "", func(i int) string { return string([]byte{byte(i)}) }),
		"not UTF-8":          fill("", "", same1(family+"{"+rank+"=\"\xff\xfe\"} 1\n")),
	}
}

func labelled(family string, i int) string {
	var b strings.Builder
	b.WriteString(family + "{")
	for k := range 40 {
		fmt.Fprintf(&b, "l%d=\"%d\",", k, i)
	}
	b.WriteString("} 1\n")
	return b.String()
}

// hostileJSON is what JSON can be made of: row is a row of the list that is read,
// with one %d, between open and end.
func hostileJSON(open, row, end string) map[string][]byte {
	key := strings.SplitN(row, `"`, 3)[1]
	return map[string][]byte{
		"many rows":       fill(open, row0(row)+end, func(i int) string { return fmt.Sprintf(row, i) + "," }),
		"a row often":     fill(open, row0(row)+end, same1(row0(row)+",")),
		"empty rows":      fill(open, "{}"+end, same1("{},")),
		"nulls":           fill(open, "null"+end, same1("null,")),
		"numbers":         fill(open, "1"+end, same1("1,")),
		"lists":           fill(open, "[]"+end, same1("[],")),
		"texts":           fill(open, `""`+end, same1(`"",`)),
		"deep lists":      fill(open, "", same1("[")),
		"deep objects":    fill(open, "", same1(`{"a":`)),
		"closed deep":     []byte(open + strings.Repeat("[", hostileBytes/2-64) + strings.Repeat("]", hostileBytes/2-64) + end),
		"9,999 deep":      []byte(open + strings.Repeat(`{"a":`, 9990) + "1" + strings.Repeat("}", 9990) + end),
		"deep in a row":   fill(open, row0(row)+end, same1(`{"`+key+`":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`},`)),
		"a field often":   fill(open+"{", `"z":1}`+end, same1(`"`+key+`":1,`)),
		"many fields":     fill(open+"{", `"z":1}`+end, func(i int) string { return fmt.Sprintf(`"f%d":1,`, i) }),
		"fields in cases": fill(open+"{", `"z":1}`+end, same1(`"`+strings.ToUpper(key)+`":1,`)),
		"a long key":      fill(open+`{"`, `":1}`+end, same1("k")),
		"a long text":     fill(open+`{"`+key+`":"`, `"}`+end, same1("k")),
		"escapes":         fill(open+`{"`+key+`":"`, `"}`+end, same1(`\u0000`)),
		"surrogates":      fill(open+`{"`+key+`":"`, `"}`+end, same1(`\ud800`)),
		"huge exponents":  fill(open, row0(row)+end, same1(`{"`+key+`":1e`+strings.Repeat("9", 100)+`},`)),
		"a long number":   fill(open+`{"`+key+`":`, `}`+end, same1("1")),
		"a long fraction": fill(open+`{"`+key+`":0.`, `}`+end, same1("1")),
		"NaN":             fill(open, row0(row)+end, same1(`{"`+key+`":NaN},`)),
		"Infinities":      fill(open, "1"+end, same1("-Infinity,")),
		"quotes":          fill(open, end, same1(`"`)),
		"open text, NaN":  fill(open+"NaN,", "", same1(`"\`)),
		"white":           fill(open, end, same1(" ")),
		"commas":          fill(open, end, same1(",")),
		"two answers":     fill("", "", same1(open+row0(row)+end)),
		"not UTF-8":       fill(open+`{"`+key+`":"`, `"}`+end, same1("\xff")),
		"zeros":           make([]byte, hostileBytes),
	}
}

func row0(row string) string { return fmt.Sprintf(row, 0) }

// hostileBatches are batches of KV events that lie about themselves.
func hostileBatches() map[string][]byte {
	var e event.Encoder
	long := e.AppendBatch(nil, 1, 0, []event.Event{{
		Kind: event.Stored, BlockTokens: 16, Hashes: make([]event.Hash, 10_000), Tokens: make([]uint32, 160_000), Group: event.NoGroup,
	}})
	out := map[string][]byte{
		"a long event":     long,
		"cut":              long[:len(long)-1],
		"a list bomb":      {0xdd, 0xff, 0xff, 0xff, 0xff},
		"a map bomb":       {0xdf, 0xff, 0xff, 0xff, 0xff},
		"an events bomb":   {0x93, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0xdd, 0xff, 0xff, 0xff, 0xff},
		"a text bomb":      {0x93, 0xdb, 0xff, 0xff, 0xff, 0xff},
		"a bin bomb":       {0x93, 0xc6, 0xff, 0xff, 0xff, 0xff},
		"an ext bomb":      {0x93, 0xc9, 0xff, 0xff, 0xff, 0xff, 1},
		"deep lists":       bytes.Repeat([]byte{0x91}, hostileBytes),
		"deep maps":        bytes.Repeat([]byte{0x81, 0xa0}, hostileBytes/2),
		"zeros":            make([]byte, hostileBytes),
		"nils":             bytes.Repeat([]byte{0xc0}, hostileBytes),
		"empty events":     batchOf(hostileBytes-64, []byte{0x90}),
		"empty maps":       batchOf(hostileBytes-64, []byte{0x80}),
		"cleared":          batchOf((hostileBytes-64)/19, append([]byte{0x91, 0xb0}, "AllBlocksCleared"...)),
		"unknown tags":     batchOf((hostileBytes-64)/3, []byte{0x91, 0xa1, 'x'}),
		"a hashes bomb":    batchOf(1, append(append([]byte{0x95, 0xab}, "BlockStored"...), 0xdd, 0x7f, 0xff, 0xff, 0xff)),
		"events of bombs":  batchOf(50_000, append(append([]byte{0x92, 0xac}, "BlockRemoved"...), 0xdd, 0x7f, 0xff, 0xff, 0xff)),
		"removed, nothing": batchOf((hostileBytes-64)/15, append(append([]byte{0x92, 0xac}, "BlockRemoved"...), 0x90)),
		"removed, one":     batchOf((hostileBytes-64)/16, append(append([]byte{0x92, 0xac}, "BlockRemoved"...), 0x91, 1)),
		"stored, one token": batchOf((hostileBytes-64)/19, append(append([]byte{0x96, 0xab}, "BlockStored"...),
			0x91, 1, 0xc0, 0x91, 1, 1)),
	}
	return out
}

func batchOf(n int, one []byte) []byte {
	p := []byte{0x93, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0xdd, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return append(append(p, bytes.Repeat(one, n)...), 0)
}

// reader is a decoder with the inputs that are meant for it.
type reader struct {
	read   func(body []byte)
	inputs map[string][]byte
}

func readers() map[string]reader {
	return map[string]reader{
		"vllm":           {func(b []byte) { p, _ := VLLM(Answer{Body: b}); p.Inside(0, 8, "") }, hostileText("vllm:num_requests_running", "engine")},
		"vllm info":      {func(b []byte) { _, _ = VLLM(Answer{Body: b}) }, hostileText("vllm:cache_config_info", "engine")},
		"sglang metrics": {func(b []byte) { p, _ := SGLangMetrics(Answer{Body: b}, 16); p.Inside(0, 8, "") }, hostileText("sglang:num_running_reqs", "dp_rank")},
		"dynamo":         {func(b []byte) { _, _ = Dynamo(Answer{Body: b}) }, hostileText(dynamoBlocks, "worker_id")},
		"dynamo models":  {func(b []byte) { _, _ = Dynamo(Answer{Body: b}) }, hostileText(dynamoModelKV, "model")},
		"sglang loads":   {func(b []byte) { _, _ = SGLangLoads(Answer{Body: b}, 16) }, hostileJSON(`{"loads":[`, `{"dp_rank":%d,"num_running_reqs":1}`, "]}")},
		"sglang old":     {func(b []byte) { _, _ = SGLangLoads(Answer{Body: b}, 16) }, hostileJSON(`[`, `{"dp_rank":%d,"num_reqs":1}`, "]")},
		"trt rows":       {func(b []byte) { _, _ = TRTRows(Answer{Body: b}, 8) }, hostileJSON(`[`, `{"attentionDpRank":%d,"iter":1}`, "]")},
		"sglang info":    {func(b []byte) { _, _ = SGLangInfo(Answer{Body: b}) }, hostileJSON(`{"internal_states":[`, `{"dp_size":%d}`, "]}")},
		"models":         {func(b []byte) { _, _, _ = Models(Answer{Body: b}) }, hostileJSON(`{"data":[`, `{"id":"m%d"}`, "]}")},
		"health":         {func(b []byte) { Health("dynamo", Answer{Status: 200, Body: b}) }, hostileJSON(`{"status":"healthy","instances":[`, `{"instance_id":%d}`, "]}")},
		"batch":          {func(b []byte) { _, _ = Batch(b) }, hostileBatches()},
	}
}

// TestHostileCorpus is safety's first figure for memory: whatever an answer of a
// MiB holds, reading it allocates at most 64 MiB, all together.
func TestHostileCorpus(t *testing.T) {
	for name, r := range readers() {
		for what, body := range r.inputs {
			if len(body) > hostileBytes+4096 {
				t.Fatalf("%s: %s has %d bytes", name, what, len(body))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r.read(body)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > hostileHeap {
				t.Errorf("%s: %s: %d MiB are allocated", name, what, n>>20)
			}
		}
	}
}

// processor is the time of processors that this process has used: on a shared
// machine it says more than the clock. The collector's is in it.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHostile shows the time for each input of the corpus; the bar is 50 ms.
func BenchmarkHostile(b *testing.B) {
	for name, r := range readers() {
		for what, body := range r.inputs {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				began := processor(b)
				for b.Loop() {
					r.read(body)
				}
				b.ReportMetric(float64((processor(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
