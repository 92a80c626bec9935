package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/torchfile"
)

// torchSuffixes are what programs call files of torch.save. Those that stand
// for other things too count only if the file begins as one of torch.save's.
var torchSuffixes = map[string]bool{".pt": true, ".pth": true, ".bin": false, ".ckpt": false}

// dcpSuffix is that of the data files of a distributed checkpoint.
const dcpSuffix = ".distcp"

// torchFiles finds the files of torch.save in a directory.
func (l *lister) torchFiles(dir string, entries []store.Info) {
	for _, e := range entries {
		sure, ok := torchSuffixes[path.Ext(e.Name)]
		if !ok || !e.Mode.IsRegular() || strings.HasPrefix(e.Name, hiddenPrefix) || neverAlone[e.Name] {
			continue
		}
		l.group.Go(func() error {
			return l.limited(func() error { return l.torchFile(fileOf(dir, e), sure) })
		})
	}
}

func (l *lister) torchFile(f File, sure bool) error {
	c := Checkpoint{Name: f.Name, Kind: Torch, Step: torchStep(f.Name), Files: []File{f}, Shards: 1, State: Torn}
	r, err := l.s.Open(l.ctx, f.Name)
	switch {
	case vanished(err):
		return nil
	case errors.Is(err, fs.ErrPermission): // somebody else's file keeps nobody from the others
		if sure {
			c.State, c.Why = Unchecked, err.Error()
			l.add(c)
		}
		return nil
	case err != nil:
		return err
	}
	defer r.Close()
	head := make([]byte, torchfile.MagicSize)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	switch head = head[:n]; {
	case torchfile.IsZip(head):
		w := &watched{r: r}
		if _, err = torchfile.OpenArchive(w, r.Size()); w.failed() != nil {
			return w.failed()
		}
		if err != nil {
			c.Why, c.surely = err.Error(), sure
		} else {
			c.State = Complete
		}
	case torchfile.IsLegacy(head):
		c.State, c.Why = Unchecked, "it has the form of before PyTorch 1.6, which has no checksums and no end that can be told from a cut"
	case !sure:
		return nil // something else
	case n == 0:
		c.Why, c.surely = "it is empty", c.Step != NoStep
	default:
		c.State, c.Why = Unchecked, "it does not begin as torch.save's files do"
	}
	l.add(c)
	return nil
}

// isDistributed tells whether a directory is a distributed checkpoint.
func isDistributed(entries []store.Info) bool {
	for _, e := range entries {
		if !e.IsDir() && (e.Name == torchfile.MetadataFile || path.Ext(e.Name) == dcpSuffix) {
			return true
		}
	}
	return false
}

// distributed looks at a distributed checkpoint: it is complete once .metadata
// is there and every file that it names is there, with its length.
func (l *lister) distributed(dir string, entries []store.Info) error {
	c := Checkpoint{Name: dir, Kind: Distributed, Step: stepOf(dir), State: Torn}
	sizes, committed := map[string]int64{}, false
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		c.Files = append(c.Files, fileOf(dir, e))
		sizes[e.Name] = e.Size
		committed = committed || e.Name == torchfile.MetadataFile
		if path.Ext(e.Name) == dcpSuffix {
			c.Shards++
		}
	}
	c.surely = c.Shards > 0
	if !committed {
		c.Why = fmt.Sprintf("it has no file %s: the save did not get that far", torchfile.MetadataFile)
		l.add(c)
		return nil
	}
	c.last = path.Join(dir, torchfile.MetadataFile)
	m, err := readMetadata(l.ctx, l.s, dir)
	switch {
	case vanished(err):
		return nil
	case errors.Is(err, syscall.EFBIG):
		c.State, c.Why = Unchecked, err.Error()
	case err != nil && !torchfile.IsMetadataDamaged(err):
		return err
	case err != nil:
		c.Why = err.Error()
	default:
		if c.Why = lacking(m.Sizes(), sizes); c.Why == "" {
			c.State = Complete
		}
	}
	l.add(c)
	return nil
}

func readMetadata(ctx context.Context, s store.Store, dir string) (*torchfile.Metadata, error) {
	name := path.Join(dir, torchfile.MetadataFile)
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var m *torchfile.Metadata
	err = budgeted(ctx, r.Size(), func() error {
		b, err := store.ReadOpened(r, name)
		if err == nil {
			m, err = torchfile.ParseMetadata(b)
		}
		return err
	})
	return m, err
}

// torchStep finds the step of a file: the directory's, if that is named for
// one, or the number at the end of its own name.
func torchStep(name string) int64 {
	if dir := path.Base(path.Dir(name)); stepDir.MatchString(dir) {
		return numberAtEnd(dir)
	}
	return numberAtEnd(strings.TrimSuffix(path.Base(name), path.Ext(name)))
}
