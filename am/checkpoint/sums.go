package checkpoint

import (
	"iter"
	"path"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// maxSums bounds the checksums that are remembered for one directory. When there are
// more, all are forgotten, and sealing reads the files that it does not know.
const maxSums = 50000

// sums remembers the checksums that agents computed while a directory's files were
// written, and when that was. They belong to files, not to names: whoever renames or replaces
// a file, and in whichever order the reports arrive, a checksum is never taken for another
// file's.
type sums struct {
	known   hdfsckpt.Known
	written map[store.FileID]span
	renamed map[string]time.Time // when a name was last given to something that had another

	// fresh are the names that files have got since began and that are of no checkpoint that
	// core was told of.
	began time.Time
	fresh map[string]bool
}

// span is the time in which a file was written, by the clock of the AM: from the first change of
// its content until it became visible.
type span struct{ from, to time.Time }

// newSums returns the sums of a directory, of which a master that has begun at a time is told.
func newSums(began time.Time) *sums {
	return &sums{
		known: hdfsckpt.Known{}, written: map[store.FileID]span{}, renamed: map[string]time.Time{},
		began: began, fresh: map[string]bool{},
	}
}

// add takes in a committed file, of which an agent has reported at a time.
func (s *sums) add(f *proto.CommittedFile, at time.Time) {
	visible := at.Add(-time.Duration(f.AgeMs) * time.Millisecond)
	if !visible.Before(s.began) {
		if len(s.fresh) > maxSums {
			clear(s.fresh)
		}
		s.fresh[string(f.Name)] = true
	}
	if len(f.From) > 0 {
		if len(s.renamed) > maxSums {
			clear(s.renamed)
		}
		s.renamed[string(f.Name)] = visible
		return
	}
	if !f.HasCrc32C || f.Inode == 0 {
		return
	}
	if len(s.known) > maxSums {
		clear(s.known)
		clear(s.written)
	}
	id := store.FileID{Inode: f.Inode, Modified: f.ModifiedUnixNs}
	s.known[id] = hdfsckpt.KnownSum{Size: f.Size, CRC32C: f.Crc32C}
	s.written[id] = span{visible.Add(-time.Duration(f.WritingMs) * time.Millisecond), visible}
}

// isFresh reports whether a file of a checkpoint has become visible since this master began, and
// core was not told of the checkpoint since.
func (s *sums) isFresh(c format.Checkpoint) bool {
	for _, f := range c.Files {
		for name := range namesOf(f) {
			if s.fresh[name] {
				return true
			}
		}
	}
	return false
}

// told takes in that core was told of a checkpoint of a list; of those before it, it will not be.
func (s *sums) told(c format.Checkpoint, list []format.Checkpoint) {
	for _, before := range append(list[:len(list):len(list)], c) {
		if !before.Whole() || before.Step > c.Step {
			continue
		}
		for _, f := range before.Files {
			for name := range namesOf(f) {
				delete(s.fresh, name)
			}
		}
	}
}

// namesOf yields the name of a file, and those of the directories that it is in.
func namesOf(f format.File) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := f.Name; name != "." && name != "/" && yield(name); name = path.Dir(name) {
		}
	}
}

// saved returns how long the save of a complete checkpoint took: from the first change of one
// of its files until the last was in its place. It is not known if any of the files is one of
// which no agent has reported. What is known of its files is forgotten: a checkpoint that is
// renamed later is not saved again.
func (s *sums) saved(c format.Checkpoint) (took time.Duration, known bool) {
	var all span
	known = len(c.Files) > 0
	for _, f := range c.Files {
		of, found := s.takeSpan(f)
		if !found {
			known = false
			continue
		}
		if all.from.IsZero() || of.from.Before(all.from) {
			all.from = of.from
		}
		if of.to.After(all.to) {
			all.to = of.to
		}
	}
	return all.to.Sub(all.from), known
}

// takeSpan returns when a file was written, and forgets it.
func (s *sums) takeSpan(f format.File) (span, bool) {
	id := store.FileID{Inode: f.Inode}
	of, found := s.written[id]
	if !found {
		id.Modified = f.ModTime.UnixNano()
		of, found = s.written[id]
	}
	if !found || f.Inode == 0 {
		return of, false
	}
	delete(s.written, id)
	// The file, or a directory that it is in, may have got its name later.
	for name := range namesOf(f) {
		if at := s.renamed[name]; at.After(of.to) {
			of.to = at
		}
	}
	return of, true
}
