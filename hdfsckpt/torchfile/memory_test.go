package torchfile_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/torchfile"
	"holdfast/test/bound"
)

// aTensor is the part of a pickle that makes one, of the record data/0.
const aTensor = "ctorch._utils\n_rebuild_tensor_v2\n((\x8c\x07storagectorch\nFloatStorage\n\x8c\x010\x8c\x03cpuK\x19tQK\x00K\x01\x85K\x01\x85tR"

// text is the part of a pickle that makes a string.
func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// TestAPickleCannotClaimMemory reads small pickles that describe a lot.
func TestAPickleCannotClaimMemory(t *testing.T) {
	twice := "\x80\x02" + aTensor
	for i := range 21 {
		memo := string(byte(i))
		twice += "q" + memo + "0](h" + memo + "h" + memo + "e"
	}
	named := "\x80\x02}" + text(strings.Repeat("n", 4000)) + "](" + strings.Repeat("K\x01", 100_000) + "es."
	for what, x := range map[string]struct {
		pickle string
		read   bool
	}{
		"one tensor, in two lists of two lists, and so on": {twice + ".", false},
		"numbers below a long name":                        {named, true},
	} {
		b := archive([]byte(x.pickle))
		end := bound.Memory(t, len(b), 1000)
		if _, err := torchfile.Open(bytes.NewReader(b), int64(len(b))); (err == nil) != x.read {
			t.Errorf("%s: %v", what, err)
		}
		end()
	}
}

// TestMetadataCannotClaimMemory reads a .metadata whose chunks share a long name, and others of
// many small values. Nothing is known of them: they are not damaged.
func TestMetadataCannotClaimMemory(t *testing.T) {
	// object leaves an object of a class on the stack, whose state is a dictionary.
	object := func(class string, items ...string) string {
		return "ctorch.distributed\n" + class + "\n)\x81}(" + strings.Join(items, "") + "ub"
	}
	name := text(strings.Repeat("n", 100_000))
	index := func(i int) string {
		return object("MetadataIndex", text("fqn"), "h\x00", text("offset"), "M"+string(binary.LittleEndian.AppendUint16(nil, uint16(i)))+"\x85")
	}
	info := object("_StorageInfo", text("relative_path"), text("a"), text("offset"), "K\x00", text("length"), "K\x00")
	stored := "}("
	for i := range 3000 {
		stored += index(i) + "h\x01"
	}
	b := []byte("\x80\x02" + name + "q\x000" + info + "q\x010" +
		object("Metadata", text("state_dict_metadata"), "}", text("storage_data"), stored+"u") + ".")
	for what, x := range map[string]struct {
		b    []byte
		want string
	}{
		"a long name":       {b, "a name of 100000 bytes"},
		"empty tuples":      {[]byte("\x80\x02" + strings.Repeat(")", 500_000) + "."), "bytes of memory"},
		"empty lists":       {[]byte("\x80\x02" + strings.Repeat("]", 500_000) + "."), "bytes of memory"},
		"a value, memoized": {[]byte("\x80\x02N" + strings.Repeat("\x94", 500_000) + "."), "bytes of memory"},
		"too large":         {make([]byte, torchfile.MostMetadata+1), "up to"},
	} {
		end := bound.Memory(t, min(len(x.b), 1<<20), 500)
		if _, err := torchfile.ParseMetadata(x.b); !limit.IsExceeded(err) || torchfile.IsMetadataDamaged(err) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", what, err)
		}
		end()
	}
}
