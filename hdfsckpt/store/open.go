package store

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/sirupsen/logrus"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
)

// Opener opens stores. Those on HDFS share memory for open files, and what is known of
// DataNodes: a process that opens several stores has one Opener. Its methods may be
// called from many goroutines.
type Opener struct {
	conf *conf.Conf
	hdfs hdfs.Options
}

// NewOpener returns an Opener. c may be nil where all stores are local directories.
// The notices of the HDFS client go to logrus's standard logger.
func NewOpener(c *conf.Conf) *Opener {
	return &Opener{conf: c, hdfs: hdfs.Options{Shared: hdfs.NewShared(), Log: logrus.StandardLogger()}}
}

// Open opens the store at a URI and makes its directory if it is missing:
//
//	hdfs://HOST:PORT/PATH, hdfs://NAMESERVICE/PATH
//	hdfs:///PATH           on the default file system (fs.defaultFS)
//	viewfs://TABLE/PATH    what the mount table of the configuration makes of it
//	file:///PATH, /PATH    a local directory
func (o *Opener) Open(ctx context.Context, uri string) (Store, error) {
	return o.open(ctx, uri, true)
}

// OpenExisting is Open without creating the directory: if it is missing, that is an error
// (ENOENT).
func (o *Opener) OpenExisting(ctx context.Context, uri string) (Store, error) {
	return o.open(ctx, uri, false)
}

// Open opens a single store, as an Opener does.
func Open(ctx context.Context, uri string, c *conf.Conf) (Store, error) {
	return NewOpener(c).Open(ctx, uri)
}

// OpenExisting opens a single store, as an Opener does.
func OpenExisting(ctx context.Context, uri string, c *conf.Conf) (Store, error) {
	return NewOpener(c).OpenExisting(ctx, uri)
}

func (o *Opener) open(ctx context.Context, uri string, create bool) (Store, error) {
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
		return o.openHDFS(ctx, u, create)
	case u.Scheme == "viewfs" && o.conf != nil:
		to, err := o.conf.Resolve(uri)
		if err != nil {
			return nil, fmt.Errorf("cannot open the checkpoint store: %w", err)
		}
		return o.open(ctx, to, create)
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
