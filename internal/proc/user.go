package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// accountTimeout bounds the search for a user's name in directories that other machines have.
const accountTimeout = 10 * time.Second

// UserName returns the name of the user of this process: by its uid, from /etc/passwd and, where
// that has none, from the system's other directories, such as LDAP (nsswitch.conf). The
// environment, which os/user believes of such a user, does not count: it is whatever the one who
// started the process wanted it to be.
var UserName = sync.OnceValues(func() (string, error) {
	uid := strconv.Itoa(os.Getuid())
	accounts, err := os.ReadFile("/etc/passwd")
	if err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("find the name of the user %s: %w", uid, err)
	}
	for line := range strings.Lines(string(accounts)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == uid && f[0] != "" {
			return f[0], nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), accountTimeout)
	defer cancel()
	name, err := exec.CommandContext(ctx, "id", "-un").Output()
	if err != nil {
		return "", fmt.Errorf("the user %s of this process has no name on this machine (id -un: %w)", uid, err)
	}
	return strings.TrimSpace(string(name)), nil
})
