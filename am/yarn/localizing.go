package yarn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/am/core"
	"holdfast/internal/backoff"
	hadoop "holdfast/internal/hadoop/yarn"
)

// A container's files are brought and unpacked by its NodeManager before anything runs
// in it, which takes minutes for large archives. Its node is asked whether that is why
// its agent has not come: first after localizingAfter, when nearly all have, and then
// every localizingPoll, for as long as it is.
const (
	localizingAfter = 10 * time.Second
	localizingPoll  = 5 * time.Second
)

// localizing is which of some containers of a node have not got their files.
type localizing struct {
	node hadoop.NodeID
	ids  []hadoop.ContainerID
}

// watchLocalizing asks a node after a while.
func (d *Driver) watchLocalizing(node hadoop.NodeID, ids []hadoop.ContainerID, after time.Duration) {
	if len(ids) == 0 {
		return
	}
	d.async(func() any {
		r := localizing{node: node}
		if !backoff.Sleep(d.ctx, after) {
			return r
		}
		ctx, cancel := context.WithTimeout(d.ctx, localizingPoll)
		defer cancel()
		list, err := d.nodes.Statuses(ctx, node, ids)
		if err != nil {
			return r // that of a node which is lost is told otherwise
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
	ids := slices.DeleteFunc(r.ids, func(id hadoop.ContainerID) bool {
		h := d.s.byID[id]
		return h == nil || h.released
	})
	for _, id := range ids {
		d.events.Put(core.Localizing{Container: id.String(), What: d.brings()})
	}
	d.watchLocalizing(r.node, ids, localizingPoll)
}

// brings says what a container's node brings into it.
func (d *Driver) brings() string {
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
