package hdfsckpt_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// opening is a local store that counts how often each file is opened.
type opening struct {
	*store.Local
	mu     sync.Mutex
	opened map[string]int
}

func (o *opening) Open(ctx context.Context, name string) (store.Reader, error) {
	o.mu.Lock()
	o.opened[name]++
	o.mu.Unlock()
	return o.Local.Open(ctx, name)
}

// list lists the checkpoints, and returns how many files of the one of a step were opened for that.
func (o *opening) list(t *testing.T, c contract, step string) (found []format.Checkpoint, opened int) {
	t.Helper()
	o.opened = map[string]int{}
	found, err := hdfsckpt.List(t.Context(), o)
	must(t, err)
	for _, f := range c.files {
		opened += o.opened[strings.ReplaceAll(f.name, "#", step)]
	}
	return found, opened
}

// TestSealedOnesAreLookedIntoOnce: who keeps a store open looks into a sealed checkpoint once, and
// again when one of its files is another, but for those of which a file beside them decides, as a
// pointer. What is found is the same.
func TestSealedOnesAreLookedIntoOnce(t *testing.T) {
	for name, c := range contracts(t) {
		if c.unknown {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := &opening{Local: openLocal(t, dir).(*store.Local)}
			defer s.Close()
			c.save(t, s, putFile, "10", "20", "30")
			found, looks := s.list(t, c, "10")
			again := found[0].Pointer() != nil || len(found[0].Traits().Beside) > 0
			seal(t, s, c.at("10"))
			s.list(t, c, "10")
			for _, named := range [][]string{{"10", "30"}, {"30", "10"}, {"20", "30"}} { // what is beside it changes
				c.note(t, s, named...)
				found, opened := s.list(t, c, "10")
				fresh := openLocal(t, dir)
				if want := list(t, fresh); describe(found) != describe(want) || !slices.EqualFunc(found, want, func(a, b format.Checkpoint) bool { return a.Step == b.Step && slices.Equal(a.Files, b.Files) }) {
					t.Errorf("found is\n%s\nand who opens the store now finds\n%s", describe(found), describe(want))
				}
				must(t, fresh.Close())
				if opened > 0 && !again {
					t.Errorf("%d of its files were opened", opened)
				}
				if _, opened := s.list(t, c, "20"); opened == 0 && looks > 0 {
					t.Error("one that is not sealed is not looked into")
				}
			}

			last := strings.ReplaceAll(c.files[len(c.files)-1].name, "#", "10")
			must(t, s.Chtimes(t.Context(), last, time.Now(), time.Now().Add(time.Hour)))
			found, opened := s.list(t, c, "10")
			i := slices.IndexFunc(found, func(x format.Checkpoint) bool { return x.Name == c.at("10") })
			if i < 0 || found[i].State == format.Sealed || opened == 0 && looks > 0 {
				t.Errorf("one of its files has another time, %d were opened, and found is\n%s", opened, describe(found))
			}
		})
	}
}
