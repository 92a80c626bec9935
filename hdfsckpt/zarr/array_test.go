package zarr_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"holdfast/hdfsckpt/tensor"
	"holdfast/hdfsckpt/zarr"
	"holdfast/test/bound"
)

// values are what is stored of an array in memory.
type values map[string][]byte

func (v values) open(name string) (*io.SectionReader, error) {
	b, ok := v[name]
	if !ok {
		return nil, nil
	}
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), nil
}

func compress(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// meta2 is the metadata of an array of bytes.
func meta2(shape, chunks, rest string) string {
	return fmt.Sprintf(`{"zarr_format":2,"shape":%s,"chunks":%s,"dtype":"|u1","order":"C"%s}`, shape, chunks, rest)
}

func meta3(shape, shard, codecs string) string {
	return fmt.Sprintf(`{"zarr_format":3,"node_type":"array","shape":%s,"data_type":"uint8","fill_value":7,"chunk_grid":{"name":"regular","configuration":{"chunk_shape":%s}},"chunk_key_encoding":{"name":"default"},"codecs":%s}`, shape, shard, codecs)
}

func read(r io.Reader, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// TestWhatIsNotRead: it is named, and elements are not read.
func TestWhatIsNotRead(t *testing.T) {
	for _, x := range []struct{ name, text, kind, want string }{
		{zarr.Metadata2, strings.Replace(meta2("[2]", "[2]", ""), "|u1", ">f4", 1), "float32", "big endian"},
		{zarr.Metadata2, strings.Replace(meta2("[2]", "[2]", ""), `"|u1"`, `[["a", "<i4"]]`, 1), `[["a","<i4"]]`, "not known"},
		{zarr.Metadata2, strings.Replace(meta2("[2]", "[2]", ""), "|u1", "|S5", 1), "|S5", "not known"},
		{zarr.Metadata2, strings.Replace(meta2("[2]", "[2]", ""), "|u1", strings.Repeat("x", 1000), 1), strings.Repeat("x", 64) + "...", "not known"},
		{zarr.Metadata2, strings.Replace(meta2("[2,2]", "[2,2]", ""), `"C"`, `"F"`, 1), "uint8", "order"},
		{zarr.Metadata2, meta2("[2]", "[2]", `,"compressor":{"id":"blosc"}`), "uint8", `compressed by {"id":"blosc"}`},
		{zarr.Metadata2, meta2("[2]", "[2]", `,"filters":[{"id":"delta"}]`), "uint8", "filters"},
		{zarr.Metadata2, meta2("[2]", "[1000]", ""), "uint8", "larger"},
		{zarr.Metadata3, meta3("[2]", "[2]", `[{"name":"transpose"},{"name":"bytes"}]`), "uint8", `"transpose"`},
		{zarr.Metadata3, meta3("[2]", "[2]", `[{"name":"bytes","configuration":{"endian":"big"}}]`), "uint8", "big endian"},
		{zarr.Metadata3, meta3("[2]", "[2]", `[{"name":"bytes"},{"name":"gzip"}]`), "uint8", `"gzip"`},
		{zarr.Metadata3, meta3("[2]", "[2]", `[{"name":"sharding_indexed","configuration":{"chunk_shape":[1],"index_codecs":[{"name":"zstd"}]}}]`), "uint8", `shards is written by "zstd"`},
	} {
		a, err := zarr.Parse(x.name, []byte(x.text))
		if err != nil || string(a.Kind) != x.kind || !strings.Contains(a.Unread(), x.want) {
			t.Errorf("%s: %+v, %v", x.text, a, err)
			continue
		}
		if _, err := a.Read(values{}.open); !errors.Is(err, syscall.ENOTSUP) {
			t.Errorf("%s: %v", x.text, err)
		}
	}
	if a, err := zarr.Parse(zarr.Metadata3, []byte(`{"zarr_format":3,"node_type":"group"}`)); a != nil || err != nil {
		t.Errorf("a group: %v, %v", a, err)
	}
}

func TestWhatCannotBe(t *testing.T) {
	for _, text := range []string{
		`{`, `[]`, meta2("[-1]", "[1]", ""), meta2("[2]", "[0]", ""), meta2("[2,2]", "[2]", ""), meta2("[4294967296,4294967296]", "[1,1]", ""),
		meta2("[2,2]", "[4294967296,4294967296]", ""), meta2("["+strings.Repeat("1,", 40)+"1]", "["+strings.Repeat("1,", 40)+"1]", ""),
		meta2("[2]", "[2]", `,"dimension_separator":"x"`), strings.Replace(meta2("[2]", "[2]", ""), `:2`, `:4`, 1),
	} {
		if a, err := zarr.Parse(zarr.Metadata2, []byte(text)); err == nil {
			t.Errorf("%s: %+v", text, a)
		}
	}
	for _, text := range []string{
		`{`, meta3("[4]", "[3]", `[{"name":"sharding_indexed","configuration":{"chunk_shape":[2]}}]`),
		meta3("[4]", "[4]", `[{"name":"sharding_indexed","configuration":{"chunk_shape":[0]}}]`),
		strings.Replace(meta3("[4]", "[4]", `[]`), `"regular"`, `"x"`, 1), strings.Replace(meta3("[4]", "[4]", `[]`), `"default"`, `"x"`, 1),
	} {
		if a, err := zarr.Parse(zarr.Metadata3, []byte(text)); err == nil {
			t.Errorf("%s: %+v", text, a)
		}
	}
}

// TestDamagedChunks: one that has not the bytes that it should have is not read.
func TestDamagedChunks(t *testing.T) {
	plain, err := zarr.Parse(zarr.Metadata2, []byte(meta2("[4]", "[2]", "")))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := zarr.Parse(zarr.Metadata2, []byte(meta2("[4]", "[2]", `,"compressor":{"id":"zstd"}`)))
	if err != nil {
		t.Fatal(err)
	}
	good := compress(t, []byte{1, 2})
	for name, x := range map[string]struct {
		a     *zarr.Array
		chunk []byte
		ok    bool
	}{
		"as it should be": {plain, []byte{1, 2}, true}, "short": {plain, []byte{1}, false}, "long": {plain, []byte{1, 2, 3}, false}, "empty": {plain, []byte{}, false},
		"compressed": {packed, good, true}, "not compressed": {packed, []byte{1, 2}, false}, "cut off": {packed, good[:len(good)-1], false},
		"compressed, and long": {packed, compress(t, []byte{1, 2, 3}), false}, "compressed, and short": {packed, compress(t, []byte{1}), false},
	} {
		got, err := x.a.Read(values{"0": x.chunk, "1": x.chunk}.open)
		if (err == nil) != x.ok || x.ok && !slices.Equal(got, []byte{1, 2, 1, 2}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if !x.ok && !strings.Contains(fmt.Sprint(err), "chunk [0]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// shard is one of chunks, nil of those that are not stored.
func shard(atStart bool, chunks ...[]byte) []byte {
	var data, index []byte
	base := 0
	if atStart {
		base = 16*len(chunks) + 4
	}
	for _, c := range chunks {
		if c == nil {
			index = append(index, bytes.Repeat([]byte{0xff}, 16)...)
			continue
		}
		index = binary.LittleEndian.AppendUint64(index, uint64(base+len(data)))
		index = binary.LittleEndian.AppendUint64(index, uint64(len(c)))
		data = append(data, c...)
	}
	index = binary.LittleEndian.AppendUint32(index, crc32.Checksum(index, crc32.MakeTable(crc32.Castagnoli)))
	if atStart {
		return append(index, data...)
	}
	return append(data, index...)
}

func TestShards(t *testing.T) {
	codec := func(location string) string {
		return `[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":[{"name":"bytes"}],"index_location":"` + location + `","index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]}}]`
	}
	for _, location := range []string{"end", "start"} {
		a, err := zarr.Parse(zarr.Metadata3, []byte(meta3("[3,4]", "[2,2]", codec(location))))
		if err != nil || a.Stored() != 4 {
			t.Fatal(a, err)
		}
		one := shard(location == "start", []byte{1, 2}, nil)
		v := values{"c/0/0": one, "c/1/1": shard(location == "start", []byte{3, 4}, []byte{8, 8})}
		want := []byte{1, 2, 7, 7, 7, 7, 7, 7, 7, 7, 3, 4}
		if got, err := a.Read(v.open); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", location, got, err)
		}
		for at := range one {
			if location == "end" && at < 2 || location == "start" && at >= len(one)-2 {
				continue // elements have no checksum
			}
			v["c/0/0"] = bytes.Clone(one)
			v["c/0/0"][at] ^= 1
			if got, err := a.Read(v.open); err == nil {
				t.Errorf("%s, byte %d is another: %v", location, at, got)
			}
			v["c/0/0"] = one[:at]
			if got, err := a.Read(v.open); err == nil {
				t.Errorf("%s, it ends at byte %d: %v", location, at, got)
			}
		}
	}
}

// TestClaimsTakeNoMemory: large shapes of which nothing is there.
func TestClaimsTakeNoMemory(t *testing.T) {
	for name, meta := range map[string]string{
		"side by side": meta2("[1048576,1073741824]", "[1048576,1]", ""),
		"one chunk":    meta2("[1125899906842624]", "[1125899906842624]", ""),
		"many":         meta2("[1125899906842624]", "[1048576]", ""),
	} {
		a, err := zarr.Parse(zarr.Metadata2, []byte(meta))
		if err != nil {
			t.Fatal(err)
		}
		end := bound.Memory(t, 0, 0)
		if name != "many" {
			if _, err := a.Read(values{}.open); !errors.Is(err, syscall.EFBIG) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r, err := a.Parts(values{}.open); err == nil {
			_, err = io.CopyN(io.Discard, r, 100<<20)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		end()
	}
	// Beside each other, and more than may be taken.
	a, err := zarr.Parse(zarr.Metadata2, []byte(meta2("[100,100]", "[100,1]", "")))
	if err != nil || a.Held() != 20_000 {
		t.Fatal(a.Held(), err)
	}
	if _, err := a.Rows(values{}.open, 19_999); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("%v", err)
	}
	if got, err := read(a.Rows(values{}.open, 20_000)); err != nil || len(got) != 10_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// FuzzRead has an array with two values, whatever their names.
func FuzzRead(f *testing.F) {
	packed := compress(f, []byte{1, 2, 3, 4})
	f.Add(false, []byte(meta2("[4]", "[2]", "")), []byte{1, 2}, []byte{3, 4})
	f.Add(false, []byte(meta2("[3,3]", "[2,2]", `,"compressor":{"id":"zstd"},"fill_value":"NaN"`)), packed, packed)
	f.Add(true, []byte(meta3("[3,3]", "[2,2]", `[{"name":"bytes"},{"name":"zstd"}]`)), packed, packed)
	sharding := `[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":[{"name":"bytes"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]`
	f.Add(true, []byte(meta3("[3,4]", "[2,2]", sharding)), shard(false, []byte{1, 2}, nil), shard(false, nil, []byte{1, 2}))
	f.Fuzz(func(t *testing.T, third bool, meta, first, second []byte) {
		defer bound.Memory(t, len(meta)+len(first)+len(second), 1000)()
		name := map[bool]string{false: zarr.Metadata2, true: zarr.Metadata3}[third]
		a, err := zarr.Parse(name, meta)
		if err != nil || a == nil {
			return
		}
		if n, ok := tensor.Elements(a.Shape); !ok || a.Bytes() != n*int64(a.Kind.Size()) {
			t.Errorf("%d bytes of the shape %v", a.Bytes(), a.Shape)
		}
		open := func(name string) (*io.SectionReader, error) {
			switch len(name) % 3 {
			case 0:
				return values{name: first}.open(name)
			case 1:
				return values{name: second}.open(name)
			}
			return nil, nil
		}
		const most = 64 << 10
		parts, err := a.Parts(open)
		if err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, parts, most)
		if a.Bytes() > most {
			return
		}
		rows, err := read(a.Rows(open, 4*most))
		if err == nil && int64(len(rows)) != a.Bytes() {
			t.Errorf("%d bytes of %d", len(rows), a.Bytes())
		}
	})
}
