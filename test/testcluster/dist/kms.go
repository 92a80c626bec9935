package dist

import (
	"context"
	_ "embed"
	"path/filepath"
)

//go:embed kms.xml
var kmsPOM []byte

// KMS is what Hadoop's key server needs beside the other jars, as a classpath;
// downloaded the first time.
func KMS(ctx context.Context) (string, error) {
	dir, err := fetch(ctx, "kms", kmsPOM, "-DincludeArtifactIds=hadoop-kms,jul-to-slf4j")
	return filepath.Join(lib(dir), "*"), err
}
