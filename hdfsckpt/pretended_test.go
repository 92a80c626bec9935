package hdfsckpt_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
)

// pretended is a format as a new one would be written: this type in a file of its own,
// and its place in formats.All. A checkpoint is a directory NAME.pretended-N with a file
// values, and a file done, which has the checksum of values and is written last.
type pretended struct{}

var _ format.Contents = pretended{}

func (pretended) Traits() format.Traits {
	return format.Traits{Kind: "pretended", Last: []string{"done"}, CompleteWhen: "it has a file done"}
}

func isPretended(dir string) bool { return strings.Contains(path.Base(dir), ".pretended-") }

func (pretended) Owners(file string) []format.Owner {
	if dir := path.Dir(file); isPretended(dir) {
		return []format.Owner{format.SavedInPlace(dir)}
	}
	return nil
}

func (pretended) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	if !isPretended(d.Name) {
		return nil, nil
	}
	return []format.Claim{{Whole: true, Check: func(context.Context) (*format.Checkpoint, error) {
		c := &format.Checkpoint{Name: d.Name, Kind: "pretended", Step: format.StepAfterDash(d.Name), State: format.Torn, Why: "it is not done", Certain: true, Shards: 1}
		for _, e := range d.Entries {
			c.Files = append(c.Files, format.FileOf(d.Name, e))
			if e.Name == "done" {
				c.State, c.Why, c.Marker = format.Complete, "", path.Join(d.Name, e.Name)
			}
		}
		if len(c.Files) == 0 {
			return nil, nil
		}
		return c, nil
	}}}, nil
}

func (pretended) Tensors(*format.Opener, *format.Checkpoint) ([]*format.Tensor, error) {
	return []*format.Tensor{{Name: "v", Kind: "uint8"}}, nil
}

func (pretended) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	text, err := store.ReadFile(ctx, s, c.Marker)
	if err != nil {
		return nil, nil, err
	}
	want, err := strconv.ParseUint(string(text), 10, 32)
	return []format.Part{{File: path.Join(c.Name, "values"), Size: 3, Tensor: "v", Check: func() format.Checker { return &pretendedCheck{want: uint32(want)} }}}, nil, err
}

type pretendedCheck struct{ sum, want uint32 }

func (c *pretendedCheck) Write(b []byte) (int, error) {
	c.sum = crc32.Update(c.sum, crc32.IEEETable, b)
	return len(b), nil
}

func (c *pretendedCheck) End() error {
	if c.sum != c.want {
		return fmt.Errorf("its checksum is %d, not %d", c.sum, c.want)
	}
	return nil
}

func putPretended(t *testing.T, s store.Store, name string) {
	t.Helper()
	put(t, s, name+"/values", []byte("abc"))
	put(t, s, name+"/done", fmt.Append(nil, crc32.ChecksumIEEE([]byte("abc"))))
}

// TestOneFileAddsAFormat: all that is done with checkpoints follows from a format's value.
func TestOneFileAddsAFormat(t *testing.T) {
	saved := formats.All
	formats.All = append([]format.Format{pretended{}}, saved...)
	defer func() { formats.All = saved }()
	ctx, s := t.Context(), openLocal(t, t.TempDir())
	defer s.Close()

	for _, step := range []string{"10", "20", "30"} {
		putPretended(t, s, "run/a.pretended-"+step)
	}
	put(t, s, "run/a.pretended-40/values", []byte("ab"))
	seal(t, s, "run/a.pretended-20", "run/a.pretended-30")
	const listed = "run/a.pretended-10 complete; run/a.pretended-20 sealed; run/a.pretended-30 sealed; run/a.pretended-40 torn"
	if got := states(list(t, s)); got != listed {
		t.Fatalf("listed are %s, want %s", got, listed)
	}

	rule := format.Rule{Format: "pretended"}
	if err := formats.CheckRule(rule, "./logs"); err != nil || formats.CompleteWhen(rule) != "it has a file done" || !formats.MayComplete(rule, "x/done") || formats.MayComplete(rule, "x/values") {
		t.Errorf("its rule: %v, %q", err, formats.CompleteWhen(rule))
	}
	must(t, format.SetRule(ctx, s, rule))
	if got := states(list(t, s)); got != listed {
		t.Errorf("by its rule, listed are %s", got)
	}

	put(t, s, "run/a.pretended-10/values", []byte("xbc"))
	if problems := verify(t, s, list(t, s)[0]); len(problems) != 1 || problems[0].Tensor != "v" {
		t.Errorf("a flipped bit: %v", problems)
	}
	put(t, s, "run/a.pretended-10/values", []byte("abc"))
	tensors, err := format.OpenTensors(ctx, s, &list(t, s)[0])
	if err != nil || tensors.Find("v") == nil {
		t.Errorf("its tensors: %v", err)
	}

	report, err := hdfsckpt.Repair(ctx, s, 0)
	if err != nil || len(report.Aside) != 1 || report.Aside[0].Name != "run/a.pretended-40" {
		t.Errorf("torn, it is moved aside: %s, %v", report, err)
	}

	// A program that retains the newest only leaves the one before; one that saves over
	// it and is lost gets it back.
	remove(t, s, "run/a.pretended-10")
	remove(t, s, "run/a.pretended-20")
	if retained := listRetained(t, s); len(retained) != 1 || retained[0].Former != "run/a.pretended-20" || retained[0].State != format.Sealed {
		t.Errorf("retained are %+v", retained)
	}
	must(t, retain.Replacing(ctx, s, areaOf(s), "run/a.pretended-30/values"))
	if got := states(list(t, s)); got != "" {
		t.Errorf("while it is replaced, listed are %s", got)
	}
	report, err = hdfsckpt.Repair(ctx, s, 0)
	if got := states(list(t, s)); err != nil || got != "run/a.pretended-30 sealed" || !slices.Equal(report.Restored, []string{"run/a.pretended-30"}) {
		t.Errorf("after a loss halfway, %s: %s, %v", got, report, err)
	}

	to := openLocal(t, t.TempDir())
	defer to.Close()
	if _, err := hdfsckpt.Copy(ctx, s, to, list(t, s)[0], nil); err != nil || states(list(t, to)) != "a.pretended-30 complete" {
		t.Errorf("the copy: %s, %v", states(list(t, to)), err)
	}
	putPretended(t, s, "run/a.pretended-50")
	must(t, hdfsckpt.PlanPrune(list(t, s), 1, 0).Execute(ctx, s))
	if got := states(list(t, s)); got != "run/a.pretended-30 sealed; run/a.pretended-50 complete" {
		t.Errorf("after a prune that leaves one, and the newest sealed: %s", got)
	}
	if _, err := s.Stat(ctx, manifest.Path("run/a.pretended-30")); err != nil {
		t.Error(err)
	}
}
