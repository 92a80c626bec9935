package hdfsckpt_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/formats"
)

func kerasFixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/keras", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKerasCheckpoints: a file is complete by what stands at its end or says where that
// is; HDF5 of others is left alone.
func TestKerasCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	archive, weights, legacy := kerasFixture(t, "model.keras"), kerasFixture(t, "model.weights.h5"), kerasFixture(t, "model.h5")
	newest := kerasFixture(t, "latest.weights.h5")
	put(t, s, "model_10.keras", archive)
	put(t, s, "model_11.weights.h5", weights)
	put(t, s, "model_12.h5", legacy)
	put(t, s, "model_13.weights.h5", newest)
	put(t, s, "model_14.weights.h5", kerasFixture(t, "earliest.weights.h5"))
	put(t, s, "model.05-0.45.keras", archive)
	put(t, s, "16/model.weights.h5", weights)
	put(t, s, "model_20.keras", archive[:len(archive)-9])
	put(t, s, "model_21.weights.h5", weights[:len(weights)-9])
	put(t, s, "model_22.h5", legacy[:len(legacy)-9])
	put(t, s, "model_23.weights.h5", newest[:len(newest)-1])
	put(t, s, "model_24.keras", nil)
	put(t, s, "model_30.keras", []byte("{}"))
	put(t, s, "model_31.keras", torchFixture(t, "alone.pt"))
	put(t, s, "model_32.weights.h5", append(weights[:len(weights):len(weights)], 0))
	put(t, s, "model_33.weights.h5", bytes.Repeat([]byte("x"), 100))
	open := bytes.Clone(newest)
	open[11] |= 1 // as the library marks what is being written
	put(t, s, "model_34.weights.h5", open)
	put(t, s, "data_2024.h5", kerasFixture(t, "earliest.weights.h5"))
	put(t, s, "data_2025.h5", kerasFixture(t, "earliest.weights.h5")[:90])
	put(t, s, "data_2026.h5", nil)
	want := `model.05-0.45.keras keras 1 complete
model_10.keras keras 1 complete
model_11.weights.h5 keras 1 complete
model_12.h5 keras 1 complete
model_13.weights.h5 keras 1 complete
model_14.weights.h5 keras 1 complete
16/model.weights.h5 keras 1 complete
model_20.keras keras 1 torn (its directory, at the end: zip: not a valid zip file)
model_21.weights.h5 keras 1 torn (it has 14503 bytes, 14512 are needed)
model_22.h5 keras 1 torn (it has 16271 bytes, 16280 are needed)
model_23.weights.h5 keras 1 torn (it has 2063 bytes, 2064 are needed)
model_24.keras keras 1 torn (it is empty)
model_30.keras keras 1 unchecked (it does not begin as Keras's files do)
model_31.keras keras 1 unchecked (it is an archive without Keras's config.json)
model_32.weights.h5 keras 1 unchecked (it has 14513 bytes, and says that it ends at 14512)
model_33.weights.h5 keras 1 unchecked (it does not begin as HDF5 does)
model_34.weights.h5 keras 1 unchecked (it was not closed by the program that wrote it)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 5 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
	publish(t, s, "last.keras", archive)
	publish(t, s, "last.keras", kerasFixture(t, "model.keras"))
	if retained := listRetained(t, s); len(retained) != 1 || retained[0].Kind != formats.Keras || !retained[0].Whole() {
		t.Errorf("retained are %+v", retained)
	}
}
