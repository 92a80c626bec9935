package hdfsckpt

import (
	"context"
	"fmt"
	"net/url"
	"syscall"

	"holdfast/internal/hadoop/conf"
)

func openHDFS(_ context.Context, u *url.URL, _ *conf.Conf, _ bool) (Store, error) {
	return nil, fmt.Errorf("stores on HDFS are not there yet: %s: %w", u, syscall.ENOSYS)
}
