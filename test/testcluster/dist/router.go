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

// RouterJars are the jars of router-based federation, which stand on the others. They
// are downloaded when they are first asked for, as few clusters have Routers.
func RouterJars(ctx context.Context) ([]string, error) {
	artifacts := []string{"hadoop-hdfs-rbf", "hadoop-federation-balance", "hadoop-distcp"}
	dir, err := cached.Dir(ctx, "hadoop-router-"+Version, func(ctx context.Context, dir string) error {
		mvn, err := exec.LookPath("mvn")
		if err != nil {
			return errors.New("no mvn on the PATH, which brings Hadoop's jars: install Maven (on Debian: apt-get install maven)")
		}
		for _, artifact := range artifacts {
			cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--strict-checksums",
				"org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
				"-Dartifact=org.apache.hadoop:"+artifact+":"+Version, "-DoutputDirectory="+dir)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("downloading Hadoop's Router by Maven: %w\n%s", err, strings.TrimSpace(string(out)))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var jars []string
	for _, artifact := range artifacts {
		jars = append(jars, filepath.Join(dir, artifact+"-"+Version+".jar"))
	}
	return jars, nil
}
