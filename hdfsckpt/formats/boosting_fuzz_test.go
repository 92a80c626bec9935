package formats

import (
	"bytes"
	"io"
	"testing"

	"holdfast/test/bound"
)

// FuzzXGBoost looks at files that XGBoost did not write.
func FuzzXGBoost(f *testing.F) { fuzzModel(f, "xgboost", 3, judgeXGBoost) }

// FuzzLightGBM looks at files that LightGBM did not write.
func FuzzLightGBM(f *testing.F) { fuzzModel(f, "lightgbm", 1, judgeLightGBM) }

// fuzzModel: of what is taken for a whole file, a part is not.
func fuzzModel(f *testing.F, dir string, recorded int, judge func(io.ReaderAt, int64) error) {
	seed(f, dir+"/*", recorded)
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		if judge(bytes.NewReader(b), int64(len(b))) == nil && len(b) < 14 {
			t.Errorf("%d bytes are taken for a whole model", len(b))
		}
	})
}
