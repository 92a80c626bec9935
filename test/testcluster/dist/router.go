package dist

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/test/testcluster/cached"
)

// RouterJar is the jar of router-based federation, which stands on the others. It is
// downloaded when it is first asked for, as few clusters have Routers.
func RouterJar(ctx context.Context) (string, error) {
	const artifact = "hadoop-hdfs-rbf"
	dir, err := cached.Dir(ctx, artifact+"-"+Version, func(ctx context.Context, dir string) error {
		mvn, err := exec.LookPath("mvn")
		if err != nil {
			return errors.New("no mvn on the PATH, which brings Hadoop's jars: install Maven (on Debian: apt-get install maven)")
		}
		cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--strict-checksums",
			"org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
			"-Dartifact=org.apache.hadoop:"+artifact+":"+Version, "-DoutputDirectory="+dir)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("downloading Hadoop's Router by Maven: %w\n%s", err, strings.TrimSpace(string(out)))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, artifact+"-"+Version+".jar"), nil
}
