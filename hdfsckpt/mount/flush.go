package mount

import (
	"fmt"

	"github.com/hanwen/go-fuse/v2/fuse"

	"holdfast/hdfsckpt/mount/caller"
)

// flush is sent for every close(2), of every descriptor and every process, and
// for the descriptors of a process that ends. It publishes what was written at the last
// relevant one, since its answer is the result of that close.
//
// What is to be done is decided before it returns, since a process that was killed is gone
// once any request is answered, and then the handle is released; doing it may wait for the
// store.
func (f *FS) flush(in *fuse.FlushIn) (do func() fuse.Status) {
	nothing := func() fuse.Status { return fuse.OK }
	h := f.handle(in.Fh)
	if h == nil || h.work == nil {
		return nothing
	}
	c := caller.Of(in.Pid)
	u, dirty := h.flushedBy(c.Group)
	if u == nil {
		return nothing // a child closes what it inherited
	}
	w := h.work
	tell := func() fuse.Status { return f.closed(h, w.failed()) }
	if !dirty {
		return tell
	}
	held := f.held(h, c)
	switch {
	case c.Killed && held && !u.wrote:
		return nothing
	case c.Killed:
		return w.abort("its writer was killed")
	case held:
		return tell // a duplicate
	case c.Exiting && c.Status != 0 && !u.stream:
		return w.abort(fmt.Sprintf("its writer exited with %d without closing it", c.Status))
	}
	h.mu.Lock()
	h.dirty = false
	h.mu.Unlock()
	return func() fuse.Status {
		w.mu.Lock()
		err := w.publish()
		w.mu.Unlock()
		return f.closed(h, err)
	}
}

func (f *FS) closed(h *handle, err error) fuse.Status {
	if err != nil {
		return f.fail("close", f.nameOf(h.n), err)
	}
	return fuse.OK
}

func (w *work) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// flushedBy returns what a process has done with the handle; nil if nothing. A process that
// is not visible from here, or any process if the handle has such a user, is taken to have
// written.
func (h *handle) flushedBy(group int) (*user, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.users[group]
	if u == nil && (group == 0 || h.users[0] != nil) {
		u = &user{wrote: true}
	}
	if u != nil {
		copied := *u
		u = &copied
	}
	return u, h.dirty
}

// held reports whether a user of the handle still has it open: the caller by a
// duplicate, as a shell that makes a file its output, or another process that
// opened it or wrote. With several handles of the file, their users cannot be
// distinguished, and none counts.
func (f *FS) held(h *handle, c caller.Caller) bool {
	f.mu.Lock()
	only, name := h.n.writers == 1, h.n.name
	f.mu.Unlock()
	if !only {
		return false
	}
	h.mu.Lock()
	groups := make([]int, 0, len(h.users))
	for g := range h.users {
		if g != c.Group || !c.Exiting {
			groups = append(groups, g)
		}
	}
	h.mu.Unlock()
	for _, g := range groups {
		if caller.HasOpen(g, h.n.id, name) {
			return true
		}
	}
	return false
}
