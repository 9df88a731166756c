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
	"io"
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

// Decode reads every complete JSON object or array of text, skipping what is
// printed around them: a tool may print one object, or one a line. missing
// counts the values that were NaN, infinite or beyond float64 and are now nil.
// The error is [ErrNoJSON] when there is none.
//
// Behind text that cannot be read, a value is only taken at the begin of a
// line, and behind one that is cut short none is: the inner objects of a
// broken document are not documents.
func Decode(text []byte) (values []any, missing int, err error) {
	clean, missing := Clean(text)
	var first error
	at := bytes.IndexAny(clean, "{[")
	for at >= 0 {
		clean = clean[at:]
		d := json.NewDecoder(bytes.NewReader(clean))
		d.UseNumber()
		var v any
		err := d.Decode(&v)
		if err == nil {
			v, n := numbers(v)
			values, missing = append(values, v), missing+n
			clean = clean[d.InputOffset():]
			at = bytes.IndexAny(clean, "{[")
			continue
		}
		if first == nil {
			first = err
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		at = nextLine(clean)
	}
	switch {
	case len(values) > 0:
		return values, missing, nil
	case first != nil:
		return nil, missing, fmt.Errorf("%w: %w", ErrNoJSON, first)
	}
	return nil, missing, ErrNoJSON
}

// nextLine finds the next line that begins with a value, -1 for none.
func nextLine(text []byte) int {
	for i, c := range text[:max(0, len(text)-1)] {
		if c == '\n' && (text[i+1] == '{' || text[i+1] == '[') {
			return i + 1
		}
	}
	return -1
}

// numbers turns every number into a float64, or nil where it does not fit, and
// counts those.
func numbers(v any) (any, int) {
	missing := 0
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return nil, 1
		}
		return f, 0
	case []any:
		for i := range v {
			var n int
			v[i], n = numbers(v[i])
			missing += n
		}
	case map[string]any:
		for k := range v {
			var n int
			v[k], n = numbers(v[k])
			missing += n
		}
	}
	return v, missing
}
