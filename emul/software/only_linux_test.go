package software_test

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func BenchmarkOnly(b *testing.B) {
	v := paths(b)
	for _, x := range v {
		if x.name == os.Getenv("ONLY") {
			for range 3 {
				fmt.Println(x.name, bulk(b, x.a, x.b, "cubic", 3*time.Second)*8e-9)
			}
			if x.lab != nil {
				s, _ := x.lab.session.Counters()
				fmt.Printf("cpu %.3f s/GB, wakeups %d\n", float64(s.CPUNS)/float64(s.Links[0].Forward.BytesOut), s.Wakeups)
			}
		}
	}
}

func BenchmarkOnlySmall(b *testing.B) {
	v := paths(b)
	for _, x := range v {
		if x.name == os.Getenv("ONLY") {
			for range 3 {
				fmt.Println(x.name, flood(b, x.a, x.b, 22, 3*time.Second)*1e-3)
			}
			if x.lab != nil {
				s, _ := x.lab.session.Counters()
				fmt.Printf("cpu %.3f us/packet, wakeups %d\n", float64(s.CPUNS)/1e3/float64(s.Links[0].Forward.PacketsOut), s.Wakeups)
			}
		}
	}
}
