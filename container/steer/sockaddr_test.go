package steer

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/test/bound"
)

func raw(family uint16, rest ...byte) []byte {
	return append(binary.NativeEndian.AppendUint16(nil, family), rest...)
}

func TestParseSockaddr(t *testing.T) {
	v4 := raw(unix.AF_INET, 0x0f, 0xa0, 127, 77, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0)
	v6 := raw(unix.AF_INET6, append([]byte{0x0f, 0xa0, 0, 0, 0, 0}, append(netip.MustParseAddr("::ffff:127.77.0.2").AsSlice(), 0, 0, 0, 0)...)...)
	for _, c := range []struct {
		name string
		b    []byte
		want string // empty: refused
	}{
		{"IPv4", v4, "127.77.0.2:4000"},
		{"IPv4 in IPv6", v6, "[::ffff:127.77.0.2]:4000"},
		{"IPv6 without scope", v6[:24], "[::ffff:127.77.0.2]:4000"},
		{"short IPv4", v4[:15], ""},
		{"short IPv6", v6[:23], ""},
		{"unix", raw(unix.AF_UNIX, '/', 'x', 0), ""},
		{"nothing", nil, ""},
		{"half a family", []byte{2}, ""},
	} {
		got, ok := parseSockaddr(c.b)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %v, %v", c.name, got, ok)
		}
	}
}

func FuzzParseSockaddr(f *testing.F) {
	f.Add(raw(unix.AF_INET, 0x0f, 0xa0, 127, 77, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(raw(unix.AF_INET6))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 64)()
		a, ok := parseSockaddr(b)
		if !ok {
			return
		}
		sa := sockaddr(!a.Addr().Is4(), a)
		if back, ok := fromSockaddr(sa); !ok || back.Port() != a.Port() || back.Addr() != a.Addr().Unmap() {
			t.Fatalf("%v became %v", a, back)
		}
	})
}
