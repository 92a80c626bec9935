package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lookPace is how often an agent checks that its container's directory exists.
const lookPace = 250 * time.Millisecond

// home is the container's directory. A NodeManager that is restarted without its
// state removes those of all containers, also of what still runs there
// (ResourceLocalizationService.cleanUpLocalDirs), and with it the mount points.
type home struct {
	path  string
	found fs.FileInfo
}

func newHome(path string) (home, error) {
	found, err := os.Stat(path)
	if err != nil {
		return home{}, fmt.Errorf("looking at the container's directory: %w", err)
	}
	return home{path, found}, nil
}

// gone reports whether the directory was removed or replaced. It returns false if that is
// not known.
func (h home) gone() bool {
	now, err := os.Stat(h.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(h.found, now)
}
