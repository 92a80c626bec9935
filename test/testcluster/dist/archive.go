package dist

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/test/testcluster/cached"
)

// A JVM spends half of Hadoop's start on loading classes. It can map them from
// an archive instead (JDK "class data sharing"), which is made from lists of
// the classes that an earlier run loaded, and serves the very JVM and jars
// that it was made with. Without it everything works, slower.

// RecordClasses is the option that makes a JVM write such a list.
func RecordClasses(file string) string { return "-XX:DumpLoadedClassList=" + file }

// MakeArchive makes the archive from lists of classes, unless there is one.
// Another process may be making it; then this waits.
func (d Dist) MakeArchive(ctx context.Context, lists []string) error {
	_, err := d.archive(ctx, lists)
	return err
}

// archive finds the archive, or makes it if there are lists.
func (d Dist) archive(ctx context.Context, lists []string) (string, error) {
	java, err := filepath.EvalSymlinks(d.Java)
	if err != nil {
		return "", fmt.Errorf("finding Java: %w", err)
	}
	info, err := os.Stat(java)
	if err != nil {
		return "", fmt.Errorf("finding Java: %w", err)
	}
	key := sha256.Sum256(fmt.Appendln(nil, java, info.ModTime(), d.jars))
	name := "hadoop-" + Version() + "-classes-" + hex.EncodeToString(key[:6])
	if lists == nil {
		dir, ok := cached.Find(name)
		if !ok {
			return "", nil
		}
		return filepath.Join(dir, "classes.jsa"), nil
	}
	dir, err := cached.Dir(ctx, name, func(ctx context.Context, dir string) error {
		return d.dump(ctx, dir, lists)
	})
	return filepath.Join(dir, "classes.jsa"), err
}

func (d Dist) dump(ctx context.Context, dir string, lists []string) error {
	var all bytes.Buffer
	seen := map[string]bool{}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			return fmt.Errorf("reading a list of classes: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if !seen[line] {
				seen[line] = true
				all.WriteString(line)
			}
		}
	}
	list := filepath.Join(dir, "classes.list")
	if err := os.WriteFile(list, all.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the list of classes: %w", err)
	}
	args := append(d.common(), "-Xmx512m", "-Xshare:dump", "-XX:SharedClassListFile="+list,
		"-XX:SharedArchiveFile="+filepath.Join(dir, "classes.jsa"), "-cp", strings.Join(d.jars, ":"))
	if out, err := exec.CommandContext(ctx, d.Java, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("making an archive of Hadoop's classes: %w\n%s", err, out)
	}
	return nil
}
