package mount

import (
	"fmt"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// flush is sent for every close(2), of every descriptor and every process, and
// for the descriptors of a process that ends. It publishes what was written at
// the last of them that matters, since its answer is what that close returns.
func (f *FS) flush(in *fuse.FlushIn) fuse.Status {
	h := f.handle(in.Fh)
	if h == nil || h.work == nil {
		return fuse.OK
	}
	c := callerOf(in.Pid)
	u, dirty := h.flushedBy(c.group)
	if u == nil {
		return fuse.OK // a child lets go of what it inherited
	}
	w := h.work
	if !dirty {
		return f.closed(h, w.failed())
	}
	held := f.held(h, c)
	switch {
	case c.killed && held && !u.wrote:
		return fuse.OK
	case c.killed:
		w.abort("its writer was killed")
		return fuse.OK
	case held:
		return f.closed(h, w.failed()) // a duplicate
	case c.exiting && c.status != 0 && !u.stream:
		w.abort(fmt.Sprintf("its writer exited with %d without closing it", c.status))
		return fuse.OK
	}
	h.mu.Lock()
	h.dirty = false
	h.mu.Unlock()
	w.mu.Lock()
	err := w.publish()
	w.mu.Unlock()
	return f.closed(h, err)
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

// flushedBy finds what a process has done with the handle; nil if nothing. A
// process that we cannot see, or a handle with such a user, counts as one that
// wrote: nothing else can be told.
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

// held tells whether a user of the handle still has it open: the caller by a
// duplicate, as a shell that makes a file its output, or another process that
// opened it or wrote. With several handles of the file they cannot be told
// apart, and none counts.
func (f *FS) held(h *handle, c caller) bool {
	f.mu.Lock()
	only, name := h.n.writers == 1, h.n.name
	f.mu.Unlock()
	if !only {
		return false
	}
	h.mu.Lock()
	groups := make([]int, 0, len(h.users))
	for g := range h.users {
		if g != c.group || !c.exiting {
			groups = append(groups, g)
		}
	}
	h.mu.Unlock()
	for _, g := range groups {
		if holdsOpen(g, h.n.id, name) {
			return true
		}
	}
	return false
}
