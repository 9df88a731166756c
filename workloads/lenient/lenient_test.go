package lenient

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]struct {
		out string
		n   int
	}{
		`{"a":nan}`:                           {`{"a":null}`, 1},
		`{"a":-nan,"b":+Inf,"c":Infinity}`:    {`{"a":null,"b":null,"c":null}`, 3},
		`[NaN, -inf, -Infinity, nan(ind), 1]`: {`[null, null, null, null, 1]`, 4},
		`{"a":1.#INF,"b":-1.#IND}`:            {`{"a":null,"b":null}`, 2},
		`{"a":"nan","inf":"-inf \" nan"}`:     {`{"a":"nan","inf":"-inf \" nan"}`, 0},
		`{"a":null,"b":-1e-5,"c":true}`:       {`{"a":null,"b":-1e-5,"c":true}`, 0},
		`{"a":information}`:                   {`{"a":information}`, 0},
		`nan`:                                 {`null`, 1},
		`-`:                                   {`-`, 0},
		``:                                    {``, 0},
		`{"a":"unclosed nan`:                  {`{"a":"unclosed nan`, 0},
	} {
		out, n := Clean([]byte(in))
		if string(out) != want.out || n != want.n {
			t.Errorf("%s: %s, %d; want %s, %d", in, out, n, want.out, want.n)
		}
	}
}

func TestCleanLeavesItsInputAlone(t *testing.T) {
	in := []byte(`{"a":nan}`)
	Clean(in)
	if string(in) != `{"a":nan}` {
		t.Errorf("input is now %s", in)
	}
}

func TestDecode(t *testing.T) {
	object := func(v any) any { return map[string]any{"a": v} }
	for in, want := range map[string]struct {
		values  []any
		missing int
	}{
		`{"a":1}`:                                 {[]any{object(1.0)}, 0},
		"banner [x] {y}\n{\"a\":1}\ntrailer {":    {[]any{object(1.0)}, 0},
		"{\"a\":1}\n{\"a\":nan}\n{\"a\":":         {[]any{object(1.0), object(nil)}, 1},
		`{"a":1e999}`:                             {[]any{object(nil)}, 1},
		"warning: {\"a\":[1,{\"a\":2}]}":          {[]any{object([]any{1.0, object(2.0)})}, 0},
		"{\"b\":[\n{\"a\":1},\n{\"a\":2":          {nil, 0}, // the inner objects are no documents
		"{ broken }\n  {\"a\":1}\n{\"a\":2}\nend": {[]any{object(2.0)}, 0},
		"":        {nil, 0},
		"no data": {nil, 0},
	} {
		values, missing, err := Decode([]byte(in))
		if !reflect.DeepEqual(values, want.values) || missing != want.missing {
			t.Errorf("%q: %v, %d; want %v, %d", in, values, missing, want.values, want.missing)
		}
		if errors.Is(err, ErrNoJSON) != (want.values == nil) {
			t.Errorf("%q: error %v", in, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":nan}`, "x\n[1,2]", `{"a":"\\"}`, `[[[[`, "{\"a\":1}{\"a\":-Infinity}", "\xff{\x00}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		clean, n := Clean(text)
		if again, m := Clean(clean); m != 0 || string(again) != string(clean) {
			t.Errorf("cleaning twice differs: %q, %d then %d", text, n, m)
		}
		if json.Valid(text) && (n != 0 || string(clean) != string(text)) {
			t.Errorf("valid JSON was changed: %q", text)
		}
		values, _, err := Decode(text)
		if (err == nil) != (len(values) > 0) {
			t.Errorf("%d values and error %v", len(values), err)
		}
	})
}
