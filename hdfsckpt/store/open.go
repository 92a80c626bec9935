package store

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"holdfast/internal/hadoop/conf"
)

// Open opens the store at a URI and makes its directory if it is missing:
//
//	hdfs://HOST:PORT/PATH, hdfs://NAMESERVICE/PATH
//	hdfs:///PATH           on the default file system (fs.defaultFS)
//	file:///PATH, /PATH    a local directory
//
// c may be nil for a local directory.
func Open(ctx context.Context, uri string, c *conf.Conf) (Store, error) {
	return open(ctx, uri, c, true)
}

// OpenExisting is Open for those who only look: a directory that is missing is
// an error (ENOENT).
func OpenExisting(ctx context.Context, uri string, c *conf.Conf) (Store, error) {
	return open(ctx, uri, c, false)
}

func open(ctx context.Context, uri string, c *conf.Conf, create bool) (Store, error) {
	if filepath.IsAbs(uri) {
		return openLocal(filepath.Clean(uri), create)
	}
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("cannot open the checkpoint store %q: %w", uri, err)
	}
	switch {
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && strings.HasPrefix(u.Path, "/"):
		return openLocal(path.Clean(u.Path), create)
	case u.Scheme == "hdfs" && strings.HasPrefix(u.Path, "/") && u.RawQuery == "" && u.Fragment == "":
		return openHDFS(ctx, u, c, create)
	}
	return nil, fmt.Errorf("cannot open the checkpoint store %q: write hdfs://HOST:PORT/PATH, hdfs:///PATH (on the cluster's default file system) or the absolute path of a local directory", uri)
}

func openLocal(dir string, create bool) (Store, error) {
	if create {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("cannot make the directory of the checkpoint store %s: %w", dir, err)
		}
	}
	return NewLocal(dir)
}
