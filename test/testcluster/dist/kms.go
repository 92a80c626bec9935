package dist

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/test/testcluster/cached"
)

//go:embed kms.xml
var kmsPOM []byte

// KMS is what Hadoop's key server needs beside the other jars, as a classpath;
// downloaded the first time.
func KMS(ctx context.Context) (string, error) {
	dir, err := cached.Dir(ctx, "hadoop-"+Version+"-kms", func(ctx context.Context, dir string) error {
		mvn, err := findMaven()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), kmsPOM, 0o644); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--strict-checksums", "dependency:copy-dependencies",
			"-DincludeScope=runtime", "-DincludeArtifactIds=hadoop-kms,jul-to-slf4j", "-DoutputDirectory="+dir)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("downloading Hadoop's KMS %s by Maven: %w\n%s", Version, err, strings.TrimSpace(string(out)))
		}
		return nil
	})
	return filepath.Join(dir, "*"), err
}
