package submit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
)

// permits is a store that says who may do what, as HDFS does.
type permits struct {
	store.Store
	err   error
	asked string
	mask  uint32
}

func (p *permits) Access(_ context.Context, name string, mask uint32) error {
	p.asked, p.mask = name, mask
	return p.err
}

// TestWhetherADirectoryIsWritable: that is found out without changing anything of the user's where
// Holdfast has a directory of its own, and the user's permissions count there, too.
func TestWhetherADirectoryIsWritable(t *testing.T) {
	for _, own := range []string{"", ".holdfast", ".holdfast/writing"} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, own), 0o755); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Hour)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
		local, err := store.Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		for _, refused := range []error{nil, syscall.EACCES} {
			s := &permits{Store: local, err: refused}
			if err := CheckWritable(t.Context(), s); own != "" && !errors.Is(err, refused) || own == "" && err != nil {
				t.Errorf("with %q, where the user's permissions say %v: %v", own, refused, err)
			}
			if own != "" && (s.asked != "." || s.mask != 3) {
				t.Errorf("with %q, asked was for %q, %d", own, s.asked, s.mask)
			}
		}
		if err := CheckWritable(t.Context(), local); err != nil {
			t.Errorf("with %q: %v", own, err)
		}
		if i, err := os.Stat(dir); err != nil || own != "" && !i.ModTime().Equal(at) {
			t.Errorf("with %q, the directory was changed: %v, %v", own, i.ModTime(), err)
		}
		if err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				t.Errorf("with %q, %s is left", own, name)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestFitNodes(t *testing.T) {
	node := func(state string, mb int64, cores int32) yarn.Node {
		return yarn.Node{State: state, Capability: yarn.Resource{MemoryMB: mb, VCores: cores}}
	}
	nodes := []yarn.Node{node("RUNNING", 4096, 8), node("RUNNING", 8192, 2), node("LOST", 65536, 64)}
	ask := func(mb int64, cores int32) error {
		return places{nodes: nodes}.fit([]yarn.Demand{{Role: "worker", Count: 1, Resource: yarn.Resource{MemoryMB: mb, VCores: cores}}})
	}
	if err := ask(8192, 2); err != nil {
		t.Error(err)
	}
	for _, err := range []error{ask(8193, 1), ask(8192, 3)} { // the second: no single node has both
		if err == nil || !strings.Contains(err.Error(), "worker") || !strings.Contains(err.Error(), "8 GB") {
			t.Errorf("the error is: %v", err)
		}
	}
	lost := places{nodes: []yarn.Node{node("LOST", 1, 1)}}
	if err := lost.fit([]yarn.Demand{{Role: "w", Resource: yarn.Resource{MemoryMB: 2}}}); err != nil {
		t.Errorf("without running nodes there is nothing to compare with: %v", err)
	}
}

func TestFitPartitions(t *testing.T) {
	node := func(label, state string, mb int64) yarn.Node {
		return yarn.Node{Label: label, State: state, Capability: yarn.Resource{MemoryMB: mb}}
	}
	p := places{
		nodes:      []yarn.Node{node("", "RUNNING", 2048), node("gpu", "RUNNING", 8192), node("spot", "RUNNING", 4096), node("idle", "LOST", 1024)},
		partitions: []yarn.Partition{{Label: "empty"}, {Label: "gpu", Exclusive: true}, {Label: "idle"}, {Label: "spot"}},
		queue:      yarn.Queue{Name: "q"}, hasQueue: true,
	}
	for _, c := range []struct {
		label string
		mb    int64
		want  string // in the error; empty: there is none
	}{
		{"gpu", 8192, ""},
		{"gpu", 8193, `no node with the label "gpu" has that much (the largest has 8 GB`},
		{"", 2048, ""},
		{"", 4096, ""}, // another partition lends
		{"", 8192, "no node of the cluster has that much (the largest has 4 GB"},
		{"idle", 9999, ""}, // they may come back larger
		{"empty", 1, "none has it"},
	} {
		err := p.fit([]yarn.Demand{{Role: "w", Label: c.label, Resource: yarn.Resource{MemoryMB: c.mb}}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d MB on %q: %v, want %q", c.mb, c.label, err, c.want)
		}
	}
	p.queue.DefaultLabel = "gpu"
	if err := p.fit([]yarn.Demand{{Role: "w", Resource: yarn.Resource{MemoryMB: 8192}}}); err != nil {
		t.Errorf("the queue's own label does not count: %v", err)
	}
}
