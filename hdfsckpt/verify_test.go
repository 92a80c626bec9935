package hdfsckpt_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

func verify(t *testing.T, s store.Store, c format.Checkpoint) []format.Problem {
	t.Helper()
	problems, err := hdfsckpt.Verify(context.Background(), s, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// TestVerifyInStretches reads each file, of one tensor or more, in several parts.
func TestVerifyInStretches(t *testing.T) {
	hdfsckpt.ReadStretches(t, 10)
	TestVerify(t)
}

func TestVerify(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		putCheckpoint(t, s, "a/model.ckpt-1", nil)
		c := list(t, s)[0]
		var done, total atomic.Int64
		problems, err := hdfsckpt.Verify(context.Background(), s, c, func(d, all int64) {
			done.Store(max(d, done.Load()))
			total.Store(all)
		})
		if err != nil || len(problems) != 0 || total.Load() != c.Size || done.Load() != c.Size {
			t.Errorf("%v, %v, %d of %d", problems, err, done.Load(), total.Load())
		}
		name := "a/model.ckpt-1.data-00002-of-00004"
		b, err := store.ReadFile(context.Background(), s, name)
		must(t, err)
		b[17] ^= 4
		put(t, s, name, b)
		problems = verify(t, s, list(t, s)[0])
		if len(problems) != 1 || problems[0].File != name || problems[0].Tensor != "v1" || problems[0].Offset != 0 || !strings.Contains(problems[0].String(), "checksum") {
			t.Errorf("%v", problems)
		}
		put(t, s, name, b[:50])
		problems = verify(t, s, list(t, s)[0])
		if len(problems) != 2 || !strings.Contains(problems[0].String(), `at byte 0, tensor v1: it reaches to byte 80, the file ends at 50`) {
			t.Errorf("%v", problems)
		}
	})
}

// TestVerifyFindsEveryBit flips bits everywhere in a sealed checkpoint, behind
// the store's back.
func TestVerifyFindsEveryBit(t *testing.T) {
	t.Run("one stretch", verifyFindsEveryBit)
	hdfsckpt.ReadStretches(t, 10)
	t.Run("more stretches", verifyFindsEveryBit)
}

func verifyFindsEveryBit(t *testing.T) {
	dir := t.TempDir()
	s := openLocal(t, dir)
	defer s.Close()
	putCheckpoint(t, s, "model.ckpt-1", nil)
	seal(t, s, "model.ckpt-1")
	c := list(t, s)[0]
	if c.State != format.Sealed || len(verify(t, s, c)) != 0 {
		t.Fatalf("%s: %v", c.State, verify(t, s, c))
	}
	for _, f := range c.Files {
		b, err := os.ReadFile(path.Join(dir, f.Name))
		must(t, err)
		for range 100 {
			bit := rand.IntN(8 * len(b))
			b[bit/8] ^= 1 << (bit % 8)
			must(t, os.WriteFile(path.Join(dir, f.Name), b, 0o644))
			found := false
			for _, p := range verify(t, s, c) {
				found = found || p.File == f.Name
			}
			if !found {
				t.Errorf("%s: bit %d was flipped unnoticed", f.Name, bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
		must(t, os.WriteFile(path.Join(dir, f.Name), b, 0o644))
	}
}

// TestATornFileIsToldOnce: what keeps a file of torch.save from being read is why it is torn, and
// no second problem.
func TestATornFileIsToldOnce(t *testing.T) {
	s, err := store.Open(context.Background(), t.TempDir(), nil)
	must(t, err)
	defer s.Close()
	whole, err := os.ReadFile("torchfile/testdata/train-40.pt")
	must(t, err)
	put(t, s, "step-40.pt", whole[:len(whole)/2])
	problems := verify(t, s, list(t, s)[0])
	if len(problems) != 1 || problems[0].File != "step-40.pt" {
		t.Errorf("%v", problems)
	}
}
