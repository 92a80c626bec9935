package torture

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/manifest"
)

// TestEveryFlippedBitIsFound flips bits behind the store's back: one in every
// byte of a small checkpoint's index and shards, sealed and not sealed, and
// some in a larger one.
func TestEveryFlippedBitIsFound(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		flipBits(t, 3, 5, sealed, 1)
	}
	flipBits(t, 4, 100_000, true, 80_000)
}

// flipBits flips a bit in each each-th byte, of a checkpoint whose shards have
// width values.
func flipBits(t *testing.T, shards, width int, sealed bool, each int) {
	t.Helper()
	ctx, dir := context.Background(), memoryDir(t)
	s := openLocal(t, dir)
	defer s.Close()
	rng := rand.New(rand.NewPCG(3, 3))
	p := &program{rng: rng, shards: shards, sharded: true, width: width, dir: "."}
	for _, o := range p.save(1, 10) { // without a mount
		at := filepath.Join(dir, o.name)
		var err error
		switch o.kind {
		case "mkdir":
			os.Mkdir(at, 0o755)
		case "write":
			var f *os.File
			if f, err = os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err == nil {
				f.Write(o.data)
				err = f.Close()
			}
		case "rename":
			err = os.Rename(at, filepath.Join(dir, o.to))
		case "remove", "rmdir":
			err = os.Remove(at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	find := func() format.Checkpoint {
		list, err := hdfsckpt.List(ctx, s)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d checkpoints, %v", len(list), err)
		}
		return list[0]
	}
	c := find()
	if sealed {
		if _, err := hdfsckpt.Seal(ctx, s, c, manifest.Meta{}, nil); err != nil {
			t.Fatal(err)
		}
		c = find()
	}
	if problems, err := hdfsckpt.Verify(ctx, s, c, nil); err != nil || len(problems) > 0 || !c.Whole() {
		t.Fatalf("untouched, it is %s, with the problems %v, %v", c.State, problems, err)
	}
	tried, missed := 0, 0
	for _, f := range c.Files {
		name := filepath.Join(dir, f.Name)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := rng.IntN(each); at < len(b); at += each {
			bit := byte(1) << rng.IntN(8)
			b[at] ^= bit
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
			problems, err := hdfsckpt.Verify(ctx, s, c, nil)
			if err != nil {
				t.Fatal(err)
			}
			tried++
			if len(problems) == 0 {
				missed++
				t.Errorf("%s: bit %d of byte %d was flipped unnoticed", f.Name, bit, at)
			}
			b[at] ^= bit
		}
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files, %d bytes, sealed %v: %d flipped bits tried, %d missed", len(c.Files), c.Size, sealed, tried, missed)
}
