package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// racePrefix begins the names of the race detector's reports, in scratch.
const racePrefix = "race"

// withRaces reports whether these tests were built with -race. Then yarn-submit
// is, too: as client, application master and agent.
func withRaces() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// racesIn gathers what the race detector has reported: in files of its own, and in
// the logs of processes that do not know where those are, because they have no
// environment.
func racesIn(dir string) string {
	var found strings.Builder
	_ = filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || file == submit || file == trainer {
			return nil // what cannot be looked into is no log of ours
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil
		}
		if at := bytes.Index(text, []byte("WARNING: DATA RACE")); at >= 0 {
			found.WriteString(file + ":\n")
			found.Write(text[at:])
		}
		return nil
	})
	return found.String()
}
