package stage

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/container/sandbox"
)

// plainName is a user's name that can be a part of a file's.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)

// workPath returns where tasks see their working directory, whatever container they are in.
// Programs save absolute paths in checkpoints, as Lightning does, and send them to their peers,
// which then save there as well: what a path means must not depend on the container. env is the
// container's environment; YARN gives USER in it.
func workPath(env []string) string {
	user := strconv.Itoa(os.Geteuid())
	for _, v := range env {
		if name, ok := strings.CutPrefix(v, "USER="); ok && plainName.MatchString(name) {
			user = name
		}
	}
	return "/tmp/holdfast-" + user
}

// bindWork has tasks see their working directory at the same path as in other containers.
func (s *Stage) bindWork(box *sandbox.Box) (err error) {
	if err := os.MkdirAll(s.work, 0o755); err != nil {
		return fmt.Errorf("making the working directory: %w", err)
	}
	path := workPath(s.options.Env)
	if s.work == path || strings.HasPrefix(s.work, path+"/") {
		return fmt.Errorf("the container's directory %s is in it", s.options.WorkDir)
	}
	point, err := takeMountPoint(context.Background(), path, "the working directory")
	if err != nil {
		return err
	}
	var at unix.Stat_t
	if err = unix.Lstat(path, &at); err == nil && (at.Mode&unix.S_IFMT != unix.S_IFDIR || at.Uid != uint32(os.Geteuid())) {
		err = fmt.Errorf("%s is a link, or another user's: have it removed", path)
	}
	if err == nil {
		err = box.Bind(s.work, path)
	}
	if err != nil {
		point.leave()
		return err
	}
	s.seen, s.point = path, point
	return nil
}
