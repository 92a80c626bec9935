package mount

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"holdfast/hdfsckpt/mount/caller"
)

// The kernel lets a process that was killed end only when the request it waits
// for is answered (fs/fuse/dev.c, request_wait_answer). So each request that may
// have to wait for the store is carried out in a goroutine of its own, with
// copies of what belongs to go-fuse, and is answered without a result when its
// process is killed or the mount ends. The operation in the store
// continues, and may still take effect.

// await carries something out and gives up on it when the process that waits is
// killed, or the mount ends. Other signals do not end it: a program does not
// expect EINTR of a file. undo is called with the result of what was given up.
func await[T any](f *FS, cancel <-chan struct{}, pid uint32, do func() (T, fuse.Status), undo func(T)) (T, fuse.Status) {
	type result struct {
		v  T
		st fuse.Status
	}
	done := make(chan result, 1)
	go func() {
		v, st := do()
		done <- result{v, st}
	}()
	giveUp := func(errno syscall.Errno) (T, fuse.Status) {
		go func() {
			if r := <-done; r.st == fuse.OK && undo != nil {
				undo(r.v)
			}
		}()
		var none T
		return none, fuse.Status(errno)
	}
	// The kernel reports a signal once, and the kill may come later; under load it may
	// not report it at all.
	const first, look = time.Second, 100 * time.Millisecond
	again := time.NewTimer(first)
	defer again.Stop()
	for {
		select {
		case r := <-done:
			return r.v, r.st
		case <-f.readCtx.Done():
			return giveUp(syscall.EIO)
		case <-cancel:
			cancel = nil
		case <-again.C:
		}
		if caller.Of(pid).Killed {
			return giveUp(syscall.EINTR)
		}
		again.Reset(look)
	}
}

// fill is await for a request whose answer go-fuse provides.
func fill[T any](f *FS, cancel <-chan struct{}, pid uint32, out *T, do func(*T) fuse.Status, undo func(*T)) fuse.Status {
	zero := *out
	mine, st := await(f, cancel, pid, func() (*T, fuse.Status) {
		mine := zero
		return &mine, do(&mine)
	}, undo)
	if mine != nil {
		*out = *mine
	}
	return st
}

// status is await for a request whose answer is only a status.
func status(f *FS, cancel <-chan struct{}, pid uint32, do func() fuse.Status) fuse.Status {
	_, st := await(f, cancel, pid, func() (struct{}, fuse.Status) { return struct{}{}, do() }, nil)
	return st
}

// The kernel does not know of what no reply has given it: what a request that was
// given up has found or opened is released.

func (f *FS) forgetEntry(out *fuse.EntryOut) { f.Forget(out.NodeId, 1) }

func (f *FS) undoOpen(out *fuse.OpenOut) {
	if h := f.handle(out.Fh); h != nil && h.work != nil {
		h.work.abort("its writer was killed")()
	}
	f.Release(nil, &fuse.ReleaseIn{Fh: out.Fh})
}

func (f *FS) undoCreate(out *fuse.CreateOut) {
	f.undoOpen(&out.OpenOut)
	f.forgetEntry(&out.EntryOut)
}

// The requests of fuse.RawFileSystem. Each is implemented by the method of the same name
// in lower case.

func (f *FS) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	i := *in
	return fill(f, cancel, i.Pid, out, func(out *fuse.EntryOut) fuse.Status { return f.lookup(&i, name, out) }, f.forgetEntry)
}

func (f *FS) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	i := *in
	return fill(f, cancel, i.Pid, out, func(out *fuse.AttrOut) fuse.Status { return f.getAttr(&i, out) }, nil)
}

func (f *FS) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	i := *in
	if fh, ok := i.GetFh(); ok && i.Valid&fuse.FATTR_SIZE != 0 {
		f.willTruncate(fh)
	}
	return fill(f, cancel, i.Pid, out, func(out *fuse.AttrOut) fuse.Status { return f.setAttr(&i, out) }, nil)
}

func (f *FS) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	i := *in
	return status(f, cancel, i.Pid, func() fuse.Status { return f.access(&i) })
}

func (f *FS) StatFs(cancel <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	return fill(f, cancel, in.Pid, out, f.statFs, nil)
}

func (f *FS) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	i := *in
	return fill(f, cancel, i.Pid, out, func(out *fuse.EntryOut) fuse.Status { return f.mkdir(&i, name, out) }, f.forgetEntry)
}

func (f *FS) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	i := *in
	return fill(f, cancel, i.Pid, out, func(out *fuse.EntryOut) fuse.Status { return f.mknod(&i, name, out) }, f.forgetEntry)
}

func (f *FS) Rmdir(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	i := *in
	return status(f, cancel, i.Pid, func() fuse.Status { return f.rmdir(&i, name) })
}

func (f *FS) Unlink(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	i := *in
	return status(f, cancel, i.Pid, func() fuse.Status { return f.unlink(&i, name) })
}

func (f *FS) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	i := *in
	return status(f, cancel, i.Pid, func() fuse.Status { return f.rename(&i, oldName, newName) })
}

func (f *FS) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	i := *in
	return fill(f, cancel, i.Pid, out, func(out *fuse.CreateOut) fuse.Status { return f.create(&i, name, out) }, f.undoCreate)
}

func (f *FS) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	i := *in
	return fill(f, cancel, i.Pid, out, func(out *fuse.OpenOut) fuse.Status { return f.open(&i, out) }, f.undoOpen)
}

func (f *FS) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	i := *in
	entries, st := await(f, cancel, i.Pid, func() ([]fuse.DirEntry, fuse.Status) { return f.entries(&i) }, nil)
	for n := i.Offset; n < uint64(len(entries)); n++ {
		e := entries[n]
		e.Off = n + 1
		if !out.AddDirEntry(e) {
			break
		}
	}
	return st
}

func (f *FS) Read(cancel <-chan struct{}, in *fuse.ReadIn, _ []byte) (fuse.ReadResult, fuse.Status) {
	i := *in
	r, st := await(f, cancel, i.Pid, func() (*pooled, fuse.Status) { return f.read(&i) }, (*pooled).Done)
	if r == nil {
		return nil, st
	}
	return r, st
}

func (f *FS) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	h := f.handle(in.Fh)
	if h == nil || h.work == nil {
		return 0, fuse.EBADF
	}
	f.willWrite(h, in)
	off, atEnd := int64(in.Offset), h.atEnd && in.WriteFlags&fuse.WRITE_CACHE == 0 // pages of a mapping have their place
	if wait := h.work.take(data, off, atEnd); wait != nil {
		return await(f, cancel, in.Pid, func() (uint32, fuse.Status) { return f.wrote(h, len(data), wait()) }, nil)
	}
	b := f.pool.Get().(*[]byte)
	n := copy(*b, data)
	return await(f, cancel, in.Pid, func() (uint32, fuse.Status) {
		defer f.pool.Put(b)
		return f.wrote(h, n, h.work.write((*b)[:n], off, atEnd))
	}, nil)
}

func (f *FS) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return status(f, cancel, in.Pid, f.flush(in))
}

func (f *FS) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	i := *in
	return status(f, cancel, i.Pid, func() fuse.Status { return f.fsync(&i) })
}
