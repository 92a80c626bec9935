package caller

import (
	"strings"
	"syscall"

	"holdfast/internal/proc"
)

// The names of what a process has open are the kernel's: reading them does not ask
// this file system, as a stat would. A process that is exiting has nothing open any
// more (kernel/exit.c, exit_files), and a descriptor is out of the table before its
// FLUSH is sent (fs/open.c, close).

// HasOpen reports whether a process has a descriptor through which it can write
// to a file of this file system.
func HasOpen(group int, inode uint64, name string) bool {
	if group == 0 {
		return false
	}
	open, _ := proc.Descriptors(group)
	for _, fd := range open {
		if isFile(group, fd, inode, name) {
			return true
		}
	}
	return false
}

// IsOutput reports whether a process has the file as its output, as in
// "command > file": then the end of the command is what closes it.
func IsOutput(group int, inode uint64, name string) bool {
	return isFile(group, 1, inode, name) || isFile(group, 2, inode, name)
}

func isFile(group, fd int, inode uint64, name string) bool {
	target, err := proc.DescriptorPath(group, fd)
	if err != nil || !strings.HasSuffix(strings.TrimSuffix(target, " (deleted)"), "/"+name) {
		return false
	}
	info, err := proc.ReadDescriptor(group, fd)
	return err == nil && writesTo(info, inode)
}

// writesTo reports whether a descriptor is open for writing, and to an inode.
// Kernels before 5.15 do not tell the inode; then the name must do.
func writesTo(descriptor proc.Fields, inode uint64) bool {
	flags, ok := descriptor.Number("flags", 8)
	if !ok || flags&syscall.O_ACCMODE == syscall.O_RDONLY {
		return false
	}
	n, ok := descriptor.Number("ino", 10)
	return !ok || n == inode
}
