package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/proto"
)

// TestGuessedFrameworks: a job that names no framework gets the one that its command or
// script shows, and its user is told; one that names any keeps it.
func TestGuessedFrameworks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"train.py": "import torch\n", "lib/deep.py": "import jax\n", "lib/__main__.py": "import xgboost\n", "other.py": "import os\n", "ft.py": "import torch\nfrom torchft import Manager\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ named, command, want, why string }{
		{"", "python train.py", "pytorch", "because train.py imports torch"},
		{"", "python -u src/deep.py", "jax", "because src/deep.py imports jax"},
		{"", "torchrun other.py", "pytorch", "because the command runs torchrun"},
		{"", "python ft.py", "torchft", "because ft.py imports torchft"},
		{"", "torchrun --nproc_per_node 2 ft.py", "torchft", "because ft.py imports torchft"},
		{"", "python -m torch.distributed.run ft.py", "torchft", "because ft.py imports torchft"},
		{"", "python -um train --steps 3", "pytorch", "because train.py imports torch"},
		{"", "python -m src.deep other.py", "jax", "because src/deep.py imports jax"},
		{"", "python -m src", "xgboost", "because src/__main__.py imports xgboost"},
		{"", "python src", "xgboost", "because src/__main__.py imports xgboost"},
		{"", "torchrun --nproc_per_node 2 -m ft", "torchft", "because ft.py imports torchft"},
		{"", "python -u -m torch.distributed.run -m ft", "torchft", "because ft.py imports torchft"},
		{"pytorch", "torchrun ft.py", "pytorch", ""},
		{"", "mpirun -np 2 python train.py", "pytorch", "because train.py imports torch"},
		{"", "python other.py", "none", ""},
		{"", "python {task}.py", "none", ""},
		{"", "python -m nowhere", "none", ""},
		{"", "python -m ..train", "none", ""},
		{"", "python -c train.py", "none", ""},
		{"none", "python train.py", "none", ""},
		{"jax", "torchrun train.py", "jax", ""},
	} {
		d := NewDraft()
		d.Job.Framework, d.Job.Command, d.Job.Local = c.named, strings.Fields(c.command), true
		d.Job.Roles = []*proto.RoleSpec{{Name: "worker", Count: 1, Vcores: 1}}
		for file, name := range map[string]string{"train.py": "train.py", "other.py": "other.py", "ft.py": "ft.py", "lib": "src"} {
			d.Inputs = append(d.Inputs, Input{Path: filepath.Join(dir, file), Name: name})
		}
		job, err := d.Spec()
		if err != nil {
			t.Fatalf("%s: %v", c.command, err)
		}
		note := d.FrameworkNote(job)
		if job.Framework != c.want || !strings.Contains(note, c.why) || (note == "") != (c.why == "") {
			t.Errorf("%s with %q: %s, and the note %q; want %s and %q", c.command, c.named, job.Framework, note, c.want, c.why)
		}
	}
}
