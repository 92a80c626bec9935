package hdfsckpt_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/test/bound"
)

// putSparse makes a file of that size, of which only its beginning and its end take room.
func putSparse(t *testing.T, dir, name string, size int64, begin, end string) {
	t.Helper()
	file := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	f, err := os.Create(file)
	must(t, err)
	must(t, f.Truncate(size))
	_, err = f.WriteAt([]byte(begin), 0)
	must(t, err)
	_, err = f.WriteAt([]byte(end), size-int64(len(end)))
	must(t, err)
	must(t, f.Close())
	must(t, os.Chtimes(file, old, old))
}

// endOfZip is the end of an archive that says how long its directory is.
func endOfZip(members uint16, directory uint32) string {
	b := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	binary.LittleEndian.PutUint16(b[8:], members)
	binary.LittleEndian.PutUint16(b[10:], members)
	binary.LittleEndian.PutUint32(b[12:], directory)
	return string(b)
}

// endOfZip64 is the same of a large archive that has that size.
func endOfZip64(size int64, members, directory uint64) string {
	const record, locator, end = 56, 20, 22
	b := make([]byte, record+locator)
	copy(b, "PK\x06\x06")
	binary.LittleEndian.PutUint64(b[24:], members)
	binary.LittleEndian.PutUint64(b[32:], members)
	binary.LittleEndian.PutUint64(b[40:], directory)
	copy(b[record:], "PK\x06\x07")
	binary.LittleEndian.PutUint64(b[record+8:], uint64(size-record-locator-end))
	binary.LittleEndian.PutUint32(b[record+16:], 1)
	return string(b) + endOfZip(1<<16-1, 1<<32-1)
}

// longNames is a .metadata with a name of n bytes.
func longNames(n int) []byte {
	text := func(s string) string {
		return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	object := func(class string, items ...string) string {
		return "ctorch.distributed\n" + class + "\n)\x81}(" + strings.Join(items, "") + "ub"
	}
	index := object("MetadataIndex", text("fqn"), text(strings.Repeat("n", n)))
	info := object("_StorageInfo", text("relative_path"), text("__0_0.distcp"), text("offset"), "K\x00", text("length"), "K\x00")
	return []byte("\x80\x02" + object("Metadata", text("state_dict_metadata"), "}", text("storage_data"), "}("+index+info+"u") + ".")
}

// TestWhatExceedsABoundIsNotJudged: of a checkpoint with a file that is larger than what is read,
// or that describes more, nothing is known. It is listed so, with the file and the bound; the
// others are listed as ever, in little memory; and a repair leaves it and its pointer as they are.
func TestWhatExceedsABoundIsNotJudged(t *testing.T) {
	const pk = "PK\x03\x04"
	for name, x := range map[string]struct {
		build      func(t *testing.T, s store.Store, dir string)
		checkpoint string // is not looked into
		why        string // is among what is said
	}{
		"dcp, a long name": {func(t *testing.T, s store.Store, _ string) {
			put(t, s, "step-20/.metadata", longNames(5000))
			put(t, s, "step-20/__0_0.distcp", []byte("x"))
		}, "step-20", "step-20/.metadata, of 5"},
		"dcp, large": {func(t *testing.T, _ store.Store, dir string) {
			putSparse(t, dir, "step-20/.metadata", 1<<30, "\x80\x02", ".")
			putSparse(t, dir, "step-20/__0_0.distcp", 1, "x", "")
		}, "step-20", "step-20/.metadata, of 1073741824 bytes"},
		"dcp, more than the memory": {func(t *testing.T, _ store.Store, dir string) {
			putSparse(t, dir, "step-20/.metadata", 200<<20, "\x80\x02", ".")
			putSparse(t, dir, "step-20/__0_0.distcp", 1, "x", "")
		}, "step-20", "bytes of memory"},
		"Trainer's index": {func(t *testing.T, s store.Store, dir string) {
			putTrainer(t, s, "checkpoint-20")
			putSparse(t, dir, "checkpoint-20/model.safetensors.index.json", 65<<20, `{"weight_map":{`, "}}")
		}, "checkpoint-20", "checkpoint-20/model.safetensors.index.json, of 68157440 bytes"},
		"an index of safetensors": {func(t *testing.T, s store.Store, dir string) {
			put(t, s, "mine/model-20-00001-of-00001.safetensors", safetensors(10))
			putSparse(t, dir, "mine/model-20.safetensors.index.json", 1<<40, `{"weight_map":{`, "}}")
		}, "mine/model-20.safetensors.index.json", "of 1099511627776 bytes"},
		"safetensors": {func(t *testing.T, _ store.Store, dir string) {
			putSparse(t, dir, "model-20.safetensors", 95_000_008, string(binary.LittleEndian.AppendUint64(nil, 95_000_000))+"{", "")
		}, "model-20.safetensors", "model-20.safetensors, of 95000008 bytes"},
		"TensorFlow": {func(t *testing.T, s store.Store, dir string) {
			putCheckpoint(t, s, "model.ckpt-10", nil)
			putCheckpoint(t, s, "model.ckpt-20", without(".index"))
			putSparse(t, dir, "model.ckpt-20.index", 4<<30, "", "")
			put(t, s, "checkpoint", stateFile("model.ckpt-20", "model.ckpt-10", "model.ckpt-20"))
		}, "model.ckpt-20", "model.ckpt-20.index, of 4294967296 bytes"},
		"torch": {func(t *testing.T, _ store.Store, dir string) {
			putSparse(t, dir, "model-20.pt", 4<<30, pk, endOfZip(1000, 1<<30))
		}, "model-20.pt", "its directory has 1073741824 bytes"},
		"torch, larger": {func(t *testing.T, _ store.Store, dir string) {
			putSparse(t, dir, "model-20.pt", 1<<40, pk, endOfZip64(1<<40, 1<<32, 1<<39))
		}, "model-20.pt", "its directory has 549755813888 bytes"},
		"Keras": {func(t *testing.T, _ store.Store, dir string) {
			putSparse(t, dir, "model-20.keras", 4<<30, pk, endOfZip(1000, 1<<30))
		}, "model-20.keras", "its directory has 1073741824 bytes"},
		"DeepSpeed": {func(t *testing.T, s store.Store, dir string) {
			putSparse(t, dir, "global_step20/mp_rank_00_model_states.pt", 4<<30, pk, endOfZip(1000, 1<<30))
			put(t, s, "latest", []byte("global_step20"))
		}, "global_step20", "global_step20/mp_rank_00_model_states.pt, of 4294967296 bytes"},
		"MXNet": {func(t *testing.T, _ store.Store, dir string) {
			putSparse(t, dir, "model-0020.params", 1<<30, "\x12\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x10\x00\x00\x00\x00\x00", "")
		}, "model-0020.params", "1048577 arrays, and up to 1048576"},
		"Ray": {func(t *testing.T, s store.Store, dir string) {
			put(t, s, "run/checkpoint_2026-11-25_15-38-52.901110/model.bin", []byte("x"))
			putSparse(t, dir, "run/checkpoint_manager_snapshot.json", 1<<40, `{"checkpoint_results":[`, "]}")
		}, "run/checkpoint_2026-11-25_15-38-52.901110", "checkpoint_manager_snapshot.json"},
		"Orbax": {func(t *testing.T, s store.Store, dir string) {
			put(t, s, "20/default/_METADATA", []byte("{}"))
			putSparse(t, dir, "20/_CHECKPOINT_METADATA", 1<<40, `{`, "}")
		}, "20", "20/_CHECKPOINT_METADATA, of 1099511627776 bytes"},
		"Orbax, an index": {func(t *testing.T, s store.Store, dir string) {
			put(t, s, "20/_CHECKPOINT_METADATA", []byte(`{"commit_timestamp_nsecs":1}`))
			putSparse(t, dir, "20/default/manifest.ocdbt", 1<<40, "", "")
		}, "20", "20/default/manifest.ocdbt, of 1099511627776 bytes"},
		"step-N": {func(t *testing.T, s store.Store, dir string) {
			put(t, s, "step-20/a", []byte("x"))
			putSparse(t, dir, "step-20/COMMITTED", 1<<40, "{", "}")
		}, "step-20", "step-20/COMMITTED, of 1099511627776 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openLocal(t, dir)
			defer s.Close()
			put(t, s, "beside/model-7.pt", torchFixture(t, "alone.pt"))
			x.build(t, s, dir)
			before := namesBelow(t, dir)
			end := bound.Memory(t, 0, 0)
			found := list(t, s)
			end()
			var c *format.Checkpoint
			others := 0
			for i := range found {
				switch {
				case found[i].Name == x.checkpoint:
					c = &found[i]
				case found[i].Whole():
					others++
				}
			}
			if c == nil || c.State != format.Unchecked || c.Certain || !strings.Contains(c.Why, x.why) {
				t.Errorf("it is listed as\n%s", describe(found))
			}
			if others == 0 {
				t.Errorf("beside it, these are listed:\n%s", describe(found))
			}
			for _, age := range []time.Duration{0, time.Minute} {
				report, err := hdfsckpt.Repair(context.Background(), s, age)
				if err != nil || len(report.Aside)+len(report.Pointed)+len(report.Left) > 0 {
					t.Errorf("a repair did this: %v, %v", report.Lines(), err)
				}
			}
			if after := namesBelow(t, dir); after != before {
				t.Errorf("there was\n%s\nand there is\n%s", before, after)
			}
		})
	}
}

// namesBelow has the names, lengths and times of all files below a directory, but for Holdfast's.
func namesBelow(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && e.Name() == store.OwnDir {
			return cmp.Or(err, fs.SkipDir)
		}
		i, err := e.Info()
		if err == nil && !e.IsDir() {
			b.WriteString(fmt.Sprintln(strings.TrimPrefix(name, dir), i.Size(), i.ModTime()))
		}
		return err
	}))
	return b.String()
}
