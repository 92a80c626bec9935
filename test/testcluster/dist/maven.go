package dist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/test/testcluster/cached"
)

// fetch gives the cached directory that has in lib the jars that a pom.xml lists for
// this version of Hadoop, and downloads them the first time; name is what they are,
// and options are more of Maven's.
func fetch(ctx context.Context, name string, pom []byte, options ...string) (dir string, err error) {
	listed := sha256.Sum256(pom)
	return cached.Dir(ctx, "hadoop-"+Version()+"-"+name+"-"+hex.EncodeToString(listed[:4]), func(ctx context.Context, dir string) error {
		mvn, err := exec.LookPath("mvn")
		if err != nil {
			return errors.New("no mvn on the PATH, which brings Hadoop's jars: install Maven (on Debian: apt-get install maven)")
		}
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), pom, 0o644); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, mvn, append([]string{
			"--batch-mode", "--quiet", "--strict-checksums", "-Dhadoop.version=" + Version(),
			"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + lib(dir),
		}, options...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("downloading the %s of Hadoop %s by Maven: %w\n%s", name, Version(), err, strings.TrimSpace(string(out)))
		}
		return nil
	})
}

func lib(dir string) string { return filepath.Join(dir, "lib") }
