package yarn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/am/core/event"
	"holdfast/internal/backoff"
	hadoop "holdfast/internal/hadoop/yarn"
)

// A NodeManager localizes a container's files, which includes to unpack archives, before
// anything runs in it. That takes minutes for large archives. The node is asked whether that
// is why an agent has not connected: first after localizingAfter, when nearly all have, and
// then every localizingInterval, for as long as it localizes.
const (
	localizingAfter    = 10 * time.Second
	localizingInterval = 5 * time.Second
)

// localizing is the result of asking a node: the containers that it still localizes, and those of
// which it has not answered, as where it is busy with that.
type localizing struct {
	node    hadoop.NodeID
	ids     []hadoop.ContainerID
	unknown []hadoop.ContainerID
}

// watchLocalizing asks a node about containers, after a while.
func (d *Driver) watchLocalizing(node hadoop.NodeID, ids []hadoop.ContainerID, after time.Duration) {
	if len(ids) == 0 {
		return
	}
	d.async(func() any {
		r := localizing{node: node}
		if !backoff.Sleep(d.ctx, after) {
			return r
		}
		ctx, cancel := context.WithTimeout(d.ctx, localizingInterval)
		defer cancel()
		list, err := d.nodes.Statuses(ctx, node, ids)
		if err != nil {
			r.unknown = ids // until the RM reports that they have ended, as with a lost node
			return r
		}
		for _, s := range list {
			if s.Localizing {
				r.ids = append(r.ids, s.ID)
			}
		}
		return r
	})
}

func (d *Driver) afterLocalizing(r localizing) {
	gone := func(id hadoop.ContainerID) bool {
		h := d.s.byID[id]
		return h == nil || h.released
	}
	ids := slices.DeleteFunc(r.ids, gone)
	for _, id := range ids {
		d.events.Put(event.Localizing{Container: id.String(), What: d.localizingWhat()})
	}
	d.watchLocalizing(r.node, append(ids, slices.DeleteFunc(r.unknown, gone)...), localizingInterval)
}

// localizingWhat describes what a node localizes for a container.
func (d *Driver) localizingWhat() string {
	var archives []string
	for _, r := range d.agent.Resources {
		if r.Archive {
			archives = append(archives, fmt.Sprintf("%s (%s)", r.URI[strings.LastIndexByte(r.URI, '/')+1:], hadoop.Megabytes(r.Size>>20)))
		}
	}
	if len(archives) == 0 {
		return "is fetching the job's program"
	}
	return "is fetching and unpacking " + strings.Join(archives, ", ")
}
