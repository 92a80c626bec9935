package write

// Policy is dfs.client.block.write.replace-datanode-on-failure.policy
// (ReplaceDatanodeOnFailure.java).
type Policy int

// Policies.
const (
	ReplaceDefault Policy = iota
	ReplaceNever
	ReplaceAlways
)

// Replace says when a block that has lost a DataNode of its pipeline gets another.
type Replace struct {
	Policy Policy
	// Strict fails a write that should get another DataNode and cannot. Hadoop's
	// own client does that unless best-effort is set; here it has to be asked for,
	// since otherwise a write continues with the remaining DataNodes.
	Strict bool
	// Least is how many DataNodes are enough for a write to continue where Strict is set: 0 none
	// (dfs.client.block.write.replace-datanode-on-failure.min-replication; addDatanode2ExistingPipeline
	// of DataStreamer.java).
	Least int
}

// wantsAnother reports whether the block that is written should get another DataNode:
// with the default policy, as Hadoop's own client decides, but careful with a
// replication of 2 as well, as what is on one DataNode alone does not survive its
// loss.
func (f *File) wantsAnother() bool {
	r := f.wanted()
	return f.demanded() || f.c.o.Replace.Policy == ReplaceDefault && r >= 2 && len(f.s.nodes) <= r/2
}

// demandsAnother reports whether the write fails if none is found.
func (f *File) demandsAnother() bool {
	r := f.c.o.Replace
	return r.Strict && f.demanded() && (r.Least <= 0 || len(f.s.nodes) < r.Least)
}

// demanded is Hadoop's condition: of a replication of 3 and more, when half or fewer
// of the DataNodes are left, and when any is lost of a file that has readers already, or is added
// to.
func (f *File) demanded() bool {
	r := f.wanted()
	switch f.c.o.Replace.Policy {
	case ReplaceNever:
		return false
	case ReplaceAlways:
		return len(f.s.nodes) < r
	}
	return r >= 3 && (len(f.s.nodes) <= r/2 || f.flushed.Load() && len(f.s.nodes) < r)
}

// wanted returns the file's replication.
func (f *File) wanted() int {
	if f.s.replication == 0 {
		return f.c.o.Replication
	}
	return f.s.replication
}
