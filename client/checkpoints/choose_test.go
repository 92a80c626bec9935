package checkpoints

import (
	"strings"
	"testing"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// TestWhatThereIsCanBeAskedFor: who asks for a checkpoint that is not there is told which there are,
// in words that mean one each.
func TestWhatThereIsCanBeAskedFor(t *testing.T) {
	s, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var list []format.Checkpoint
	for _, c := range []struct {
		name string
		step int64
	}{{"model.safetensors", format.NoStep}, {"last.ckpt", format.NoStep}, {"step-10.pt", 10}, {"gan/D-40.pt", 40}, {"gan/G-40.pt", 40}} {
		list = append(list, format.Checkpoint{Name: c.name, Step: c.step, State: format.Complete})
	}
	dirs := []Listed{{Directory{Store: s}, list}}
	for _, which := range []string{"7", "none.pt", "-1"} {
		_, err := Choose(dirs, which)
		if err == nil {
			t.Errorf("%s means something", which)
			continue
		}
		_, said, _ := strings.Cut(err.Error(), "there are ")
		words := strings.Split(said, ", ")
		if len(words) != len(list) {
			t.Errorf("without %s: %v", which, err)
		}
		for i, word := range words {
			if c, err := Choose(dirs, word); err != nil || c.Name != list[i].Name {
				t.Errorf("%q, which it says that there is, means %+v: %v", word, c, err)
			}
		}
	}
}
