package write

import (
	"fmt"
	"testing"
)

// TestWhenADataNodeIsReplaced: by policy, replication, how many DataNodes are left, and whether
// readers may have seen the block. What Hadoop's client demands (ReplaceDatanodeOnFailure.java) is
// an error where it is not met, unless as many are left as are enough (DataStreamer.java).
func TestWhenADataNodeIsReplaced(t *testing.T) {
	strict := func(p Policy, least int) Replace { return Replace{Policy: p, Strict: true, Least: least} }
	for _, x := range []struct {
		replace           Replace
		replication, left int
		flushed           bool
		wants, demands    bool
	}{
		{strict(ReplaceNever, 0), 3, 1, true, false, false},
		{strict(ReplaceAlways, 0), 3, 2, false, true, true},
		{strict(ReplaceAlways, 0), 2, 1, false, true, true},
		{strict(ReplaceAlways, 0), 3, 3, true, false, false},
		{strict(ReplaceDefault, 0), 3, 2, false, false, false},
		{strict(ReplaceDefault, 0), 3, 2, true, true, true},
		{strict(ReplaceDefault, 0), 3, 1, false, true, true},
		{strict(ReplaceDefault, 0), 4, 2, false, true, true},
		{strict(ReplaceDefault, 0), 2, 1, true, true, false}, // not Hadoop's
		{strict(ReplaceDefault, 0), 1, 1, true, false, false},
		{strict(ReplaceAlways, 2), 3, 2, true, true, false},
		{strict(ReplaceAlways, 2), 3, 1, true, true, true},
		{Replace{Policy: ReplaceAlways}, 3, 1, true, true, false},
		{Replace{Policy: ReplaceAlways, Least: 2}, 3, 1, true, true, false},
	} {
		f := &File{c: &Client{o: Options{Replace: x.replace, Replication: 1}}}
		f.s.replication, f.s.nodes = x.replication, make([]node, x.left)
		f.flushed.Store(x.flushed)
		if wants, demands := f.wantsAnother(), f.demandsAnother(); wants != x.wants || demands != x.demands {
			t.Errorf("%s: it wants another: %v, and demands it: %v", fmt.Sprintf("%+v", x), wants, demands)
		}
	}
}
