package hdfsckpt_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/test/pyenv"
)

// TestRealTensorFlow: what CheckpointManager, and tf.train.Checkpoint under
// ParameterServerStrategy, write is found complete, sealed, verified and read;
// and TensorFlow restores from a copy of it that came by way of HDFS.
func TestRealTensorFlow(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	python, err := pyenv.TensorFlow(ctx)
	must(t, err)
	dir, back := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(ctx, python, "testdata/tensorflow_save.py", dir)
	var log strings.Builder
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	lines := bufio.NewReaderSize(out, 1<<20)
	tell := func(into any) {
		t.Helper()
		line, err := lines.ReadString('\n')
		if err != nil || json.Unmarshal([]byte(line), into) != nil {
			t.Fatalf("TensorFlow said %q, %v:\n%s", line, err, log.String())
		}
	}
	var saved map[string]map[string][]float64
	tell(&saved)

	local, onHDFS := openLocal(t, dir), openHDFS(t)
	defer local.Close()
	defer onHDFS.Close()
	found := list(t, local)
	want := "servers/ck-1 tensorflow 3 complete current\nmanaged/ckpt-20 tensorflow 1 complete\nmanaged/ckpt-30 tensorflow 1 complete current\n"
	if got := describe(found); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	for _, c := range found {
		if problems := verify(t, local, c); len(problems) != 0 {
			t.Errorf("%s: %v", c.Name, problems)
		}
	}
	agrees := func(c *format.Checkpoint, name string, want []float64) {
		t.Helper()
		tensors, err := format.OpenTensors(ctx, local, c)
		must(t, err)
		defer tensors.Close()
		x := tensors.Find(name)
		if x == nil {
			var names []string
			for _, x := range tensors.All() {
				names = append(names, x.Name)
			}
			t.Fatalf("%s has no tensor %s, but %v", c.Name, name, names)
		}
		b, err := x.Read()
		must(t, err)
		var got []float64
		must(t, x.Kind.Numbers(b, func(v float64) { got = append(got, v) }))
		if !slices.Equal(got, want) {
			t.Errorf("%s of %s is %v, want %v", name, c.Name, got, want)
		}
	}
	agrees(&found[0], "table/.ATTRIBUTES/VARIABLE_VALUE", saved["servers"]["table"])
	agrees(&found[2], "net/w/.ATTRIBUTES/VARIABLE_VALUE", saved["managed"]["w"])

	older, err := format.OpenTensors(ctx, local, &found[1])
	must(t, err)
	defer older.Close()
	newer, err := format.OpenTensors(ctx, local, &found[2])
	must(t, err)
	defer newer.Close()
	changes, err := hdfsckpt.Diff(older, newer, hdfsckpt.DiffOptions{Limit: math.MaxInt64})
	must(t, err)
	moved := ""
	for _, c := range changes {
		if c.Added || c.Removed || c.Reshaped {
			t.Errorf("%+v", c)
		}
		moved += strings.TrimSuffix(c.Name, "/.ATTRIBUTES/VARIABLE_VALUE") + " "
		if strings.HasPrefix(c.Name, "net/w/") && (c.Norm < 24.4 || c.Norm > 24.6) { // 1 in each of 600
			t.Errorf("net/w has moved by %g", c.Norm)
		}
	}
	if moved != "net/w save_counter step " {
		t.Errorf("changed are %s", moved)
	}

	copyAll := func(from, to store.Store, name string) {
		t.Helper()
		for _, c := range list(t, from) {
			if path.Base(c.Name) == name {
				_, err := hdfsckpt.Copy(ctx, from, to, c, nil)
				must(t, err)
			}
		}
	}
	copyAll(local, onHDFS, "ckpt-30")
	seal(t, onHDFS, "ckpt-30")
	if got := states(list(t, onHDFS)); got != "ckpt-30 sealed current" {
		t.Errorf("on HDFS: %s", got)
	}
	copied := openLocal(t, back)
	defer copied.Close()
	copyAll(onHDFS, copied, "ckpt-30")
	_, err = in.Write([]byte(back + "\n"))
	must(t, err)
	var restored struct {
		Newest string
		Step   int
		W      []float64
	}
	tell(&restored)
	if restored.Newest != "ckpt-30" || restored.Step != 30 || !slices.Equal(restored.W, saved["managed"]["w"]) {
		t.Errorf("TensorFlow restored %s at step %d", restored.Newest, restored.Step)
	}
}

// TestLocate: the hosts of a file's blocks are told, on HDFS.
func TestLocate(t *testing.T) {
	ctx := context.Background()
	local, onHDFS := openLocal(t, t.TempDir()), openHDFS(t)
	defer local.Close()
	defer onHDFS.Close()
	for _, s := range []store.Store{local, onHDFS} {
		put(t, s, "a/file", []byte("content"))
	}
	blocks, err := store.Locate(ctx, onHDFS, "a/file")
	if err != nil || len(blocks) != 1 || blocks[0].Bytes != 7 || blocks[0].Offset != 0 || len(blocks[0].Hosts) == 0 || !strings.Contains(blocks[0].Hosts[0], ":") {
		t.Errorf("%+v, %v", blocks, err)
	}
	if blocks, err := store.Locate(ctx, local, "a/file"); err != nil || blocks != nil {
		t.Errorf("%+v, %v", blocks, err)
	}
}
