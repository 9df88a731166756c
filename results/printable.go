package results

import (
	"strings"
	"unicode"
)

// Printable replaces control characters other than newline and tab, which a
// terminal would obey: names, messages and the last words of programs come from
// outside.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
