// Package nodump protects this process's memory, where keys and tickets are, from the other
// processes of its user, and keeps it out of core files: PR_SET_DUMPABLE of prctl(2). A
// process with CAP_SYS_PTRACE, such as root's, can still read it.
//
// The kernel then gives the files of /proc/PID to root (proc(5)): a process that is
// not root can open neither environ, fd, maps, mem nor uid_map of the protected one,
// nor follow its cwd, exe and root; all can still open stat, statm, status and cmdline.
// What the protected process executes is not protected.
package nodump

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Protect protects this process until its end. It must have made all the user namespaces
// that it needs: the uid_map of a process that it forks is root's, too, until that execs.
func Protect() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping other processes from this one's memory (PR_SET_DUMPABLE): %w", err)
	}
	return nil
}
