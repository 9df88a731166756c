package command

import (
	"bytes"
	"regexp"

	"wirelab/workloads"
)

// maxPartial bounds a line that is still without its end.
const maxPartial = 64 << 10

// series reports each number of a capture when its line arrives.
func (r *runner) series(k Capture) func(chunk []byte) {
	re, err := regexp.Compile(k.Regex)
	if err != nil { // Validate refused it
		return func([]byte) {}
	}
	var partial []byte
	return func(chunk []byte) {
		now := r.env.Now()
		partial = append(partial, chunk...)
		for {
			i := bytes.IndexByte(partial, '\n')
			if i < 0 {
				break
			}
			for _, m := range re.FindAllSubmatch(partial[:i], -1) {
				if v, ok := number(string(m[min(1, len(m)-1)])); ok {
					r.env.Sample(now, -1, workloads.Field{Name: k.Name, Value: v * k.scale()})
				}
			}
			partial = partial[i+1:]
		}
		if len(partial) > maxPartial {
			partial = nil
		}
		partial = append([]byte(nil), partial...)
	}
}
