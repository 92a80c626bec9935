package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast/container/failure"
	"holdfast/container/sandbox"
)

// bindResolver makes the task's resolver read its hosts file first. Two things
// can come before it, nsswitch.conf(5): another source (systemd's "resolve",
// which ends the search), and the name service cache daemon, which reads the
// host's file instead of the task's.
func bindResolver(dir string, box *sandbox.Box) error {
	const order = "/etc/nsswitch.conf"
	if b, err := os.ReadFile(order); err == nil {
		if text := filesFirst(string(b)); text != string(b) {
			file := filepath.Join(dir, "nsswitch.conf")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return failure.Node(fmt.Errorf("writing the task's nsswitch.conf: %w", err))
			}
			if err := box.Bind(file, order); err != nil {
				return failure.Node(fmt.Errorf("giving the task its own nsswitch.conf: %w", err))
			}
		}
	}
	for _, socket := range []string{"/run/nscd/socket", "/var/run/nscd/socket"} {
		if _, err := os.Stat(socket); err == nil {
			if err := box.Bind(os.DevNull, socket); err != nil {
				return failure.Node(fmt.Errorf("hiding the name service cache from the task: %w", err))
			}
			break // the second is the first, by a link
		}
	}
	return nil
}

// filesFirst puts "files" first in the hosts line.
func filesFirst(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "hosts:")
		if !ok {
			continue
		}
		f := strings.Fields(rest)
		if len(f) > 0 && f[0] == "files" {
			continue
		}
		lines[i] = "hosts: files " + strings.Join(f, " ") + "\n"
	}
	return strings.Join(lines, "")
}
