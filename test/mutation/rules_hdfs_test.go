package mutation

import (
	"testing"
	"time"
)

func TestLongEachRuleOfHDFSHasATestThatFailsWithoutIt(t *testing.T) {
	eachFailsWithout(t)
}

// hdfsRules are rules that only real daemons show: their tests start a cluster.
var hdfsRules = []rule{
	// Encryption zones, with a real KMS.
	{
		promise: "a site file that is to be included and is missing is an error, unless there is a fallback",
		file:    "internal/hadoop/conf/include.go",
		old:     `if err == nil && failed != nil && !fallback {`,
		new:     `if false && !fallback {`,
		pkg:     "internal/hadoop/conf", test: "TestIncludes",
	},
	{
		promise: "a file that Hadoop has written into an encryption zone is never read as ciphertext",
		file:    "internal/hadoop/hdfs/source.go",
		old: `	s.encryption = located.GetFileEncryptionInfo()
`,
		new: ``,
		pkg: "test/zones", test: "TestZones/reading", limit: 5 * time.Minute,
	},
	{
		promise: "Hadoop reads what is written into an encryption zone",
		file:    "internal/hadoop/hdfs/write/zone.go",
		old: `	if info == nil {
		return f, nil
	}
`,
		new: `	if info == nil || true {
		return f, nil
	}
`,
		pkg: "test/zones", test: "TestZones/writing", limit: 5 * time.Minute,
	},

	// Erasure coding.
	{
		promise: "saving into an erasure-coded directory works, and the files are replicated",
		file:    "internal/hadoop/hdfs/write/client.go",
		old:     `uint32(flagCreate | flagReplicate)`,
		new:     `uint32(flagCreate)`,
		pkg:     "internal/hadoop/hdfs/erasuretest", test: "TestWriteReplicated", limit: 5 * time.Minute,
	},
	{
		promise: "a file that Hadoop has erasure-coded is read",
		file:    "internal/hadoop/hdfs/erasure.go",
		old:     `case known.codec != codecRS && known.codec != codecXOR:`,
		new:     `case known.data > 0:`,
		pkg:     "internal/hadoop/hdfs/erasuretest", test: "TestReadErasureCoded/healthy", limit: 5 * time.Minute,
	},

	// Writers that are given up.
	{
		promise: "what another writer has taken over is not taken from it when the first one gives up",
		file:    "internal/hadoop/hdfs/write/complete.go",
		old: `	if ours, err := f.ours(ctx); err != nil || !ours {
		return err
	}
`,
		new: ``,
		pkg: "hdfsckpt/store", test: "TestTakenOver", limit: 5 * time.Minute,
	},

	// Routers and observers.
	{
		promise: "behind a Router, a file is never read as another one that has its number in another namespace",
		file:    "internal/hadoop/hdfs/find.go",
		old: `	return a[0].GetB().GetPoolId() == b[0].GetB().GetPoolId() && a[0].GetB().GetBlockId() == b[0].GetB().GetBlockId()
`,
		new: `	return true
`,
		pkg: "internal/hadoop/hdfs/topologytest", test: "TestTwoNamespaces/DataNodes_asked_for_again", limit: 5 * time.Minute,
	},
	{
		promise: "behind a Router, files are found by their path",
		file:    "internal/hadoop/hdfs/find.go",
		old:     `located, err := s.c.blocks(ctx, s.path)`,
		new:     `located, err := s.c.blocks(ctx, inodePath(s.inode))`,
		pkg:     "internal/hadoop/hdfs/topologytest", test: "TestTwoNamespaces", limit: 5 * time.Minute,
	},
	{
		promise: "an observer NameNode that is asked first is not taken for a broken one",
		file:    "internal/hadoop/rpc/errors.go",
		old: `	return IsRemote(err, classStandby) || IsRemote(err, classObserverRetry) ||
		remoteMessageStarts(err, classStandby)
`,
		new: `	return false
`,
		pkg: "internal/hadoop/hdfs/topologytest", test: "TestObserver", limit: 5 * time.Minute,
	},

	{
		promise: "a Router is told from a NameNode",
		file:    "internal/hadoop/rpc/hedge.go",
		old:     `len(resp.GetProtocolSignature()) > 0`,
		new:     `true`,
		pkg:     "internal/hadoop/hdfs/topologytest", test: "TestTwoNamespaces/a_change_is_made_at_one_Router", limit: 5 * time.Minute,
	},

	// Appending.
	{
		promise: "what fsync has said yes to is on the DataNodes' disks",
		file:    "hdfsckpt/mount/append.go",
		old:     `flush = w.app.Sync`,
		new:     `flush = w.app.Flush`,
		pkg:     "hdfsckpt/mount", test: "TestHDFS/fsync", limit: 5 * time.Minute,
	},
	{
		promise: "a log that is opened for each line goes on in its last block",
		file:    "internal/hadoop/hdfs/names.go",
		old: `	open := c.files.Append
`,
		new: `	open := c.files.AppendBlock
`,
		pkg: "hdfsckpt/mount", test: "TestHDFS/a_log_is_opened_for_each_line", limit: 5 * time.Minute,
	},
	{
		promise: "a shell is told when HDFS takes no more lines",
		file:    "hdfsckpt/store/hdfs_files.go",
		old:     `if err == nil && (!a.taken || a.file.Blocks() > blocks) {`,
		new:     `if err == nil && (!a.taken && false || a.file.Blocks() > blocks+1000) {`,
		pkg:     "hdfsckpt/mount", test: "TestHDFS/a_log_is_opened_for_each_line", limit: 5 * time.Minute,
	},
	{
		promise: "files have the group, the access control list and the storage policy of their directory on HDFS",
		file:    "hdfsckpt/mount/area/area.go",
		old: `	s := a.stages[birth]
`,
		new: `	s := a.stages[birth]
	if s == nil {
		s = &stage{dir: area}
	}
`,
		pkg: "hdfsckpt/mount", test: "TestHDFS/files_are_of_their_directory", limit: 5 * time.Minute,
	},

	// Tasks that were given up.
	{
		promise: "a file is removed through the directory of who removes it, so that a task that was fenced off removes nothing",
		file:    "hdfsckpt/mount/dir.go",
		old: `		err = f.moveToArea(ctx, d, name, p, c[0])
`,
		new: `		err = f.store.Remove(ctx, p)
`,
		pkg: "test/torture", test: "TestZombie", limit: 10 * time.Minute,
	},

	// Calls of a save.
	{
		promise: "a file of a save is renamed once",
		file:    "hdfsckpt/mount/publish.go",
		old:     `w.f.store.Stage(ctx, name, perm)`,
		new:     `w.f.store.Create(ctx, name, perm)`,
		pkg:     "hdfsckpt/mount", test: "TestHDFS/calls_of_a_save", limit: 5 * time.Minute,
	},
	{
		promise: "a new file of a save takes five calls to the NameNode",
		file:    "hdfsckpt/retain/changes.go",
		old:     `if err := c.renameNew(ctx, from, to); !errors.Is`,
		new:     `if err := error(syscall.EEXIST); !errors.Is`,
		pkg:     "hdfsckpt/mount", test: "TestHDFS/calls_of_a_save", limit: 5 * time.Minute,
	},

	{
		promise: "chmod on HDFS takes the sticky bit from no directory that was to keep it",
		file:    "internal/hadoop/hdfs/names.go",
		old: `		bits |= stickyBit
`,
		new: ``,
		pkg: "hdfsckpt/store", test: "TestHDFS/attributes", limit: 5 * time.Minute,
	},

	// DataNodes, and what is configured.
	{
		promise: "writing is not held up by a slow DataNode for more than a block",
		file:    "internal/hadoop/hdfs/write/stream.go",
		old:     `slow := f.c.speeds.Slow(time.Now())`,
		new:     `slow := f.c.speeds.Slow(time.Now())[:0]`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestASlowDataNodeIsLeft", limit: 5 * time.Minute,
	},
	{
		promise: "DataNodes have the kind of checksums that is configured",
		file:    "internal/hadoop/hdfs/write/client.go",
		old: `	if o.Checksum.Bytes == 0 {
		o.Checksum = standard
	}
`,
		new: `	o.Checksum = standard
`,
		pkg: "internal/hadoop/hdfs/write", test: "TestChecksumsAsConfigured", limit: 5 * time.Minute,
	},
	{
		promise: "a write fails where a lost DataNode has to be replaced and cannot be, if that is configured",
		file:    "internal/hadoop/hdfs/write/replace.go",
		old:     `return r.Strict && f.demanded()`,
		new:     `return false && f.demanded()`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestReplacingAsConfigured", limit: 5 * time.Minute,
	},
	{
		promise: "a write goes on without a lost DataNode where as many are left as are configured to be enough",
		file:    "internal/hadoop/hdfs/write/replace.go",
		old:     `(r.Least <= 0 || len(f.s.nodes) < r.Least)`,
		new:     `true`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestWhenADataNodeIsReplaced",
	},
	{
		promise: "a lost DataNode is not replaced where that is configured",
		file:    "internal/hadoop/hdfs/write/replace.go",
		old: `	case ReplaceNever:
		return false
`,
		new: ``,
		pkg: "internal/hadoop/hdfs/write", test: "TestWhenADataNodeIsReplaced",
	},
	{
		promise: "a lost DataNode of a file that has readers already is replaced",
		file:    "internal/hadoop/hdfs/write/replace.go",
		old:     `f.flushed.Load() && len(f.s.nodes) < r`,
		new:     `false`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestWhenADataNodeIsReplaced",
	},
	{
		promise: "who is let in by an entry of an access control list only is let in",
		file:    "hdfsckpt/mount/attr.go",
		old:     `if a, ok := f.store.(store.Accesser); ok && in.Mask&7 != 0 {`,
		new:     `if a, ok := f.store.(store.Accesser); ok && in.Mask&7 != 0 && in.Uid == 1<<31 {`,
		pkg:     "hdfsckpt/mount", test: "TestHDFS/ACL", limit: 5 * time.Minute,
	},
	{
		promise: "key servers that demand Kerberos are asked with a ticket",
		file:    "internal/hadoop/kms/identity.go",
		old:     `t, err = u.Negotiate(r, service)`,
		new:     `_ = t`,
		pkg:     "internal/hadoop/kms", test: "TestKerberos",
	},
	{
		promise: "key servers whose key has changed are asked with another ticket",
		file:    "internal/hadoop/kms/client.go",
		old:     `answered.ofTicket() && answered.another() {`,
		new:     `answered.ofTicket() && answered.another == nil {`,
		pkg:     "internal/hadoop/kms", test: "TestKerberos",
	},
	{
		promise: "what key servers refuse to a user whom they know costs no ticket",
		file:    "internal/hadoop/kms/client.go",
		old:     `rpc.RemoteClass(e.err) == "" && `,
		new:     ``,
		pkg:     "internal/hadoop/kms", test: "TestKerberos",
	},
	{
		promise: "containers, which have no ticket, ask key servers with their job's delegation token",
		file:    "internal/hadoop/kms/identity.go",
		old:     `r.Header.Set(tokenHeader, t.URLString())`,
		new:     `_ = t`,
		pkg:     "internal/hadoop/kms", test: "TestKerberos",
	},
	{
		promise: "a DataNode that says itself that it is slow is left out of the block that is being written",
		file:    "internal/hadoop/hdfs/write/pipeline.go",
		old:     `slow[i] >= slowAcks && nodes > 2 {`,
		new:     `slow[i] < 0 {`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestAPipelineGoesOnWithoutASlowDataNode", limit: 5 * time.Minute,
	},
	{
		promise: "a writer whose file another one has taken over is told that",
		file:    "internal/hadoop/hdfs/write/complete.go",
		old:     `if ours, askErr := f.holdsLease(ctx); askErr != nil || ours {`,
		new:     `if ours, askErr := f.holdsLease(ctx); askErr != nil || ours || true {`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestAnotherHasTakenTheFile", limit: 5 * time.Minute,
	},
	{
		promise: "directories of old jobs are removed from HDFS",
		file:    "client/submit/submit.go",
		old:     `keep, notify, jobsOn(c, home))`,
		new:     `0*keep, notify, jobsOn(c, home))`,
		pkg:     "test/e2e", test: "TestOldJobsGoFromHDFS", limit: 5 * time.Minute,
	},
	{
		promise: "the directory of a job that waits in its queue is not removed",
		file:    "client/jobs/status.go",
		old:     `	return Alive, nil`,
		new:     `	return Ended, nil`,
		pkg:     "test/e2e", test: "TestOldJobsGoFromHDFS", limit: 5 * time.Minute,
	},
	{
		promise: "which file a commit is of is known on HDFS",
		file:    "hdfsckpt/mount/publish.go",
		old:     `f.committed(Commit{Name: name, ID: id, Size`,
		new:     `f.committed(Commit{Name: name, Size`,
		pkg:     "hdfsckpt/mount", test: "TestHDFS/any_order", limit: 5 * time.Minute,
	},
}
