package mount

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"syscall"

	"holdfast/hdfsckpt/store"

	"golang.org/x/sys/unix"
)

// newSpool opens a local file without a name, so that nothing is left of it however this
// process ends.
func (f *FS) newSpool() (*os.File, error) {
	fd, err := unix.Open(f.o.SpoolDir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), f.o.SpoolDir+"/(spool)"), nil
	}
	// Not every file system has O_TMPFILE.
	file, err := os.CreateTemp(f.o.SpoolDir, "holdfast-spool-")
	if err != nil {
		return nil, fmt.Errorf("opening a spool file for a file that is not written sequentially: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, fmt.Errorf("opening a spool file: %w", err)
	}
	return file, nil
}

func (w *work) spoolError(err error) error {
	return fmt.Errorf("the local spool in %s: %w", w.f.o.SpoolDir, err)
}

// toSpool copies the whole content to a local file, where it can be written and read at
// any offset. w.mu is held.
func (w *work) toSpool() error {
	if w.at == inSpool {
		return nil
	}
	spool, err := w.f.newSpool()
	if err != nil {
		return err
	}
	ctx, leave, err := w.f.gate.Enter()
	if err != nil {
		spool.Close()
		return err
	}
	defer leave()
	switch w.at {
	case inStream:
		err = w.readBack(spool)
	case inPlace:
		if err = w.app.Close(); err == nil {
			w.app, w.unseen, w.unsynced = nil, false, false
			err = w.download(spool)
		}
	default:
		err = w.download(spool)
	}
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		spool.Close()
		return err
	}
	w.spool, w.at = spool, inSpool
	return nil
}

// readBack copies what has been streamed to a local file: it completes the hidden file,
// reads it, and removes it.
func (w *work) readBack(to *os.File) error {
	s := w.stream
	w.stream = nil
	if w.size.Load() == 0 {
		return s.Abort()
	}
	if err := s.Close(); err != nil {
		s.Abort()
		return err
	}
	_, err := w.f.copyOut(w.tmp, to)
	if rerr := w.f.store.Remove(w.f.gate.Context(), w.tmp); rerr != nil && !errors.Is(rerr, syscall.ENOENT) {
		w.f.fail("removing the temporary file", w.tmp, rerr)
	}
	return err
}

// download copies the published content.
func (w *work) download(to *os.File) error {
	w.f.mu.Lock()
	name, ok := w.f.contentLocked(w.n)
	w.f.mu.Unlock()
	if !ok {
		return fmt.Errorf("another file has its name now: %w", syscall.ESTALE)
	}
	n, err := w.f.copyOut(name, to)
	w.size.Store(n)
	return err
}

func (f *FS) copyOut(name string, to *os.File) (int64, error) {
	r, err := f.store.Open(f.gate.Context(), name)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return f.copy(to, io.NewSectionReader(r, 0, r.Size()))
}

// copy is io.Copy with a buffer of the pool.
func (f *FS) copy(to io.Writer, from io.Reader) (int64, error) {
	b := f.pool.Get().(*[]byte)
	defer f.pool.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, *b)
}

// upload writes the spool to a hidden file of the store.
func (w *work) upload(to store.Writer) error {
	w.sum, w.summed = 0, false
	_, err := w.f.copy(to, io.TeeReader(io.NewSectionReader(w.spool, 0, w.size.Load()), summer{&w.sum}))
	if err != nil {
		to.Abort()
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	w.summed = true
	return nil
}

// moveToSpool moves what is being written below a directory to the spool, before the
// directory is moved or removed: the store's writers do not follow it. Where that fails,
// the file's writer gets an error.
func (f *FS) moveToSpool(d *node) {
	f.mu.Lock()
	var works []*work
	for w := range f.works {
		if below(w.n, d) {
			works = append(works, w)
		}
	}
	f.mu.Unlock()
	for _, w := range works {
		w.mu.Lock()
		if w.at == inStream && w.err == nil {
			if err := w.toSpool(); err != nil {
				w.fail("spooling", err)
			}
		}
		w.mu.Unlock()
	}
}

// below reports whether a node is a directory or in it. FS.mu is held.
func below(n, d *node) bool {
	for ; n != nil; n = n.parent {
		if n == d {
			return true
		}
	}
	return false
}

// summer computes the checksum of what is written to it.
type summer struct{ sum *uint32 }

func (s summer) Write(b []byte) (int, error) {
	*s.sum = crc32.Update(*s.sum, castagnoli, b)
	return len(b), nil
}
