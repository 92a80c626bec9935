package hdfsckpt_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/formats"
)

// recorded returns a file of testdata.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestXGBoostCheckpoints: a model is complete by what XGBoost writes last, and files of
// others by such names are left alone.
func TestXGBoostCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	binary, text := recorded(t, "xgboost/model.ubj"), recorded(t, "xgboost/model.json")
	note := bytes.Index(text, []byte(`[3,2,0]}`)) + len(`[3,2,0]}`) // in an attribute
	put(t, s, "model_10.ubj", binary)
	put(t, s, "model_11.json", text)
	put(t, s, "model_12.model", binary)
	put(t, s, "model_13.xgb", text)
	put(t, s, "0014.ubj", recorded(t, "xgboost/linear.ubj"))
	put(t, s, "15/booster.ubj", binary)
	put(t, s, "model_20.ubj", binary[:len(binary)-1])
	put(t, s, "model_21.ubj", binary[:bytes.LastIndexByte(binary[:len(binary)-30], '}')+1])
	put(t, s, "model_22.json", text[:note])
	put(t, s, "model_23.ubj", binary[:9])
	put(t, s, "model_24.ubj", nil)
	put(t, s, "model_30.ubj", []byte("something else"))
	put(t, s, "data_2024.json", []byte(`{"learner": 3`)[:9])
	put(t, s, "data_2025.json", []byte(`{"loss": 0.5, "version":[3,2,0]}`))
	put(t, s, "model_2026.model", []byte("binf"))
	put(t, s, "data_2027.json", nil)
	put(t, s, "metrics.json", text) // neither called a model nor after a step
	want := `model_10.ubj xgboost 1 complete
model_11.json xgboost 1 complete
model_12.model xgboost 1 complete
model_13.xgb xgboost 1 complete
0014.ubj xgboost 1 complete
15/booster.ubj xgboost 1 complete
model_20.ubj xgboost 1 torn (it does not end with XGBoost's version, which is written last)
model_21.ubj xgboost 1 torn (it does not end with XGBoost's version, which is written last)
model_22.json xgboost 1 torn (it does not end with XGBoost's version, which is written last)
model_23.ubj xgboost 1 torn (it ends before XGBoost's model begins)
model_24.ubj xgboost 1 torn (it is empty)
model_30.ubj xgboost 1 unchecked (it does not begin as XGBoost's models do)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 5 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
	publish(t, s, "last_model.json", text)
	publish(t, s, "last_model.json", bytes.Clone(text))
	if retained := listRetained(t, s); len(retained) != 1 || retained[0].Kind != formats.XGBoost || !retained[0].Whole() {
		t.Errorf("retained are %+v", retained)
	}
}

// TestLightGBMCheckpoints: a model is complete by its last line, which LightGBM and Python
// end differently.
func TestLightGBMCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	python := recorded(t, "lightgbm/model.txt")
	program, _, found := bytes.Cut(python, []byte("\npandas_categorical:"))
	trees := bytes.Index(python, []byte("end of trees"))
	if !found || trees < 0 {
		t.Fatal("the fixture is of another kind")
	}
	categories := append(bytes.Clone(program), "\npandas_categorical:[[\""+strings.Repeat("x", 100<<10)+"\"]]\n"...)
	put(t, s, "model_10.txt", python)
	put(t, s, "model_11.txt", program)
	put(t, s, "model_12.txt", categories)
	put(t, s, "model_13.model", python)
	put(t, s, "LightGBM_model.txt.snapshot_iter_14", program)
	put(t, s, "15/booster.lgb", python)
	put(t, s, "model_20.txt", python[:trees-9])
	put(t, s, "model_21.txt", python[:20])
	put(t, s, "model_30.txt", program[:len(program)-9])
	put(t, s, "notes_40.txt", []byte("tree\n"))
	put(t, s, "notes_41.txt", nil)
	put(t, s, "notes.txt", python) // neither called a model nor after a step
	want := `model_10.txt lightgbm 1 complete
model_11.txt lightgbm 1 complete
model_12.txt lightgbm 1 complete
model_13.model lightgbm 1 complete
LightGBM_model.txt.snapshot_iter_14 lightgbm 1 complete
15/booster.lgb lightgbm 1 complete
model_20.txt lightgbm 1 torn (it ends in the middle of its trees, or of what follows them)
model_21.txt lightgbm 1 torn (it ends in the middle of its trees, or of what follows them)
model_30.txt lightgbm 1 unchecked (it ends behind its trees, and before the end of the parameters: whether something is missing cannot be seen)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 2 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
	publish(t, s, "last_model.txt", python)
	publish(t, s, "last_model.txt", bytes.Clone(python))
	if retained := listRetained(t, s); len(retained) != 1 || retained[0].Kind != formats.LightGBM || !retained[0].Whole() {
		t.Errorf("retained are %+v", retained)
	}
}
