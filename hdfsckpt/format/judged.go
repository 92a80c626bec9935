package format

import (
	"path"
	"slices"
	"strings"
	"sync"

	"holdfast/hdfsckpt/store"
)

// Judged remembers the sealed checkpoints of a store as a search has found them. Another search
// that has it lists their files, and looks into none of them while they are as they were: by
// name, length, time and inode. The zero value is ready to use, by many goroutines.
type Judged struct {
	mu   sync.Mutex
	rule Rule
	of   map[claimed]*Checkpoint
}

// claimed identifies a claim among all of a store's.
type claimed struct {
	kind         Kind
	dir, entries string
}

func claimedBy(f Format, c Claim, dir string) claimed {
	return claimed{f.Traits().Kind, dir, strings.Join(slices.Concat(c.Take, c.Of), "/")}
}

// asJudged is a checkpoint as Claim.Check has returned it.
type asJudged struct {
	by    claimed
	found *Checkpoint
}

// Keep remembers the sealed ones of what a search by a rule has found, and forgets all others.
func (j *Judged) Keep(rule Rule, list []Checkpoint) {
	of := map[claimed]*Checkpoint{}
	for i := range list {
		if c := &list[i]; c.State == Sealed && c.judged.found != nil {
			of[c.judged.by] = c.judged.found
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rule, j.of = rule, of
}

func (j *Judged) get(rule Rule, by claimed) *Checkpoint {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rule != rule {
		return nil
	}
	return j.of[by]
}

// copy returns one that shares no files with c.
func (c *Checkpoint) copy() *Checkpoint {
	other := *c
	other.Files, other.Extra = slices.Clone(c.Files), slices.Clone(c.Extra)
	return &other
}

// earlier is a checkpoint as it was found before, and the entries of its claim as they are now.
type earlier struct {
	found   *Checkpoint
	dir     string
	entries []store.Info
}

// judgedBefore returns what is remembered of a claim; nil if nothing is. What a pointer says, or
// another file beside the checkpoint (Traits.Beside), may have changed although its files have not,
// so that checkpoints with one are not remembered.
func (w *walker) judgedBefore(f Format, claim Claim, d *Dir) *earlier {
	was := w.Judged.get(w.Rule, claimedBy(f, claim, d.Name))
	if was == nil || hasPointer(f) || len(f.Traits().Beside) > 0 {
		return nil
	}
	entries := slices.Clone(d.Entries)
	if !claim.Whole {
		entries = slices.DeleteFunc(entries, func(e store.Info) bool {
			return !slices.Contains(claim.Take, e.Name) && !slices.Contains(claim.Of, e.Name)
		})
	}
	return &earlier{was, d.Name, entries}
}

// addUnchanged adds the checkpoint of a claim to those that were found, if it was judged before and
// its files are what they were. So is then what is in it, which need not be searched.
func (w *walker) addUnchanged(f Format, claim Claim, was *earlier, dir string, place bool) (bool, error) {
	if was == nil {
		return false, nil
	}
	before := map[string]File{}
	for _, x := range slices.Concat(was.found.Files, was.found.Extra) {
		before[x.Name] = x
	}
	same, err := w.sameFiles(was.dir, was.entries, before, 0)
	if !same || len(before) > 0 || err != nil {
		return false, err
	}
	w.add(f, claim, was.found.copy(), dir, place, "")
	return true, nil
}

// sameFiles reports whether all files among the entries of a directory, and below it, are in
// before, and takes them out of it.
func (w *walker) sameFiles(dir string, entries []store.Info, before map[string]File, depth int) (bool, error) {
	for _, e := range entries {
		if e.IsDir() {
			below := path.Join(dir, e.Name)
			inside, err := w.list(below)
			if err != nil || depth >= MaxDepth {
				return false, ignoreVanished(err)
			}
			if same, err := w.sameFiles(below, inside, before, depth+1); !same || err != nil {
				return false, err
			}
			w.mu.Lock()
			delete(w.listed, below) // nobody else will ask
			w.mu.Unlock()
			continue
		}
		now := FileOf(dir, e)
		was, ok := before[now.Name]
		if !ok || was.Size != now.Size || was.Inode != now.Inode || !was.ModTime.Equal(now.ModTime) {
			return false, nil
		}
		delete(before, now.Name)
	}
	return true, nil
}

// ignoreVanished drops the error of what was removed while it was looked at.
func ignoreVanished(err error) error {
	if store.Vanished(err) {
		return nil
	}
	return err
}
