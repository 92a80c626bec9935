package web_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/am/web"
	"holdfast/hdfsckpt/inspect"
)

// tensors are written to files of safetensors by their names.
type tensors map[string][]float32

// saveTensors writes a file of safetensors, whose tensors have rows of 4.
func saveTensors(t *testing.T, file string, all tensors) {
	t.Helper()
	header, data := map[string]any{}, bytes.Buffer{}
	for name, values := range all {
		from := data.Len()
		if err := binary.Write(&data, binary.LittleEndian, values); err != nil {
			t.Fatal(err)
		}
		header[name] = map[string]any{"dtype": "F32", "shape": []int{len(values) / 4, 4}, "data_offsets": []int{from, data.Len()}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(file, append(b, data.Bytes()...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// normal returns n values of a normal distribution.
func normal(n int, mean float64) []float32 {
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(mean + random.NormFloat64())
	}
	return list
}

// TestACheckpointIsShown: its files and tensors, which can be searched, paged and ordered.
func TestACheckpointIsShown(t *testing.T) {
	dir := t.TempDir()
	all := tensors{}
	for i := range 250 {
		all[fmt.Sprintf("layer.%d.weight", i)] = normal(4*(i+1), 0)
	}
	all["<b>"] = normal(4, 0)
	saveTensors(t, filepath.Join(dir, "model-10.safetensors"), all)
	save(t, dir, "step-20/data", "step-20/COMMITTED")
	site := browse(t, dir)
	const page = "/checkpoint?dir=0&at=model-10.safetensors"
	text := get(t, site, page)
	for _, want := range []string{
		"step 10 <span", "complete", "<dt>Format<dd>safetensors", "251 tensors", "page 1 of 3",
		`<a href="tensor?at=model-10.safetensors&amp;dir=0&amp;tensor=layer.249.weight">layer.249.weight</a><td>float32<td class="shape">250 × 4`,
		`<td class="name">model-10.safetensors`, `aria-current="true">Checkpoints`, `href="checkpoint.json?at=model-10.safetensors&amp;dir=0"`,
		"yarn-submit ckpt get " + dir + " model-10.safetensors DIR",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%.6000s", want, text)
		}
	}
	if strings.Contains(text, ">layer.3.weight<") || len(text) > 100<<10 {
		t.Errorf("the page has %d bytes, and the smallest tensors first", len(text))
	}
	if text := get(t, site, page+"&page=3"); !strings.Contains(text, "&lt;b&gt;") || strings.Contains(text, "<b>") {
		t.Error("the last page does not have the smallest tensor, or takes its name for HTML")
	}
	if text := get(t, site, page+"&q=layer.?.weight&sort=name"); !strings.Contains(text, "10 of 251 tensors") || strings.Index(text, ">layer.0.weight<") > strings.Index(text, ">layer.9.weight<") {
		t.Error("the tensors are not searched or ordered")
	}
	var shown struct {
		inspect.Details
		Total    int `json:"tensors_total"`
		Matching int `json:"tensors_matching"`
	}
	getJSON(t, site, "/checkpoint.json?at=model-10.safetensors&q=layer.?.weight", &shown)
	if shown.Name != "model-10.safetensors" || shown.Total != 251 || shown.Matching != 10 || len(shown.Tensors) != 10 || len(shown.Files) != 1 {
		t.Errorf("checkpoint.json: %+v", shown)
	}
	if text := get(t, site, "/checkpoint?at=step-20"); !strings.Contains(text, "known to its program only") || !strings.Contains(text, "step-20/COMMITTED") {
		t.Errorf("a checkpoint without tensors is not shown:\n%s", text)
	}
	for _, address := range []string{"/checkpoint?at=none", "/tensor?at=model-10.safetensors&tensor=none", "/tensor?at=step-20&tensor=x", "/checkpoint?dir=7&at=x", "/difference?from=x&to=y"} {
		w := httptest.NewRecorder()
		web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s answers %d", address, w.Code)
		}
	}
}

// TestATensorIsShown: with what ckpt cat computes, and a drawing of it.
func TestATensorIsShown(t *testing.T) {
	dir := t.TempDir()
	values := normal(4000, 3)
	values[7], values[8] = float32(math.NaN()), float32(math.Inf(1))
	saveTensors(t, filepath.Join(dir, "model-10.safetensors"), tensors{"w": values, "same": make([]float32, 8), "nan": {float32(math.NaN()), 0, 0, 0}})
	site := browse(t, dir)
	text := get(t, site, "/tensor?at=model-10.safetensors&tensor=w")
	for _, want := range []string{"1000 × 4", "4,000 elements", `<dt>NaN<dd class="failed">1`, `<dt>Infinite<dd class="failed">1`, "<dt>Mean<dd>3.0", `<svg role="img"`, "%</title></rect>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	bars := regexp.MustCompile(`<rect x="([0-9.]+)%" width="2.3%" y="[0-9.]+" height="([0-9.]+)">`).FindAllStringSubmatch(text, -1)
	if len(bars) != 40 || bars[0][1] != "0" || bars[39][1] != "97.5" || !strings.Contains(text, `y="0" height="180"`) {
		t.Errorf("the bars are %v", bars)
	}
	if log := get(t, site, "/tensor?at=model-10.safetensors&tensor=w&scale=log"); strings.Count(log, "<rect ") != 40 || log == text || !strings.Contains(log, "logarithms") {
		t.Error("there is no logarithmic scale")
	}
	if text := get(t, site, "/tensor?at=model-10.safetensors&tensor=same"); strings.Count(text, "<rect ") != 1 || !strings.Contains(text, "<dt>Range<dd>0 to 0") {
		t.Errorf("one value is not drawn:\n%s", text)
	}
	var shown inspect.Values
	getJSON(t, site, "/tensor.json?at=model-10.safetensors&tensor=w", &shown)
	sum := int64(0)
	for _, n := range shown.Histogram {
		sum += n
	}
	if shown.Elements != 4000 || shown.NaN != 1 || shown.Inf != 1 || sum != 3998 || shown.Mean == nil || math.Abs(*shown.Mean-3) > .1 {
		t.Errorf("tensor.json: %+v", shown)
	}
}

// TestCheckpointsAreCompared: what differs between two of them, and how much.
func TestCheckpointsAreCompared(t *testing.T) {
	dir := t.TempDir()
	a := tensors{"same": normal(8, 0), "moved": {1, 0, 0, 0}, "far": {1, 0, 0, 0}, "gone": normal(4, 0), "grown": normal(4, 0)}
	b := tensors{"same": normal(8, 0), "moved": {1.5, 0, 0, 0}, "far": {3, 0, 0, 0}, "new": normal(4, 0), "grown": normal(8, 0)}
	saveTensors(t, filepath.Join(dir, "model-10.safetensors"), a)
	saveTensors(t, filepath.Join(dir, "model-20.safetensors"), b)
	site := browse(t, dir)
	const page = "/difference?dir=0&from=model-10.safetensors&to=model-20.safetensors"
	text := get(t, site, page)
	for _, want := range []string{"2 changed", "1 removed", "1 added", "1 reshaped", `<td class="n norm">0.5<td class="n">50 %`, `<td class="n norm">2<td class="n">200 %`, "float32 [1 4] → float32 [2 4]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, ">same</a>") {
		t.Error("what is the same is shown")
	}
	if text := get(t, site, page+"&sort=relative&q=?o*d"); strings.Contains(text, ">far</a>") || !strings.Contains(text, ">moved</a>") {
		t.Error("the changes are not searched")
	}
	if text := get(t, site, page+"&sort=relative"); strings.Index(text, ">far</a>") > strings.Index(text, ">moved</a>") {
		t.Error("the changes are not ordered")
	}
	var shown struct{ Changes []inspect.Change }
	if getJSON(t, site, "/difference.json?from=model-10.safetensors&to=model-20.safetensors", &shown); len(shown.Changes) != 5 {
		t.Errorf("difference.json: %+v", shown)
	}
	if text := get(t, site, "/difference?from=model-10.safetensors&to=model-10.safetensors"); !strings.Contains(text, "the same checkpoint") {
		t.Errorf("one checkpoint is compared with itself:\n%s", text)
	}
}

// TestACheckpointIsVerified: when that is asked for, and not before.
func TestACheckpointIsVerified(t *testing.T) {
	dir := t.TempDir()
	copyFiles(t, dir, map[string]string{"torchfile/testdata/alone.pt": "good-1.pt", "torchfile/testdata/train-40.pt": "bad-2.pt"})
	bad := filepath.Join(dir, "bad-2.pt")
	b, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("train-40/data/0"))
	if at < 0 {
		at = len(b) / 2
	}
	b[at+200] ^= 1
	if err := os.WriteFile(bad, b, 0o644); err != nil {
		t.Fatal(err)
	}
	site := browse(t, dir)
	if text := get(t, site, "/checkpoint?at=good-1.pt"); !strings.Contains(text, "<button>Verify</button>") || strings.Contains(text, "as it should be") {
		t.Errorf("it is verified without being asked:\n%s", text)
	}
	// An array is there, in whatever state.
	if text := get(t, site, "/checkpoint.json?at=good-1.pt"); !strings.Contains(text, `"problems":[]`) {
		t.Errorf("before it is verified checkpoint.json is\n%s", text)
	}
	for name, want := range map[string]string{"good-1.pt": "All is as it should be", "bad-2.pt": "It is damaged."} {
		if text := get(t, site, "/checkpoint?verify=1&at="+name); !strings.Contains(text, want) {
			t.Errorf("%s is verified as\n%s", name, text)
		}
		if text := get(t, site, "/checkpoint?at="+name); !strings.Contains(text, want) { // it is remembered
			t.Errorf("of %s it is said later\n%s", name, text)
		}
		var shown struct {
			Verification struct {
				OK       bool
				Problems []inspect.Problem
				Ended    *time.Time
			}
		}
		getJSON(t, site, "/checkpoint.json?verify=1&at="+name, &shown)
		if v := shown.Verification; v.Ended == nil || v.OK != (name == "good-1.pt") || v.OK != (len(v.Problems) == 0) {
			t.Errorf("checkpoint.json of %s: %+v", name, v)
		}
	}
}

// TestADamageOfManyFiles: how many problems there are is said, however many of them are shown.
func TestADamageOfManyFiles(t *testing.T) {
	const files = 2500
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "step-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	name := func(i int) string { return filepath.Join(dir, "step-1", fmt.Sprintf("shard-%d", i)) }
	for i := range files {
		if err := os.WriteFile(name(i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "step-1", "COMMITTED"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	site := browse(t, dir)
	get(t, site, "/checkpoint?at=step-1")
	for i := range files {
		if err := os.Remove(name(i)); err != nil {
			t.Fatal(err)
		}
	}
	if text := get(t, site, "/checkpoint?verify=1&at=step-1"); strings.Count(text, "it is missing") != 100 || !strings.Contains(text, "and 2,500 in all") {
		t.Errorf("the page says\n%s", text[strings.Index(text, "Verification"):])
	}
	var shown struct {
		Verification struct {
			Problems []inspect.Problem
			Omitted  int
		}
	}
	getJSON(t, site, "/checkpoint.json?verify=1&at=step-1", &shown)
	if v := shown.Verification; len(v.Problems) != 2000 || v.Omitted != 500 {
		t.Errorf("checkpoint.json has %d problems, and %d omitted", len(v.Problems), v.Omitted)
	}
}

// copyFiles copies files of other packages' test data, by where they are under hdfsckpt.
func copyFiles(t *testing.T, dir string, names map[string]string) {
	t.Helper()
	for from, to := range names {
		b, err := os.ReadFile(filepath.Join("../../hdfsckpt", from))
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestATensorWithoutANumber: of one whose values are all not a number or infinite, no range, mean
// and norm are told, which would be those of others.
func TestATensorWithoutANumber(t *testing.T) {
	dir := t.TempDir()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	saveTensors(t, filepath.Join(dir, "model-10.safetensors"), tensors{"lost": {nan, inf, nan, -inf}, "half": {nan, 2, 2, 2}})
	site := browse(t, dir)
	text := get(t, site, "/tensor?at=model-10.safetensors&tensor=lost")
	if strings.Contains(text, "<dt>Mean") || strings.Contains(text, "<dt>Norm") || strings.Contains(text, "0 to 0") || !strings.Contains(text, "<dt>Range<dd>no value is finite") || !strings.Contains(text, `<dt>NaN<dd class="failed">2`) {
		t.Errorf("the page says:\n%s", text)
	}
	if text := get(t, site, "/tensor?at=model-10.safetensors&tensor=half"); !strings.Contains(text, "<dt>Range<dd>2 to 2") || !strings.Contains(text, "<dt>Mean<dd>2") {
		t.Errorf("where some are numbers the page says:\n%s", text)
	}
}
