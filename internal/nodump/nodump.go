// Package nodump shuts this process's memory, where keys and tickets are, to the
// other processes of its user, and keeps it out of core files: PR_SET_DUMPABLE of
// prctl(2). A process with CAP_SYS_PTRACE, as root has, reads it still.
//
// The kernel then gives the files of /proc/PID to root (proc(5)): a process that is
// not root can open neither environ, fd, maps, mem nor uid_map of the protected one,
// nor follow its cwd, exe and root; stat, statm, status and cmdline stay open to all.
// What the protected process runs by exec is as any other.
package nodump

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Protect protects this process to its end. It must have made all the user namespaces
// that it needs: the uid_map of a process that it forks is root's, too, until that execs.
func Protect() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping other processes from this one's memory (PR_SET_DUMPABLE): %w", err)
	}
	return nil
}
