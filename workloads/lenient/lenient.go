// Package lenient reads the JSON that measuring tools really print.
//
// Tools print nan, -inf or Infinity where a division had no denominator, and
// sometimes a banner before the object, or end in the middle. [Clean] turns
// what is no finite number into null, so that encoding/json can read the rest;
// [Decode] does both and says how many values went missing. Nothing here ever
// turns a missing value into a number.
package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// literals are the spellings, in lower case, of numbers that JSON has not.
// Longer ones come first where one is a prefix of another.
var literals = []string{"infinity", "inf", "nan(ind)", "nan(snan)", "nan", "1.#qnan", "1.#inf", "1.#ind"}

// Clean returns text with NaN and infinities outside strings replaced by null,
// and how many there were. Other text is kept as it is.
func Clean(text []byte) ([]byte, int) {
	var out []byte // nil until the first replacement
	replaced, copied, inString := 0, 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString || !startsLiteral(c) || i > 0 && isWord(text[i-1]):
		default:
			n := literalAt(text[i:])
			if n == 0 {
				continue
			}
			out = append(append(out, text[copied:i]...), "null"...)
			replaced++
			copied = i + n
			i = copied - 1
		}
	}
	if replaced == 0 {
		return text, 0
	}
	return append(out, text[copied:]...), replaced
}

func startsLiteral(c byte) bool {
	return c == '-' || c == '+' || c == 'n' || c == 'N' || c == 'i' || c == 'I' || c == '1'
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || c == '#'
}

// literalAt returns the length of the literal that text begins with, 0 for
// none.
func literalAt(text []byte) int {
	sign := 0
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		sign = 1
	}
	for _, l := range literals {
		end := sign + len(l)
		if len(text) >= end && bytes.EqualFold(text[sign:end], []byte(l)) && (end == len(text) || !isWord(text[end])) {
			return end
		}
	}
	return 0
}

// ErrNoJSON says that a text holds no JSON value.
var ErrNoJSON = errors.New("no JSON value")

// Decode reads the first complete JSON object or array of text, skipping what
// is printed before and after it. missing counts the values that were NaN or
// infinite and are now null.
func Decode(text []byte) (value any, missing int, err error) {
	clean, missing := Clean(text)
	var first error
	for from := 0; from < len(clean); {
		i := bytes.IndexAny(clean[from:], "{[")
		if i < 0 {
			break
		}
		from += i
		d := json.NewDecoder(bytes.NewReader(clean[from:]))
		if err := d.Decode(&value); err == nil {
			return value, missing, nil
		} else if first == nil {
			first = err
		}
		// A bracket in a banner, or a value cut short: look behind the line.
		next := bytes.IndexByte(clean[from:], '\n')
		if next < 0 {
			break
		}
		from += next + 1
	}
	if first != nil {
		return nil, missing, fmt.Errorf("%w: %w", ErrNoJSON, first)
	}
	return nil, missing, ErrNoJSON
}
