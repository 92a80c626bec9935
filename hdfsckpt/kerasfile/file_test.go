package kerasfile_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"holdfast/hdfsckpt/kerasfile"
)

var errMuch = errors.New("more than is allowed")

// atMost admits n bytes.
func atMost(n int64) func(int64) error {
	return func(taken int64) error {
		if taken > n {
			return errMuch
		}
		return nil
	}
}

// packed is an archive that Keras wrote, compressed by somebody.
func packed(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../testdata/keras/model.keras")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range stored.File {
		to, err := w.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, from); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestACompressedArchive: its tensors are those of the one that is not, as far as what they take
// in memory is admitted, and what is damaged is found.
func TestACompressedArchive(t *testing.T) {
	b := packed(t)
	found, err := kerasfile.Datasets(bytes.NewReader(b), int64(len(b)), atMost(40_000))
	if err != nil || len(found) != 4 {
		t.Errorf("%d datasets: %v", len(found), err)
	}
	for _, limit := range []int64{0, 12_483} { // of weights with 12484 bytes
		if _, err := kerasfile.Datasets(bytes.NewReader(b), int64(len(b)), atMost(limit)); !errors.Is(err, errMuch) {
			t.Errorf("with %d bytes: %v", limit, err)
		}
	}
	if members, wrong := kerasfile.Members(bytes.NewReader(b), int64(len(b))); len(members) != 0 || len(wrong) != 0 {
		t.Errorf("members %v, problems %v", members, wrong)
	}
	bad := bytes.Clone(b)
	bad[bytes.LastIndex(bad[:len(bad)-400], []byte("model.weights.h5"))+200] ^= 0x55
	if _, wrong := kerasfile.Members(bytes.NewReader(bad), int64(len(bad))); len(wrong) != 1 {
		t.Errorf("problems %v", wrong)
	}
}
