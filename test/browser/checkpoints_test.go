package browser

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/proto"
)

// saving is a task that saves what it was given, a file at a time, and then prints steps.
const saving = `for f in given/*; do cp $f out/part && mv out/part out/${f##*/}; sleep 0.2; done; ` + counting

// writeModel writes a file of safetensors as a network of so many layers has them, after so
// many steps.
func writeModel(t *testing.T, file string, layers, step int) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	header, data := map[string]any{}, bytes.Buffer{}
	add := func(name string, spread float64, rows, columns int) {
		from := data.Len()
		for range rows * columns {
			v := random.NormFloat64() * spread * (1 + float64(step)/1000)
			if err := binary.Write(&data, binary.LittleEndian, float32(v)); err != nil {
				t.Fatal(err)
			}
		}
		header[name] = map[string]any{"dtype": "F32", "shape": []int{rows, columns}, "data_offsets": []int{from, data.Len()}}
	}
	for i := range layers {
		add(fmt.Sprintf("model.layers.%d.attention.weight", i), 0.02, 64, 64)
		add(fmt.Sprintf("model.layers.%d.dense.weight", i), 0.05, 64, 128)
		add(fmt.Sprintf("model.layers.%d.dense.bias", i), 0.01, 1, 128)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(file, append(b, data.Bytes()...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCheckpointPages: in a browser, the checkpoints of a job that runs are opened down to the
// histogram of a tensor, compared and verified; on a phone and without a script, too.
func TestCheckpointPages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	user := newUser(ctx, t)
	given := filepath.Join(user.Dir, "given")
	if err := os.Mkdir(given, 0o700); err != nil {
		t.Fatal(err)
	}
	for step := 100; step <= 400; step += 100 {
		writeModel(t, filepath.Join(given, fmt.Sprintf("model-%d.safetensors", step)), 6, step)
	}
	job, err := user.Run(ctx, "--local", "--name", "saving", "--worker", "1", "--files", "given/", "--checkpoint", "./out=ck", "--", "sh", "-c", saving)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Call(context.Background(), "kill", job) }) // it may have ended
	var s *proto.JobStatus
	for s == nil || s.CompleteStep < 400 {
		if s, err = user.Status(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	// One that was broken off, a year ago.
	if err := os.WriteFile(filepath.Join(user.Dir, "ck/model-500.safetensors"), []byte("\x00\x10\x00\x00\x00\x00\x00\x00{"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(ctx, t, true)
	b.do(chromedp.EmulateViewport(1200, 800))
	b.open(s.TrackingUrl)
	b.click(`#figures a[href="checkpoints"]`)
	b.waitFor(".checkpoints tr.marked .tag", "restart")
	b.until("all of them to be sealed", `document.querySelectorAll(".checkpoints .sealed").length === 4`)
	b.pictures("checkpoints")
	// Filtered as one types.
	b.click("#filter input[type=search]")
	b.do(chromedp.KeyEvent("30"))
	b.until("the filter to apply", `document.querySelectorAll(".checkpoints tbody tr").length === 1`)

	b.click(`.checkpoints .step a[href*="model-300"]`)
	b.waitFor("#rows", "18 tensors")
	address := b.address()
	b.click("#filter input[type=search]")
	b.do(chromedp.KeyEvent("*.5.*.weight"))
	b.until("the tensors to be filtered", `document.querySelectorAll("#rows tbody tr").length === 2`)
	b.open(address)
	b.click("#verified button")
	b.waitFor("#verified", "All is as it should be")
	b.pictures("checkpoint")

	b.click(`#rows a[href*="layers.5.dense.weight"]`)
	b.waitFor("#tensor .facts", "Range")
	b.until("40 bars", `document.querySelectorAll("#histogram rect").length === 40`)
	b.pictures("tensor")
	b.click(`#histogram a[href$="scale=log"]`)
	b.waitFor("#histogram", "logarithms")

	b.open(address)
	b.click(`form[action=difference] button`)
	b.waitFor("#changes", "18 changed")
	b.pictures("difference")

	// Without the script, all of it works.
	plain := newBrowser(ctx, t, false)
	plain.open(s.TrackingUrl + "checkpoints")
	for _, next := range []struct{ selector, want string }{
		{`.checkpoints .step a[href*="model-200"]`, "18 tensors"},
		{`#verified button`, "All is as it should be"},
		{`#rows a[href*="layers.5.dense.weight"]`, "<svg role=\"img\""},
	} {
		plain.do(chromedp.Click(chromedp.CSS(next.selector)))
		text := ""
		for !strings.Contains(text, next.want) && ctx.Err() == nil {
			text, _ = chromedp.Run(plain.ctx, chromedp.OuterHTML(chromedp.CSS("body"))) // while another page is opened it fails
		}
		if ctx.Err() != nil {
			t.Fatalf("without the script the page does not have %q:\n%s", next.want, text)
		}
	}
}

// address is where the browser is.
func (b browser) address() string {
	b.t.Helper()
	address, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		b.t.Fatal(err)
	}
	return address
}

// pictures saves pictures of the page: light, dark, and on a phone, which it has to fit.
func (b browser) pictures(name string) {
	b.t.Helper()
	b.picture(name)
	b.do(prefer("dark"))
	b.picture(name + "-dark")
	b.do(prefer("light"), chromedp.EmulateViewport(390, 844))
	b.until("the page to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.picture(name + "-phone")
	b.do(chromedp.EmulateViewport(1200, 800))
}
