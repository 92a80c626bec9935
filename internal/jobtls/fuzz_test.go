package jobtls

import (
	"testing"

	"holdfast/test/bound"
)

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"ca": "LS0t", "cert": "LS0t", "key": "LS0t"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		k, err := Unmarshal(b)
		if err != nil {
			return
		}
		_, _ = k.Server()
		_, _ = k.Dialer()
	})
}
