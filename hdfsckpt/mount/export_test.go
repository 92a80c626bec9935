package mount

// Remembered tells how many inodes, open files and files being written are
// remembered.
func (f *FS) Remembered() (nodes, handles, works int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.nodes), len(f.handles), len(f.works)
}
