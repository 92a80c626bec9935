package mount

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// What a process has open can be seen in /proc/PID/fd and fdinfo (proc(5)). The
// links are made from names that the kernel has; reading them does not ask us,
// as a stat would. A process that is exiting has none any more (kernel/exit.c,
// exit_files), and a descriptor is out of the table before its FLUSH is sent
// (fs/open.c, close).

// holdsOpen tells whether a process has a descriptor through which it can write
// to a file of ours.
func holdsOpen(group int, inode uint64, name string) bool {
	if group == 0 {
		return false
	}
	dir := "/proc/" + strconv.Itoa(group)
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if isFile(dir, fd.Name(), inode, name) {
			return true
		}
	}
	return false
}

// standardStream tells whether a process has the file as its output, as in
// "command > file": then the end of the command is what closes it.
func standardStream(group int, inode uint64, name string) bool {
	dir := "/proc/" + strconv.Itoa(group)
	for _, fd := range []string{"1", "2"} {
		if isFile(dir, fd, inode, name) {
			return true
		}
	}
	return false
}

func isFile(dir, fd string, inode uint64, name string) bool {
	target, err := os.Readlink(dir + "/fd/" + fd)
	if err != nil || !strings.HasSuffix(strings.TrimSuffix(target, " (deleted)"), "/"+name) {
		return false
	}
	info, err := os.ReadFile(dir + "/fdinfo/" + fd)
	return err == nil && writesTo(info, inode)
}

// writesTo reads an fdinfo: is it open for writing, and the inode? Kernels
// before 5.15 do not tell the inode; then the name must do.
func writesTo(info []byte, inode uint64) bool {
	flags, err := strconv.ParseUint(string(field(info, "flags:")), 8, 64)
	if err != nil || !writable(uint32(flags)) {
		return false
	}
	ino := field(info, "ino:")
	return len(bytes.TrimSpace(ino)) == 0 || string(ino) == strconv.FormatUint(inode, 10)
}
