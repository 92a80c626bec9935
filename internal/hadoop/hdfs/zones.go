package hdfs

import (
	"context"

	"holdfast/internal/hadoop/hdfs/zone"
)

// KeyProvider returns the URI of the key servers of the file system's encryption zones;
// "" where there are none.
func (c *Client) KeyProvider(ctx context.Context) (string, error) { return c.zones.Provider(ctx) }

// Zone returns the encryption zone that a path is in, or would be in if it were made;
// nil if none.
func (c *Client) Zone(ctx context.Context, name string) (*zone.Zone, error) {
	z, err := c.zones.Of(ctx, name)
	return z, Wrap("find the encryption zone of", name, err)
}
