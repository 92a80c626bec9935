package am

import (
	"maps"
	"slices"
	"testing"

	"holdfast/proto"
)

func TestSums(t *testing.T) {
	wrote := func(name string, crc uint32) *proto.CommittedFile {
		return &proto.CommittedFile{Name: name, Size: 1, Crc32C: crc, Summed: true}
	}
	renamed := func(from, to string) *proto.CommittedFile { return &proto.CommittedFile{Name: to, From: from} }
	for _, c := range []struct {
		name string
		said []*proto.CommittedFile
		want map[string]uint32
	}{
		{"written", []*proto.CommittedFile{wrote("a", 1), wrote("b", 2)}, map[string]uint32{"a": 1, "b": 2}},
		{"written again", []*proto.CommittedFile{wrote("a", 1), wrote("a", 2)}, map[string]uint32{"a": 2}},
		{"added to", []*proto.CommittedFile{wrote("a", 1), {Name: "a", Size: 9}}, map[string]uint32{}},
		{"renamed", []*proto.CommittedFile{wrote("t", 1), renamed("t", "a")}, map[string]uint32{"a": 1}},
		{"renamed over", []*proto.CommittedFile{wrote("a", 1), wrote("t", 2), renamed("t", "a")}, map[string]uint32{"a": 2}},
		{"renamed over by what is not known", []*proto.CommittedFile{wrote("a", 1), renamed("t", "a")}, map[string]uint32{}},
		{"heard of in the wrong order", []*proto.CommittedFile{renamed("t", "a"), wrote("t", 1)}, map[string]uint32{"a": 1}},
		{"a directory", []*proto.CommittedFile{wrote("d/x", 1), wrote("d/e/y", 2), wrote("dx", 3), renamed("d", "f")},
			map[string]uint32{"f/x": 1, "f/e/y": 2, "dx": 3}},
	} {
		s := newSums()
		for _, f := range c.said {
			s.take(f)
		}
		got := map[string]uint32{}
		for name, sum := range s.known {
			if sum.Name != name {
				t.Errorf("%s: %s is known as %s", c.name, sum.Name, name)
			}
			got[name] = sum.CRC32C
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: known are %v, want %v", c.name, slices.Sorted(maps.Keys(got)), c.want)
		}
	}
}
