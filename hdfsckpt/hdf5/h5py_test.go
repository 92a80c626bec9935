package hdf5_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"holdfast/hdfsckpt/hdf5"
	"holdfast/test/pyenv"
)

// listedOnly are the datasets that are listed, and not read: by their file, and their name or
// the beginning of it. h5py reads as zeros what was never written.
var listedOnly = map[string]string{
	"kinds": "unwritten", "kinds-1.8": "unwritten", "kinds-latest": "unwritten",
	"chunks": "part summed", "chunks-1.8": "part summed",
}

// TestAsH5pyReads: of each kind of dataset and group that h5py writes, in the oldest and in
// the newest form, the names, types, shapes and values are those that it reads itself.
func TestAsH5pyReads(t *testing.T) {
	python, err := pyenv.TensorFlow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), python, "testdata/save.py", dir)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v:\n%s", err, &log)
	}
	var said map[string]map[string][3]any // type, shape and bytes
	if err := json.Unmarshal(out, &said); err != nil || len(said) < 10 {
		t.Fatalf("h5py says of %d files, %v", len(said), err)
	}
	for file, want := range said {
		t.Run(file, func(t *testing.T) {
			r, err := os.Open(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			info, err := r.Stat()
			if err != nil {
				t.Fatal(err)
			}
			found, err := hdf5.Datasets(r, info.Size(), nil)
			if err != nil || len(found) != len(want) {
				t.Fatalf("%d datasets, h5py has %d: %v", len(found), len(want), err)
			}
			read := 0
			for _, d := range found {
				w, ok := want[d.Name]
				shape := strings.ReplaceAll(fmt.Sprint(d.Shape), "int64", "")
				if !ok || shape != fmt.Sprint(w[1]) {
					t.Errorf("%s has the shape %s, h5py says %v", d.Name, shape, w[1])
				}
				if w[0] == nil || slices.Contains(strings.Fields(listedOnly[strings.TrimSuffix(file, ".h5")]), d.Name) {
					if _, err := d.Rows(); !hdf5.IsUnsupported(err) || d.Kind.Size() > 0 == (w[0] == nil) {
						t.Errorf("%s of %s is read: %v", d.Name, d.Kind, err)
					}
					continue
				}
				value, err := base64.StdEncoding.DecodeString(w[2].(string))
				if err != nil {
					t.Fatal(err)
				}
				rows, err := d.Rows()
				if err != nil {
					t.Errorf("%v", err)
					continue
				}
				got, err := io.ReadAll(iotest.OneByteReader(rows))
				if string(d.Kind) != w[0] || int64(len(value)) != d.Size || err != nil || !bytes.Equal(got, value) {
					t.Errorf("%s is %s of %d bytes, %x, %v; h5py says %s, %x", d.Name, d.Kind, d.Size, got, err, w[0], value)
				}
				read++
			}
			if read < 4 {
				t.Errorf("only %d datasets are read", read)
			}
		})
	}
}
