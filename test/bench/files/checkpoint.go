package files

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/test/bench"
	"holdfast/test/pyenv"
)

//go:embed checkpoint.py
var checkpointer string

// Checkpoint compares TensorFlow's own saving and restoring through the mount
// with the same on this machine's disk, by one process, in turn. Nothing waits
// for the local disk: what is written to it stays in memory for the moment.
func (b *Files) Checkpoint(ctx context.Context) error {
	python, err := pyenv.TensorFlow(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.Dir, "checkpoint-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "checkpoint.py")
	if err := os.WriteFile(script, []byte(checkpointer), 0o644); err != nil {
		return err
	}
	const replication = 2
	cmd := b.mounted(ctx, replication, b.Cluster.HDFS()+"/bench-checkpoint", `exec "$@"`, python, script,
		strconv.Itoa(b.SaveMB), strconv.Itoa(b.Pairs), mount+"=.", disk+"="+dir)
	cmd.Env = append(cmd.Env, "TF_CPP_MIN_LOG_LEVEL=3", "CUDA_VISIBLE_DEVICES=-1")
	var out bytes.Buffer
	cmd.Stdout = &out
	if _, err := bench.Measure(cmd); err != nil {
		return err
	}
	saved, restored := map[string]bench.Series{}, map[string]bench.Series{}
	for l := range strings.Lines(out.String()) {
		// A name has spaces.
		fields := strings.Fields(l)
		if len(fields) < 3 {
			return fmt.Errorf("the checkpointer printed %q", l)
		}
		n := len(fields) - 2
		save, err := strconv.ParseFloat(fields[n], 64)
		if err != nil {
			return err
		}
		restore, err := strconv.ParseFloat(fields[n+1], 64)
		if err != nil {
			return err
		}
		name := strings.Join(fields[:n], " ")
		saved[name], restored[name] = append(saved[name], save), append(restored[name], restore)
	}
	b.Title(fmt.Sprintf("A TensorFlow checkpoint of %d MB in 4 shards, replication %d", b.SaveMB, replication))
	for _, m := range []struct {
		what string
		took map[string]bench.Series
	}{{"saved", saved}, {"restored", restored}} {
		bench.Line(b.Out, m.what+", "+mount, m.took[mount].Format(" s", 2))
		bench.Line(b.Out, m.what+", "+disk, m.took[disk].Format(" s", 2))
		bench.Line(b.Out, m.what+", ratio", bench.Ratios(m.took[mount], m.took[disk]).Format("", 2))
	}
	fmt.Fprintln(b.Out)
	return nil
}

const disk = "local disk"
