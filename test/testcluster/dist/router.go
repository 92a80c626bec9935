package dist

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
)

//go:embed router.xml
var routerPOM []byte

// RouterJars are the jars of router-based federation, which stand on the others. They
// are downloaded when they are first asked for, as few clusters have Routers.
func RouterJars(ctx context.Context) ([]string, error) {
	artifacts := []string{"hadoop-hdfs-rbf", "hadoop-federation-balance", "hadoop-distcp"}
	dir, err := fetch(ctx, "router", routerPOM, "-DincludeArtifactIds="+strings.Join(artifacts, ","))
	if err != nil {
		return nil, err
	}
	jars, err := filepath.Glob(filepath.Join(lib(dir), "*.jar"))
	if err == nil && len(jars) != len(artifacts) {
		err = fmt.Errorf("of %v, %v are there: remove %s and try again", artifacts, jars, dir)
	}
	return jars, err
}
