package ocdbt_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/hdfsckpt/ocdbt"
	"holdfast/test/bound"
)

// files are those of a store in memory, by their names.
type files map[string][]byte

func (f files) open(name string) (ocdbt.File, error) {
	b, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.NewReader(b), nil
}

func recorded(t testing.TB, name string) files {
	t.Helper()
	f, root := files{}, filepath.Join("testdata", name)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			f[strings.TrimPrefix(file, root+"/")], err = os.ReadFile(file)
		}
		return err
	})
	if err != nil || len(f) == 0 {
		t.Fatalf("%d files, %v", len(f), err)
	}
	return f
}

// contents reads all of a store.
func contents(f files) (values map[string]string, nodes int, err error) {
	s, err := ocdbt.OpenStore(f.open)
	if err != nil {
		return nil, 0, err
	}
	values = map[string]string{}
	err = s.Walk(ocdbt.Visitor{
		Node: func(ocdbt.Ref) { nodes++ },
		Entry: func(e ocdbt.Entry) error {
			value := e.Inline
			if value == nil {
				value = f[e.Value.File][e.Value.Offset : e.Value.Offset+e.Value.Length]
			}
			values[e.Key] = string(value)
			return nil
		},
	})
	return values, nodes, err
}

// TestStoresAsTensorStoreWroteThem: of several levels, whose nodes and values lie in the
// directory of another store.
func TestStoresAsTensorStoreWroteThem(t *testing.T) {
	for _, name := range []string{"plain", "compressed", "plain/part", "compressed/part"} {
		values, nodes, err := contents(recorded(t, name))
		if err != nil || len(values) != 80 || nodes < 5 {
			t.Errorf("%s: %d keys in %d nodes, %v", name, len(values), nodes, err)
		}
		for n := range 80 {
			key, want := fmt.Sprintf("layers/%d/weights", n), strings.Repeat(fmt.Sprint(n), n)
			if got, ok := values[key]; !ok || got != want {
				t.Errorf("%s: %s is %q", name, key, got)
			}
		}
	}
}

// TestEachByteCounts: whatever byte of a manifest or a node is another or missing, that is seen.
func TestEachByteCounts(t *testing.T) {
	f := recorded(t, "plain")
	s, err := ocdbt.OpenStore(f.open)
	if err != nil {
		t.Fatal(err)
	}
	frames := []ocdbt.Ref{{File: ocdbt.Manifest, Length: int64(len(f[ocdbt.Manifest]))}}
	err = s.Walk(ocdbt.Visitor{Node: func(r ocdbt.Ref) { frames = append(frames, r) }, Entry: func(ocdbt.Entry) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range frames {
		whole := f[frame.File]
		for at := frame.Offset; at < frame.Offset+frame.Length; at += 3 {
			changed := bytes.Clone(whole)
			changed[at] ^= 0x10
			for what, b := range map[string][]byte{"changed": changed, "cut off": whole[:at]} {
				f[frame.File] = b
				if _, _, err := contents(f); !ocdbt.IsDamaged(err) || ocdbt.IsUnknown(err) {
					t.Errorf("%s is %s at byte %d: %v", frame.File, what, at, err)
				}
			}
		}
		delete(f, frame.File)
		if _, _, err := contents(f); !errors.Is(err, fs.ErrNotExist) || ocdbt.IsDamaged(err) {
			t.Errorf("without %s: %v", frame.File, err)
		}
		f[frame.File] = whole
	}
}

// uleb are numbers as they are written.
func uleb(numbers ...uint64) (b []byte) {
	for _, n := range numbers {
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		b = append(b, byte(n))
	}
	return b
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// manifest names one root in the file d/x.
func manifest(height byte, keys, treeBytes, offset, length uint64) []byte {
	return ocdbt.WrapManifest(join(uleb(0, 0), make([]byte, 16), uleb(0, 100, 1000), []byte{4}, uleb(0),
		uleb(1), uleb(3, 0), []byte("d/x"), // files
		uleb(1, 1), []byte{height}, uleb(0, offset, length, keys, treeBytes, 0), make([]byte, 8), uleb(0)))
}

// TestCraftedStores: what cannot be is an error, and takes no memory.
func TestCraftedStores(t *testing.T) {
	table := join(uleb(1), uleb(3, 0), []byte("d/x"))
	leaf := func(keys string, rest ...[]byte) []byte {
		return ocdbt.WrapNode(join(uleb(0, 0), []byte{0}, table, []byte(keys), join(rest...)))
	}
	one := leaf("\x01", uleb(1), []byte("k"), uleb(2), []byte{0}, []byte("vv"))
	good := files{ocdbt.Manifest: manifest(0, 1, uint64(len(one)), 0, uint64(len(one))), "d/x": one}
	if values, _, err := contents(good); err != nil || values["k"] != "vv" {
		t.Fatalf("%v, %v", values, err)
	}
	// A node in another directory, that it names its files from.
	elsewhere := leaf("\x01", uleb(1), []byte("k"), uleb(2), []byte{1}, uleb(0, 0))
	there := ocdbt.WrapManifest(join(uleb(0, 0), make([]byte, 16), uleb(0, 100, 1000), []byte{4}, uleb(0), uleb(1), uleb(5, 2), []byte("p/d/y"),
		uleb(1, 1), []byte{0}, uleb(0, 0, uint64(len(elsewhere)), 1, uint64(len(elsewhere)), 0), make([]byte, 8), uleb(0)))
	if values, _, err := contents(files{ocdbt.Manifest: there, "p/d/y": elsewhere, "p/d/x": []byte("there"), "d/x": []byte("wrong")}); err != nil || values["k"] != "th" {
		t.Errorf("below another directory: %v, %v", values, err)
	}
	// Children that are all the same leaf, under keys that grow.
	const children = 3000
	inner := join(uleb(0, 0), []byte{1}, table, uleb(children))
	var common, suffixes, shared, texts, zeros, lengths []byte
	for i := range children {
		if i > 0 {
			common = append(common, 0)
		}
		suffixes, shared = append(suffixes, 2), append(shared, 2)
		texts = append(texts, byte(i>>8), byte(i))
		zeros = append(zeros, 0)
		lengths = append(lengths, uleb(uint64(len(one)))...)
	}
	again := ocdbt.WrapNode(join(inner, common, suffixes, shared, texts, zeros, zeros, lengths, zeros, zeros, zeros))
	// Keys that are each 60,000 bytes of the one before.
	long := join(uleb(2000))
	for i := range 2000 {
		if i > 0 {
			long = append(long, uleb(60_000)...)
		}
	}
	for i := range 2000 {
		n := uint64(1)
		if i == 0 {
			n = 60_000
		}
		long = append(long, uleb(n)...)
	}
	long = join(long, bytes.Repeat([]byte("a"), 60_000), bytes.Repeat([]byte("b"), 1999), make([]byte, 4000))
	for name, x := range map[string]struct {
		node   []byte
		height byte
		want   string
	}{
		"another height":          {one, 1, "height"},
		"no keys":                 {leaf("\x00"), 0, "empty"},
		"more than there is":      {leaf("\xff\xff\xff\x7f"), 0, "entries"},
		"the same key twice":      {leaf("\x02", uleb(1, 1, 0), []byte("k"), uleb(0, 0), []byte{0, 0}), 0, "comes after"},
		"more in common":          {leaf("\x02", uleb(9, 1, 1), []byte("kl"), uleb(0, 0), []byte{0, 0}), 0, "a key has"},
		"a value of a new kind":   {leaf("\x01", uleb(1), []byte("k"), uleb(2), []byte{2}), 0, "not known"},
		"a value beyond all":      {leaf("\x01", uleb(1), []byte("k"), uleb(1<<62), []byte{1}, uleb(0, 1<<62+1<<61+1<<60)), 0, "from"},
		"a file that is not":      {leaf("\x01", uleb(1), []byte("k"), uleb(2), []byte{1}, uleb(1, 0)), 0, "a field is"},
		"a value that is cut":     {leaf("\x01", uleb(1), []byte("k"), uleb(9), []byte{0}, []byte("vv")), 0, "ends within"},
		"a new version":           {ocdbt.WrapNode(uleb(1, 0)), 0, "version 1"},
		"another compression":     {ocdbt.WrapNode(uleb(0, 2)), 0, "compressed"},
		"compressed, and is not":  {ocdbt.WrapNode(join(uleb(0, 1), []byte("(\xb5/\xfd"))), 0, "decompressed"},
		"compressed, and large":   {ocdbt.WrapNode(join(uleb(0, 1), []byte("(\xb5/\xfd\xa4\x00\x00\x00\x40\x01\x00\x00"))), 0, "decompressed"},
		"compressed, without end": {ocdbt.WrapNode(join(uleb(0, 1), []byte("(\xb5/\xfd\x00\x58"), bytes.Repeat([]byte("\x02\x00\x10\x00"), 1000))), 0, "describe more"},
		"a file elsewhere":        {ocdbt.WrapNode(join(uleb(0, 0), []byte{0}, uleb(1, 4, 0), []byte("../x"), []byte("\x01"), uleb(1), []byte("k"), uleb(2), []byte{1}, uleb(0, 0))), 0, "names a file"},
		"one leaf many times":     {again, 1, "twice"},
		"long keys":               {ocdbt.WrapNode(join(uleb(0, 0), []byte{0}, table, long)), 0, "describe more"},
	} {
		end := bound.Memory(t, len(x.node), 1000)
		b := append(bytes.Clone(one), x.node...) // the leaf is at 0
		f := files{ocdbt.Manifest: manifest(x.height, 1<<40, 1<<40, uint64(len(one)), uint64(len(x.node))), "d/x": b}
		_, _, err := contents(f)
		end()
		if err == nil || !strings.Contains(err.Error(), x.want) || !ocdbt.IsUnknown(err) || ocdbt.IsDamaged(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]files{
		"fewer keys":   {ocdbt.Manifest: manifest(0, 0, uint64(len(one)), 0, uint64(len(one))), "d/x": one},
		"a small tree": {ocdbt.Manifest: manifest(0, 1, uint64(len(one))-1, 0, uint64(len(one))), "d/x": one},
	} {
		if _, _, err := contents(f); !ocdbt.IsUnknown(err) || !strings.Contains(err.Error(), "the manifest says") {
			t.Errorf("%s: %v", name, err)
		}
	}
	numbered := ocdbt.WrapManifest(join(uleb(0, 0), make([]byte, 16), uleb(1, 100, 1000), []byte{4}, uleb(0)))
	if _, _, err := contents(files{ocdbt.Manifest: numbered}); !ocdbt.IsUnknown(err) {
		t.Errorf("versions in files of their own: %v", err)
	}
	const none = 1<<64 - 1
	if values, _, err := contents(files{ocdbt.Manifest: manifest(0, 0, 0, none, none)}); err != nil || len(values) != 0 {
		t.Errorf("no root: %v, %v", values, err)
	}
}

func FuzzManifest(f *testing.F) {
	for _, name := range []string{"plain", "compressed"} {
		b := recorded(f, name)[ocdbt.Manifest]
		f.Add(b[12 : len(b)-4])
	}
	f.Fuzz(func(t *testing.T, rest []byte) {
		defer bound.Memory(t, len(rest), 1000)()
		s, err := ocdbt.OpenStore(files{ocdbt.Manifest: ocdbt.WrapManifest(rest)}.open)
		if err == nil && (s.Keys < 0 || s.TreeBytes < 0) {
			t.Errorf("%+v", s)
		}
	})
}

// FuzzWalk has a root of two nodes, which lie behind it, of what the fuzzer writes.
func FuzzWalk(f *testing.F) {
	for _, name := range []string{"plain", "compressed"} {
		stored := recorded(f, name)
		s, err := ocdbt.OpenStore(stored.open)
		var nodes [][]byte
		if err == nil {
			err = s.Walk(ocdbt.Visitor{Node: func(r ocdbt.Ref) {
				b := stored[r.File][r.Offset : r.Offset+r.Length]
				nodes = append(nodes, b[12:len(b)-4])
			}, Entry: func(ocdbt.Entry) error { return nil }})
		}
		if err != nil || len(nodes) < 3 {
			f.Fatal(err)
		}
		f.Add(nodes[0], nodes[1], nodes[2], byte(1))
		f.Add(nodes[2], nodes[1], nodes[2], byte(0))
	}
	f.Fuzz(func(t *testing.T, root, first, second []byte, height byte) {
		frames := join(ocdbt.WrapNode(first), ocdbt.WrapNode(second), ocdbt.WrapNode(root))
		defer bound.Memory(t, len(frames), 1000)()
		length := len(ocdbt.WrapNode(root))
		s, err := ocdbt.OpenStore(func(name string) (ocdbt.File, error) {
			if name == ocdbt.Manifest {
				return bytes.NewReader(manifest(height, 1<<40, 1<<40, uint64(len(frames)-length), uint64(length))), nil
			}
			return bytes.NewReader(frames), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		_ = s.Walk(ocdbt.Visitor{Entry: func(e ocdbt.Entry) error {
			if e.Key < last || e.Value.Offset < 0 || e.Value.Length < 0 || e.Value.Offset+e.Value.Length < 0 || !filepath.IsLocal(e.Value.File) {
				t.Errorf("%+v after %q", e, last)
			}
			last = e.Key
			return nil
		}})
	})
}
