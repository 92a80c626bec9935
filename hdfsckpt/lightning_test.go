package hdfsckpt_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/inspect"
)

// archived is a file as torch.save writes it, of a pickle without tensors. Its first member has
// that name.
func archived(t testing.TB, member, pickle string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range []struct{ name, content string }{{member, pickle}, {"archive/version", "3\n"}} {
		m, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
		if err == nil {
			_, err = m.Write([]byte(f.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pickled are keys and values of a pickle's dictionary, or of an object's attributes.
func pickled(pairs ...string) string {
	all := "}("
	for i, p := range pairs {
		if i%2 == 0 {
			p = "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(p)))) + p
		}
		all += p
	}
	return all + "u"
}

func pickledNumber(n uint16) string {
	return "M" + string(binary.LittleEndian.AppendUint16(nil, n))
}

// ofLightning is what Lightning's Trainer saves at a step.
func ofLightning(t testing.TB, step uint16) []byte {
	return archived(t, "archive/data.pkl", "\x80\x02"+pickled("epoch", "K\x03", "global_step", pickledNumber(step), "pytorch-lightning_version", "U\x052.6.6", "state_dict", "}")+".")
}

// TestLightningsLast: last.ckpt has the step that is in it, and prune leaves it alone.
func TestLightningsLast(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	put(t, s, "epoch=0-step=100.ckpt", ofLightning(t, 100))
	put(t, s, "epoch=2-step=300.ckpt", ofLightning(t, 300))
	put(t, s, "last.ckpt", ofLightning(t, 400))
	put(t, s, "last-v1.ckpt", ofLightning(t, 200))
	put(t, s, "tensor.ckpt", torchFixture(t, "alone.pt"))
	put(t, s, "word.ckpt", archived(t, "archive/data.pkl", "\x80\x02"+pickled("global_step", "U\x0217")+"."))
	put(t, s, "broken.ckpt", archived(t, "archive/data.pkl", "\x80\x02}("))
	put(t, s, "last.pt", ofLightning(t, 500)) // not by Lightning's name
	steps := map[string]int64{}
	found := list(t, s)
	for _, c := range found {
		if steps[c.Name] = c.Step; !c.Whole() || c.Unnumbered != (c.Name == "last.ckpt" || c.Name == "last-v1.ckpt") {
			t.Errorf("%s, unnumbered: %v", describe([]format.Checkpoint{c}), c.Unnumbered)
		}
	}
	for name, want := range map[string]int64{"last.ckpt": 400, "last-v1.ckpt": 200, "epoch=2-step=300.ckpt": 300, "tensor.ckpt": -1, "word.ckpt": -1, "broken.ckpt": -1, "last.pt": -1} {
		if steps[name] != want {
			t.Errorf("%s is of step %d, want %d", name, steps[name], want)
		}
	}
	for _, c := range inspect.Describe(s.URI(), found, found) {
		plan, err := hdfsckpt.PlanRollback(t.Context(), s, "", steps[c.Name])
		if can := err == nil && plan.To.Name == c.Name; c.CanGoBackTo() != can {
			t.Errorf("it is said of %s that a rollback to it is possible: %v; planned is one to %s, %v", c.Name, c.CanGoBackTo(), plan.To.Name, err)
		}
	}
	if newest := format.NewestComplete(found); newest.Name != "last.ckpt" {
		t.Errorf("the newest is %s", newest.Name)
	}
	plan := hdfsckpt.PlanPrune(found, 1, 0)
	if got := states(plan.Remove); got != "epoch=0-step=100.ckpt complete" {
		t.Errorf("a prune removes %s", got)
	}
	for _, k := range plan.Keep {
		if k.Name == "last-v1.ckpt" && k.Reason != "has no step in its name" {
			t.Errorf("%s stays: %s", k.Name, k.Reason)
		}
	}
}

// TestTornLightning: a file *.ckpt that was cut off is moved aside if it begins as torch.save
// begins a file; other archives are somebody's own.
func TestTornLightning(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	whole := ofLightning(t, 400)
	saved := torchFixture(t, "train-40.pt")
	put(t, s, "last.ckpt", whole[:len(whole)-9])
	put(t, s, "epoch=1-step=200.ckpt", saved[:len(saved)-100])
	put(t, s, "images.ckpt", archived(t, "images/1.png", "x")[:40])
	put(t, s, "short.ckpt", whole[:20])
	put(t, s, "mine.ckpt", []byte("something else"))
	put(t, s, "weights.bin", saved[:len(saved)-100])
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	var aside []string
	for _, a := range report.Aside {
		aside = append(aside, a.Name)
	}
	slices.Sort(aside)
	if got := strings.Join(aside, " "); err != nil || got != "epoch=1-step=200.ckpt last.ckpt" {
		t.Errorf("moved aside: %s; %s, %v", got, report, err)
	}
}

// TestLightningsDirectories of its DeepSpeed strategy are one checkpoint each.
func TestLightningsDirectories(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	save := func(name string, without ...string) {
		putDeepSpeed(t, s, name+"/checkpoint", without...)
		put(t, s, name+"/zero_to_fp32.py", []byte("#"))
		put(t, s, name+"/latest", []byte("checkpoint"))
	}
	save("epoch=0-step=10.ckpt")
	save("epoch=1-step=20.ckpt", "zero_pp_rank_0_mp_rank_00_optim_states.pt")
	save("epoch=2-step=30.ckpt")
	must(t, s.Remove(t.Context(), "epoch=2-step=30.ckpt/latest"))
	save("epoch=3-step=40.ckpt")
	must(t, s.Chtimes(t.Context(), "epoch=3-step=40.ckpt/checkpoint/mp_rank_00_model_states.pt", old.Add(time.Minute), old.Add(time.Minute)))
	save("last.ckpt")
	put(t, s, "last.ckpt/checkpoint/mp_rank_00_model_states.pt", ofLightning(t, 50))
	put(t, s, "mine.ckpt/checkpoint/notes", []byte("x"))
	want := `epoch=0-step=10.ckpt lightning 5 complete
epoch=1-step=20.ckpt lightning 4 torn (zero_pp_rank_0_mp_rank_00_optim_states.pt is missing)
epoch=2-step=30.ckpt lightning 4 torn (it has no file latest: the save did not get that far)
epoch=3-step=40.ckpt lightning 5 unchecked (it was written to after its file latest: its save may not have ended)
last.ckpt lightning 5 complete
`
	if got := describe(list(t, s)); got != want || list(t, s)[4].Step != 50 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 2 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
}

// TestLightningsMetadataIsRetained: without meta.pt it restores no directory of FSDP.
func TestLightningsMetadataIsRetained(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, name := range []string{"epoch=0-step=10.ckpt", "epoch=1-step=20.ckpt"} {
		putDistributed(t, s, name, nil)
		put(t, s, name+"/meta.pt", torchFixture(t, "alone.pt"))
	}
	for _, f := range filesBelow(t, s, "epoch=0-step=10.ckpt") {
		unlink(t, s, f)
	}
	kept := listRetained(t, s)
	if len(kept) != 1 || kept[0].Former != "epoch=0-step=10.ckpt" || kept[0].Kind != pytorch.Distributed || len(kept[0].Files) != 4 {
		t.Errorf("retained are %+v", kept)
	}
}

// TestLightningsMetadata: of FSDP's directories those are torn that lack what is written last, if
// others have it.
func TestLightningsMetadata(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, name := range []string{"a/epoch=0-step=10.ckpt", "a/epoch=1-step=20.ckpt", "a/30", "b/epoch=0-step=40.ckpt"} {
		putDistributed(t, s, name, nil)
	}
	put(t, s, "a/epoch=0-step=10.ckpt/meta.pt", torchFixture(t, "alone.pt"))
	want := `a/epoch=0-step=10.ckpt dcp 2 complete
a/epoch=1-step=20.ckpt dcp 2 torn (it has no file meta.pt, as others beside it have: the save did not get that far)
a/30 dcp 2 complete
b/epoch=0-step=40.ckpt dcp 2 complete
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || len(report.Aside) != 1 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
}
