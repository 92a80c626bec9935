package dist

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
)

//go:embed mapreduce.xml
var mapReducePOM []byte

// MapReduceJars are the jars of MapReduce, which stand on the others. They are downloaded
// when they are first asked for.
func MapReduceJars(ctx context.Context) ([]string, error) {
	dir, err := fetch(ctx, "mapreduce", mapReducePOM, "-DincludeGroupIds=org.apache.hadoop")
	if err != nil {
		return nil, err
	}
	jars, err := filepath.Glob(filepath.Join(lib(dir), "hadoop-mapreduce-*.jar"))
	if err == nil && len(jars) == 0 {
		err = fmt.Errorf("no jars of MapReduce are in %s: remove it and try again", dir)
	}
	return jars, err
}
