// Package defaults has what the NameNode says of its whole file system (ClientProtocol:
// getServerDefaults): whether data is encrypted on its way, and where the key servers are.
package defaults

import (
	"context"
	"sync"
	"time"

	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

const (
	// valid is how long an answer is used before the NameNode is asked again
	// (dfs.client.server-defaults.validity.period.ms).
	valid = time.Hour
	// againLimit bounds the wait for a new answer by those who have an old one: they are on
	// their way to a DataNode, and have 10 seconds for all of it.
	againLimit = 2 * time.Second
	// againAfter is when the NameNode is asked once more that did not answer.
	againAfter = time.Minute
)

// Defaults are those of one file system. Its methods may be called from many goroutines.
type Defaults struct {
	nn rpc.Caller

	mu    sync.Mutex
	known *wire.FsServerDefaultsProto
	until time.Time // when the NameNode is to be asked again
}

// New returns the defaults of the file system whose ClientProtocol nn calls.
func New(nn rpc.Caller) *Defaults { return &Defaults{nn: nn} }

// Get returns what the NameNode said, within the last hour if it answers. An old answer stands
// while there is no new one: what DataNodes and key servers do does not end with the NameNode.
func (d *Defaults) Get(ctx context.Context) (*wire.FsServerDefaultsProto, error) {
	d.mu.Lock()
	old, until := d.known, d.until
	if old != nil && time.Now().Before(until) {
		d.mu.Unlock()
		return old, nil
	}
	if old != nil {
		d.until = time.Now().Add(againAfter) // meanwhile others use the old answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, againLimit)
		defer cancel()
	}
	d.mu.Unlock()
	resp := &wire.GetServerDefaultsResponseProto{}
	if err := d.nn.Call(ctx, "getServerDefaults", &wire.GetServerDefaultsRequestProto{}, resp); err != nil {
		if old != nil {
			return old, nil
		}
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.until = resp.GetServerDefaults(), time.Now().Add(valid)
	return d.known, nil
}
