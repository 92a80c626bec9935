package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast/client"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
)

// OpenDirectory opens a directory by its URI or local path. It creates nothing, and a directory that
// does not exist is a usage error.
func OpenDirectory(ctx context.Context, uri string) (store.Store, error) {
	if !strings.Contains(uri, "://") {
		abs, err := filepath.Abs(uri)
		if err != nil {
			return nil, err
		}
		s, err := notExistIsUsage(store.OpenExisting(ctx, abs, nil))
		if err != nil && strings.HasPrefix(uri, "/") && os.Getenv(conf.EnvDir) != "" {
			err = client.Usagef("%w; a directory on HDFS is named by hdfs://%s", err, uri)
		}
		return s, err
	}
	var c *conf.Conf
	if strings.HasPrefix(uri, "hdfs:") || strings.HasPrefix(uri, "viewfs:") {
		var err error
		// An address in the URI is enough where there is no configuration.
		if c, err = conf.Load(""); err != nil {
			if os.Getenv(conf.EnvDir) != "" || strings.HasPrefix(uri, "hdfs:///") || strings.HasPrefix(uri, "viewfs:") {
				return nil, client.Usagef("%w", err)
			}
			c = conf.New(nil)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout*3/2)
	defer cancel()
	s, err := store.OpenExisting(ctx, uri, c)
	if err != nil && rpc.Unreachable(err) {
		return nil, client.Unreachablef("HDFS does not answer: %w; check the address in %s", err, uri)
	}
	return notExistIsUsage(s, err)
}

// notExistIsUsage turns a directory that does not exist into a usage error.
func notExistIsUsage(s store.Store, err error) (store.Store, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, client.Usagef("%w", err)
	}
	return s, err
}
