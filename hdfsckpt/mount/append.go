package mount

import (
	"strings"
	"syscall"
	"time"
)

// Event files, and files that are opened with O_APPEND and not to be emptied, are written
// in place: the visible file grows, and readers see what was flushed.

func eventFile(name string) bool { return strings.Contains(name, "tfevents") }

// openAppend opens the visible file for appending.
func (w *work) openAppend() error {
	ctx, leave, err := w.f.gate.Enter()
	if err != nil {
		return err
	}
	defer leave()
	name, ok := w.f.path(w.n)
	if !ok {
		return syscall.ESTALE
	}
	info, err := w.f.store.Stat(ctx, name)
	if err != nil {
		return err
	}
	app, err := w.f.store.Append(ctx, name, info.Mode.Perm())
	if err != nil {
		return err
	}
	w.app, w.at, w.replaces = app, inPlace, true
	w.touched(info.Size)
	return nil
}

// tellEvents tells Options.OnEvents what was appended, if the file is an event file.
func (w *work) tellEvents(at int64, data []byte) {
	if w.f.o.OnEvents == nil || !eventFile(w.base) {
		return
	}
	if name, ok := w.f.path(w.n); ok {
		w.f.o.OnEvents(name, at, data)
	}
}

// flushAppend makes what was appended visible to readers; with sync it is on disk then, too.
func (w *work) flushAppend(sync bool) error {
	if w.app == nil || !w.unseen && !(sync && w.unsynced) {
		return nil
	}
	_, leave, err := w.f.gate.Enter()
	if err != nil {
		return w.fail("flushing", err)
	}
	defer leave()
	flush := w.app.Flush
	if sync {
		flush = w.app.Sync
	}
	if err := flush(); err != nil {
		return w.fail("flushing", err)
	}
	w.unseen, w.unsynced = false, w.unsynced && !sync
	w.f.mu.Lock()
	w.n.version++ // readers open it anew, longer
	w.f.mu.Unlock()
	return nil
}

// sync implements fsync(2). What was added to a visible file is on disk then. One that is hidden
// until close will be on disk when it gets its name; close reports errors.
func (w *work) sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.synced = true; w.stream != nil {
		w.stream.SyncAtClose()
	}
	return w.flushAppend(true)
}

// flushLoop periodically makes what was appended to event files visible to readers, for all
// files concurrently, so that one that hangs does not delay the others.
func (f *FS) flushLoop() {
	tick := time.NewTicker(f.o.FlushEvery / 2)
	defer tick.Stop()
	for {
		select {
		case <-f.served:
			return
		case <-tick.C:
		}
		for _, w := range f.worksNow() {
			if !w.mu.TryLock() { // busy: it is being written or flushed
				continue
			}
			if w.app == nil || !w.unseen || w.err != nil {
				w.mu.Unlock()
				continue
			}
			go func() {
				defer w.mu.Unlock()
				w.flushAppend(false) // the next write, fsync or close returns the error
			}()
		}
	}
}
