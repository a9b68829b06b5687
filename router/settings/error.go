package settings

import "fmt"

// Error is what is wrong in a settings file, and where.
type Error struct {
	File         string
	Line, Column int // from 1, in characters
	Message      string
}

// Error writes FILE:LINE:COLUMN: message.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}
