package trace

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

const (
	azureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens"
	// azureBlockTokens is the block size that is assumed: the file has no
	// blocks, so it matters only for what a request occupies.
	azureBlockTokens = 64
)

// azureTime reads a TIMESTAMP: fractions of a second of any length
// are read after the seconds, and times without a zone are UTC.
func azureTime(s string) (time.Time, error) {
	at, err := time.Parse("2006-01-02 15:04:05", s)
	if err != nil {
		at, err = time.Parse("2006-01-02 15:04:05Z07:00", s)
	}
	return at, err
}

// readAzure reads requests that share nothing: each is keyless and made of
// blocks that no other request has.
func (b *builder) readAzure(lr *lineReader) error {
	b.t.BlockTokens = azureBlockTokens
	var base time.Time
	unique := uint64(0)
	err := b.each(lr, func(line []byte) string {
		if bytes.EqualFold(line, []byte(azureHeader)) {
			return ""
		}
		fields := bytes.Split(line, []byte(","))
		if len(fields) != 3 {
			return fmt.Sprintf("has %d fields, must have 3: %s", len(fields), azureHeader)
		}
		stamp, err := azureTime(string(bytes.TrimSpace(fields[0])))
		if err != nil {
			return fmt.Sprintf("TIMESTAMP %.40q is not like 2023-11-16 18:15:46.6805900", fields[0])
		}
		prompt, why := azureTokens("ContextTokens", fields[1])
		if why != "" {
			return why
		}
		output, why := azureTokens("GeneratedTokens", fields[2])
		if why != "" {
			return why
		}
		if base.IsZero() {
			base = stamp
		}
		at := stamp.Sub(base)
		if at > maxMillis*time.Millisecond || at < -maxMillis*time.Millisecond {
			return fmt.Sprintf("TIMESTAMP %s is more than ten years from the first", fields[0])
		}
		blocks := b.room((prompt + azureBlockTokens - 1) / azureBlockTokens)
		for i := range blocks {
			unique++
			blocks[i] = Chain(0, unique)
		}
		b.t.Rows = append(b.t.Rows, Row{
			At: at, PromptTokens: prompt, OutputTokens: output, Blocks: blocks, BlockTokens: azureBlockTokens,
		})
		return ""
	})
	if err != nil {
		return err
	}
	b.arrange()
	b.t.Notes = append(b.t.Notes, "the file has neither conversations nor blocks: every request is keyless and shares nothing")
	return nil
}

func azureTokens(field string, text []byte) (int, string) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return 0, fmt.Sprintf("%s %.20q is not a whole number", field, text)
	}
	return n, tokens(field, &n)
}
