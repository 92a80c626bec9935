package mutation

import "testing"

func TestLongEachRuleOfBytesHasATestThatFailsWithoutIt(t *testing.T) {
	eachFailsWithout(t)
}

// byteRules: what is read is what was written. Their tests need no cluster.
var byteRules = []rule{
	// Checkpoints as they are shown.
	{
		promise: "a tensor that was changed on the disk is not summarised as if it were whole",
		file:    "hdfsckpt/tfbundle/values.go",
		old: `		if wrong := r.check.End(); wrong != nil {
			err = wrong
		}
`,
		new: ``,
		pkg: "hdfsckpt/formats", test: "TestPiecesAreChecked",
	},
	{
		promise: "a difference or a histogram does not take the memory of a tensor that lies in pieces",
		file:    "hdfsckpt/format/contents.go",
		old:     `if t.Source.Held > limit {`,
		new:     `if t.Source.Held < 0 {`,
		pkg:     "hdfsckpt/formats", test: "TestTensorsAreReadInPieces",
	},
	{
		promise: "the page reads one checkpoint at a time",
		file:    "hdfsckpt/inspect/reading.go",
		old:     `if !r.ended() {`,
		new:     `if r.ended() {`,
		pkg:     "hdfsckpt/inspect", test: "TestOneIsReadAtATime",
	},
	{
		promise: "ten open pages list a checkpoint directory once",
		file:    "hdfsckpt/inspect/browser.go",
		old:     `if time.Now().Before(last.until) {`,
		new:     `if time.Now().Before(last.until) && last.err != nil {`,
		pkg:     "hdfsckpt/inspect", test: "TestAListingIsForAll",
	},
	{
		promise: "the page marks the checkpoint that a restart takes, also after a rollback",
		file:    "hdfsckpt/format/walk.go",
		old:     `if c := &list[i]; c.Current && c.Whole() &&`,
		new:     `if c := &list[i]; c.Current && !c.Whole() &&`,
		pkg:     "hdfsckpt/inspect", test: "TestRestart",
	},
	// Encryption zones.
	{
		promise: "a file in an encryption zone is read as it was written",
		file:    "internal/hadoop/hdfs/reader.go",
		old: `			r.src.cipher.XOR(data, p.index*pieceSize)
`,
		new: ``,
		pkg: "internal/hadoop/hdfs", test: "TestEncrypted",
	},
	{
		promise: "a file in an encryption zone is written encrypted",
		file:    "internal/hadoop/hdfs/write/file.go",
		old: `		f.cipher.XOR(p.data()[p.n-n:], f.begin+f.length)
`,
		new: ``,
		pkg: "internal/hadoop/hdfs/write", test: "TestEncrypted",
	},
	{
		promise: "what is added to a file in an encryption zone goes on with its key where the file ends",
		file:    "internal/hadoop/hdfs/write/file.go",
		old:     `f.begin+f.length`,
		new:     `f.length`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestEncrypted",
	},
	{
		promise: "a file that is encrypted in a way not known here is refused, not read as it is",
		file:    "internal/hadoop/hdfs/zone/zone.go",
		old:     `if s := info.GetSuite(); s != wire.CipherSuiteProto_AES_CTR_NOPADDING {`,
		new:     `if s := info.GetSuite(); false {`,
		pkg:     "internal/hadoop/hdfs/zone", test: "TestUnknownEncryptionIsRefused",
	},

	// Erasure coding.
	{
		promise: "lost cells of an erasure-coded file are decoded as Hadoop encodes them",
		file:    "internal/hadoop/hdfs/erasure.go",
		old:     `matrix := reedsolomon.WithCauchyMatrix()`,
		new:     `matrix := reedsolomon.WithPAR1Matrix()`,
		pkg:     "internal/hadoop/hdfs", test: "TestParityIsHadoops",
	},
	{
		promise: "an erasure-coded file is read with as many DataNodes lost as its policy makes up for",
		file:    "internal/hadoop/hdfs/striped.go",
		old: `		if err := g.lose(unit, err); err != nil || k > 0 {
			return k, err
		}
`,
		new: `		return k, err
`,
		pkg: "internal/hadoop/hdfs", test: "TestUnitLostMeanwhile",
	},
	{
		promise: "a file whose erasure coding is not known here is refused, not read as it is",
		file:    "internal/hadoop/hdfs/erasure.go",
		old:     `case known.codec != codecRS && known.codec != codecXOR:`,
		new:     `case false:`,
		pkg:     "internal/hadoop/hdfs", test: "TestPolicies",
	},

	// Checksums of sealed checkpoints.
	{
		promise: "a checkpoint is sealed with the checksums of the bytes that are there, in whatever order they were heard of",
		file:    "hdfsckpt/seal.go",
		old: `	sum, ok := k[store.FileID{Inode: f.Inode}]
	if !ok {
		sum, ok = k[store.FileID{Inode: f.Inode, Modified: f.ModTime.UnixNano()}]
	}
	return sum.CRC32C, ok && sum.Size == f.Size
`,
		new: `	for _, sum := range k {
		if sum.Size == f.Size {
			return sum.CRC32C, true
		}
	}
	return 0, false
`,
		pkg: "am/checkpoint", test: "TestSumsAreOfFiles",
	},
	{
		promise: "a checksum is not taken for that of another file which has got the same number",
		file:    "am/checkpoint/sums.go",
		old:     `store.FileID{Inode: f.Inode, Modified: f.ModifiedUnixNs}`,
		new:     `store.FileID{Inode: f.Inode}`,
		pkg:     "am/checkpoint", test: "TestSumsAreOfFiles",
	},
	{
		promise: "a file that was added to does not keep its former checksum",
		file:    "hdfsckpt/seal.go",
		old:     `ok && sum.Size == f.Size`,
		new:     `ok`,
		pkg:     "am/checkpoint", test: "TestKnownSumsAreUsed",
	},

	{
		promise: "a file that is replaced while its checkpoint is sealed is noticed",
		file:    "hdfsckpt/seal.go",
		old:     `if err == nil && f.Inode != 0 {`,
		new:     `if err == nil && false {`,
		pkg:     "hdfsckpt", test: "TestReplacedWhileItIsSealed",
	},

	// Tasks that were given up.
	{
		promise: "a request of a task that was given up is not sent any more: its right is asked for right before",
		file:    "internal/hadoop/rpc/conn.go",
		old: `		refused = a.may()
`,
		new: ``,
		pkg: "internal/hadoop/rpc", test: "TestGuardIsAskedBeforeSending",
	},
	{
		promise: "a request of a task that was given up does not arrive later: where another call was not answered",
		file:    "internal/hadoop/rpc/conn.go",
		old:     `dropUnsent(k.raw, true)`,
		new:     `_ = k.raw`,
		pkg:     "internal/hadoop/rpc", test: "TestGuardedCallIsTakenBack/with_another",
	},
	{
		promise: "a request of a task whose agent is killed does not arrive later",
		file:    "internal/hadoop/rpc/conn.go",
		old:     `dropUnsent(k.raw, true)`,
		new:     `_ = k.raw`,
		pkg:     "internal/hadoop/rpc", test: "TestAKilledProcessTakesItsCallBack",
	},
	{
		promise: "a request of a task that was given up does not arrive later: its connection is reset",
		file:    "internal/hadoop/rpc/conn.go",
		old: `		k.failLocked(errReset) // other calls are sent again
		return true, err
`,
		new: `		delete(k.pending, a.id)
		return true, err
`,
		pkg: "internal/hadoop/rpc", test: "TestGuardedCallIsTakenBack",
	},
	{
		promise: "what a task has under way is taken back when it is given up",
		file:    "hdfsckpt/mount/gate/gate.go",
		old: `	g.cancel()
`,
		new: ``,
		pkg: "hdfsckpt/mount/gate", test: "TestCloseCancelsWhatIsUnderWay",
	},
	{
		promise: "a task that was given up and stood still meanwhile renames nothing when it goes on",
		file:    "hdfsckpt/mount/gate/gate.go",
		old:     `store.Guarded(context.Background(), g.open)`,
		new:     `store.Guarded(context.Background(), func() error { return nil })`,
		pkg:     "hdfsckpt/mount", test: "TestZombieChangesNothing/rename_over",
	},
	{
		promise: "a task that was given up and stood still meanwhile adds nothing to a log when it goes on",
		file:    "hdfsckpt/mount/gate/gate.go",
		old:     `&Gate{lease: lease}`,
		new:     `&Gate{}`,
		pkg:     "test/torture", test: "TestZombieAppendsAndRenames/append",
	},
	{
		promise: "a task that was given up and stood still meanwhile removes nothing when it goes on",
		file:    "hdfsckpt/mount/dir.go",
		old: `		err = f.moveToArea(ctx, d, name, p, c[0])
`,
		new: `		err = f.store.Remove(context.Background(), p)
`,
		pkg: "hdfsckpt/mount", test: "TestZombieChangesNothing/unlink_what_is_no_checkpoint's",
	},
	{
		promise: "what a task that was given up goes on to remove is not retained in its place, but stays",
		file:    "hdfsckpt/retain/backup.go",
		old: `	own, err := b.area(ctx)
	if err != nil {
		return err
	}
	made := newIn(own)
`,
		new: `	err := error(nil)
	made := newIn(store.OwnDir)
`,
		pkg: "hdfsckpt", test: "TestFencedRetainsNothing/removal/local",
	},
	{
		promise: "what a task that was given up removes late does not cost what its replacement has saved",
		file:    "hdfsckpt/retain/backup.go",
		old: `	if name == path.Join(b.entry, filesDir) {
		_, err := b.s.Stat(ctx, name)
		return err
	}
`,
		new: ``,
		pkg: "hdfsckpt", test: "TestStoppedWhileItRetains",
	},
	{
		promise: "a checkpoint whose removal was broken off is saved over as any other",
		file:    "hdfsckpt/retain/backup.go",
		old:     `if err != nil || !lacks || b.How == replaced {`,
		new:     `if true {`,
		pkg:     "hdfsckpt", test: "TestSavedOverAfterABrokenRemoval",
	},
	{
		promise: "ranks that save over a checkpoint at the same time retain it together",
		file:    "hdfsckpt/retain/backup.go",
		old:     `	if err == nil && !bytes.Equal(now, b.text) {`,
		new:     `	if false && !bytes.Equal(now, b.text) {`,
		pkg:     "hdfsckpt", test: "TestTwoRanksSaveOver",
	},
	{
		promise: "a writer that was fenced off can complete nothing that it has begun, and begin nothing",
		file:    "hdfsckpt/writers/writers.go",
		old: `		err := store.WriteFile(ctx, s, dir, nil, 0o644)
`,
		new: `		err := error(nil)
`,
		pkg: "hdfsckpt", test: "TestFence/local",
	},

	// Memory, and DataNodes that are slow.
	{
		promise: "files that are open and idle give their memory to those that are read and written",
		file:    "internal/hadoop/hdfs/shared.go",
		old: `		p.owner.evict(p)
`,
		new: ``,
		pkg: "internal/hadoop/hdfs", test: "TestIdleReadersGiveWay",
	},
	{
		promise: "the least recently used goes first when memory is short",
		file:    "internal/hadoop/hdfs/shared.go",
		old:     `p.position.list.PushBack(p), time.Now()`,
		new:     `p.position.list.PushFront(p), time.Now()`,
		pkg:     "internal/hadoop/hdfs", test: "TestIdleReadersGiveWay",
	},
	{
		promise: "reading is not held up by one slow DataNode of several",
		file:    "internal/hadoop/hdfs/stripes.go",
		old: `		l.next, l.end = most.next+(most.end-most.next)/2, most.end
		most.end = l.next
`,
		new: `		return nil
`,
		pkg: "internal/hadoop/hdfs", test: "TestWorkIsTakenOver",
	},
	{
		promise: "a DataNode that is much slower than others is not read from any longer",
		file:    "internal/hadoop/hdfs/stripes.go",
		old:     `mine > muchSlower*o.trial.took/time.Duration(o.trial.pieces)`,
		new:     `mine > 1000*muchSlower*o.trial.took/time.Duration(o.trial.pieces)`,
		pkg:     "internal/hadoop/hdfs", test: "TestTooSlow",
	},
	{
		promise: "which DataNode makes writing slow is found out",
		file:    "internal/hadoop/hdfs/write/speed/speed.go",
		old:     `if o.best < poorSpeed || slowFactor*o.best < best {`,
		new:     `if false {`,
		pkg:     "internal/hadoop/hdfs/write/speed", test: "TestSlowDataNodesAreFoundOut",
	},
	{
		promise: "a DataNode that says itself that it is slow is understood",
		file:    "internal/hadoop/hdfs/write/pipeline.go",
		old:     `return flag>>7&3 == 2`,
		new:     `return flag == 1<<31`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestSlowFlag",
	},
	{
		promise: "a shard that has been uploaded waits for a NameNode that is away before it is given up",
		file:    "hdfsckpt/store/hdfs.go",
		old:     `s.c.RenameNew(Committing(ctx), `,
		new:     `s.c.RenameNew(ctx, `,
		pkg:     "hdfsckpt/store", test: "TestTheLastStepWaitsForTheNameNode/a_free_name",
	},
	{
		promise: "so does one that takes the place of another",
		file:    "hdfsckpt/store/hdfs.go",
		old:     `s.c.Rename(Committing(ctx), `,
		new:     `s.c.Rename(ctx, `,
		pkg:     "hdfsckpt/store", test: "TestTheLastStepWaitsForTheNameNode/a_name_that_may_be_taken",
	},
	{
		promise: "so does one that gets its name as it is closed",
		file:    "hdfsckpt/store/hdfs_files.go",
		old:     `w.store.c.Rename(Committing(ctx), `,
		new:     `w.store.c.Rename(ctx, `,
		pkg:     "hdfsckpt/store", test: "TestTheLastStepWaitsForTheNameNode/the_name_at_its_end",
	},
	{
		promise: "so does a file for its blocks and its end, before it gets a name",
		file:    "internal/hadoop/hdfs/write/complete.go",
		old:     `f.c.nn.Call(rpc.WithLimit(ctx, CommitLimit), `,
		new:     `f.c.nn.Call(ctx, `,
		pkg:     "hdfsckpt/store", test: "TestTheLastStepWaitsForTheNameNode/the_end",
	},
	{
		promise: "so does a file that a program has closed for its mode and times",
		file:    "hdfsckpt/mount/publish.go",
		old: `	ctx = store.Committing(ctx)
`,
		new: ``,
		pkg: "hdfsckpt/mount", test: "TestAWholeFileWaitsForItsName",
	},

	// Local directories.
	{
		promise: "in a local directory, a file is on the disk before it gets its name",
		file:    "hdfsckpt/store/local_files.go",
		old: `	st, err := w.sync()
`,
		new: `	st, err := w.file.Stat()
`,
		pkg: "hdfsckpt/store", test: "TestLocalPublishIsDurable",
	},
	{
		promise: "in a local directory, a name outlives a crash of the machine",
		file:    "hdfsckpt/store/local.go",
		old: `		l.sync(toDir)
`,
		new: ``,
		pkg: "hdfsckpt/store", test: "TestLocalPublishIsDurable",
	},

	// What sealing and looking cost.
	{
		promise: "sealing opens a store once, not for each checkpoint",
		file:    "am/checkpoint/sealer.go",
		old: `		o[uri] = s
`,
		new: ``,
		pkg: "am/checkpoint", test: "TestOneStoreForAllSeals",
	},
	{
		promise: "a checkpoint whose manifest is too large to be read says so",
		file:    "hdfsckpt/list.go",
		old: `			c.Unsealed(unread)
`,
		new: ``,
		pkg: "hdfsckpt", test: "TestAManifestBeyondABoundIsTold",
	},
	{
		promise: "so does the application master's log, once",
		file:    "am/checkpoint/sealer.go",
		old:     `	if s.unread[of] {`,
		new:     `	if false {`,
		pkg:     "am/checkpoint", test: "TestAManifestThatIsNotReadIsToldOnce",
	},
	{
		promise: "a manifest is read once, however many checkpoints are sealed after it",
		file:    "hdfsckpt/manifest/cache.go",
		old: `	c.of[i] = m
`,
		new: ``,
		pkg: "hdfsckpt", test: "TestManifestsAreReadOnce",
	},
	{
		promise: "a file that is too large for what it is called is said to be, and not read in part",
		file:    "hdfsckpt/store/files.go",
		old: `	if r.Size() > ReadLimit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: limit.Exceeded("it has %d bytes, and files that say something of others are read up to %d", r.Size(), ReadLimit)}
	}
	b := make([]byte, r.Size())
`,
		new: `	if r.Size() < 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: limit.Exceeded("")}
	}
	b := make([]byte, min(r.Size(), ReadLimit))
`,
		pkg: "hdfsckpt", test: "TestReadFileIsBounded",
	},
	{
		promise: "all that is looked into at once takes no more memory than one budget",
		file:    "hdfsckpt/limit/limit.go",
		old:     `bytes = max(bytes, 1)`,
		new:     `bytes = min(bytes, 1)`,
		pkg:     "hdfsckpt/limit", test: "TestTakesHaveOneBudget",
	},
	{
		promise: "what takes more memory than the budget of all is not let in",
		file:    "hdfsckpt/limit/limit.go",
		old:     `	if bytes > budget {`,
		new:     `	if bytes = min(bytes, budget); false {`,
		pkg:     "hdfsckpt/limit", test: "TestTakesHaveOneBudget",
	},
	{
		promise: "a small pickle cannot claim much memory",
		file:    "hdfsckpt/torchfile/objects.go",
		old:     `f.left < 0 || depth > maxNesting`,
		new:     `depth > maxNesting`,
		pkg:     "hdfsckpt/torchfile", test: "TestAPickleCannotClaimMemory",
	},
	{
		promise: "a small .metadata cannot claim much memory by a long name",
		file:    "hdfsckpt/torchfile/dcp.go",
		old:     `len(name) > maxName {`,
		new:     `len(name) > 1<<30 {`,
		pkg:     "hdfsckpt/torchfile", test: "TestMetadataCannotClaimMemory",
	},
	{
		promise: "a small .metadata cannot claim much memory by many values",
		file:    "hdfsckpt/torchfile/pickle.go",
		old:     `return u.account.Spend(valueSize)`,
		new:     `return nil`,
		pkg:     "hdfsckpt/torchfile", test: "TestMetadataCannotClaimMemory",
	},
	{
		promise: "a small index of TensorFlow's cannot claim much memory by names that share their beginnings",
		file:    "hdfsckpt/tfbundle/index.go",
		old:     `if err := account.Spend(memoryOf(key, value)); err != nil {`,
		new:     `if err := account.Spend(0); err != nil {`,
		pkg:     "hdfsckpt/tfbundle", test: "TestAnIndexCannotClaimMemory",
	},
	{
		promise: "what exceeds a bound is not taken for damage, whatever a format makes of it",
		file:    "hdfsckpt/format/walk.go",
		old:     `if exceeded := note.Exceeded(); exceeded != nil &&`,
		new:     `if exceeded := note.Exceeded(); false &&`,
		pkg:     "hdfsckpt", test: "TestWhatExceedsABoundIsNotJudged",
	},
	{
		promise: "a file is looked into when the process has the memory for it",
		file:    "hdfsckpt/format/look/look.go",
		old:     `release, taken := limit.Take(ctx, bytes)`,
		new:     `release, taken := limit.Take(ctx, min(bytes, 1))`,
		pkg:     "hdfsckpt/format/look", test: "TestFilesWaitForMemory",
	},
	{
		promise: "what exceeds a bound is not marked as damaged",
		file:    "hdfsckpt/format/look/look.go",
		old: `	if limit.IsExceeded(err) {
		return err
	}
	return damagedError{err}
`,
		new: `	return damagedError{err}
`,
		pkg: "hdfsckpt/format/look", test: "TestExceededIsNotDamaged",
	},
	{
		promise: "an archive cannot claim memory for a directory that it does not have",
		file:    "hdfsckpt/zipdir/zipdir.go",
		old:     `case members > length/leastEntry && members != 1<<16-1:`,
		new:     `case false:`,
		pkg:     "hdfsckpt/zipdir", test: "TestAnArchiveCannotClaimMemory",
	},
	{
		promise: "a directory of an archive is not read on behind its end",
		file:    "hdfsckpt/zipdir/zipdir.go",
		old:     `if b.left -= int64(len(p)); b.left < 0 {`,
		new:     `if b.left -= int64(len(p)); false {`,
		pkg:     "hdfsckpt/zipdir", test: "TestAnArchiveCannotClaimMemory",
	},
	{
		promise: "where there is no room for the directory by which files are removed, none is removed",
		file:    "hdfsckpt/mount/dir.go",
		old:     `return fmt.Errorf("a file is moved into %s of the checkpoint directory`,
		new:     `return f.store.Remove(ctx, p); return fmt.Errorf("a file is moved into %s of the checkpoint directory`,
		pkg:     "hdfsckpt/mount", test: "TestNoRoomToRemove",
	},
	{
		promise: "who writes has what idle readers keep dropped when memory is short",
		file:    "internal/hadoop/hdfs/write/file.go",
		old:     `if f.c.o.Memory.Relieve(); f.c.o.Memory.Short() {`,
		new:     `if f.c.o.Memory.Short() {`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestWritersHaveIdleReadersGiveWay",
	},
	{
		promise: "all stores that a process opens share the memory for open files",
		file:    "hdfsckpt/store/open.go",
		old:     `Shared: hdfs.NewShared(), `,
		new:     ``,
		pkg:     "hdfsckpt/store", test: "TestStoresShareMemory",
	},
	{
		promise: "a small index of TensorFlow's cannot claim much memory by a block that it names often",
		file:    "hdfsckpt/tfbundle/table.go",
		old:     `if h.offset < end {`,
		new:     `if h.offset < end && false {`,
		pkg:     "hdfsckpt/tfbundle", test: "TestAnIndexCannotClaimMemory",
	},
	{
		promise: "an application master keeps within its container's memory",
		file:    "client/submit/submit.go",
		old:     `proto.EnvJobDirectory: directory, "GOMEMLIMIT": memoryLimit(r)}`,
		new:     `proto.EnvJobDirectory: directory}`,
		pkg:     "client/submit", test: "TestMasterKeepsWithinItsContainer",
	},

	// Protection of what is sent.
	{
		promise: "an error that arrives without the protection that was agreed on is not believed",
		file:    "internal/hadoop/rpc/stream.go",
		old: `		if int32(h.GetCallId()) != callSASL {
`,
		new: `		if false {
`,
		pkg: "internal/hadoop/rpc", test: "TestUnprotectedErrorIsRefused",
	},
	{
		promise: "ciphers whose keys can be searched are refused",
		file:    "internal/hadoop/sasl/session.go",
		old:     `var ciphers = []string{"3des", "rc4"}`,
		new:     `var ciphers = []string{"3des", "rc4", "des", "rc4-56", "rc4-40"}`,
		pkg:     "internal/hadoop/sasl", test: "TestNegotiation",
	},
	{
		promise: "a KDC cannot claim memory by the length of its answer",
		file:    "internal/hadoop/kerberos/exchange.go",
		old: `	if n > answerLimit {
		return nil, fmt.Errorf("it claims an answer of %d bytes, which no KDC gives", n)
	}
`,
		new: `	n = min(n, 64<<20)
`,
		pkg: "internal/hadoop/kerberos", test: "TestAnswersOfKDCsAreBounded",
	},
	{
		promise: "a damaged answer of a KDC is an error and does not end the process",
		file:    "internal/hadoop/sasl/guard.go",
		old:     `if p := recover(); p != nil {`,
		new:     `if p := any(nil); p != nil {`,
		pkg:     "internal/hadoop/kerberos", test: "TestDamagedAnswersAreErrors",
	},
	{
		promise: "a wrong key is not shown to the KDC again and again, which locks the account",
		file:    "internal/hadoop/kerberos/refusals.go",
		old:     `f != nil && now.Before(f.until) {`,
		new:     `f != nil && now.Before(f.until.Add(-refusalPause)) {`,
		pkg:     "internal/hadoop/kerberos", test: "TestRefusedLoginsAreNotRepeated",
	},
	{
		promise: "an application master whose keytab is refused says when it tries again",
		file:    "internal/hadoop/delegation/refresher.go",
		old:     `if next, refused := kerberos.RefusedUntil(err); refused {`,
		new:     `if next, refused := kerberos.RefusedUntil(err); refused && false {`,
		pkg:     "internal/hadoop/delegation", test: "TestARefusedKeytab",
	},

	// hdfs-site.xml.
	{
		promise: "dfs.replication is heeded",
		file:    "internal/hadoop/hdfs/settings.go",
		old:     `o.Replication, o.Timeout = int(replication), `,
		new:     `o.Replication, o.Timeout = int(min(replication, 3)), `,
		pkg:     "internal/hadoop/hdfs", test: "TestWriteOptions",
	},
	{
		promise: "dfs.blocksize is heeded",
		file:    "internal/hadoop/hdfs/settings.go",
		old:     `c.Int("dfs.blocksize", 128<<20)`,
		new:     `c.Int("dfs.blocksize.none", 128<<20)`,
		pkg:     "internal/hadoop/hdfs", test: "TestWriteOptions",
	},
	{
		promise: "dfs.checksum.type is heeded",
		file:    "internal/hadoop/hdfs/settings.go",
		old: `		sums.Type = wire.ChecksumTypeProto_CHECKSUM_CRC32
`,
		new: ``,
		pkg: "internal/hadoop/hdfs", test: "TestWriteOptions",
	},
	{
		promise: "dfs.bytes-per-checksum is heeded",
		file:    "internal/hadoop/hdfs/settings.go",
		old: `	sums.Bytes = int(bytes)
`,
		new: `	sums.Bytes = write.MinChunk
`,
		pkg: "internal/hadoop/hdfs", test: "TestWriteOptions",
	},
	{
		promise: "dfs.client.block.write.replace-datanode-on-failure.policy is heeded",
		file:    "internal/hadoop/hdfs/settings.go",
		old: `		r.Policy = write.ReplaceAlways
`,
		new: ``,
		pkg: "internal/hadoop/hdfs", test: "TestWriteOptions",
	},
	{
		promise: "dfs.client.block.write.replace-datanode-on-failure.enable is heeded",
		file:    "internal/hadoop/hdfs/settings.go",
		old:     `if !c.Bool(prefix+"enable", true) {`,
		new:     `if false {`,
		pkg:     "internal/hadoop/hdfs", test: "TestWriteOptions",
	},
	{
		promise: "dfs.client.block.write.replace-datanode-on-failure.best-effort is heeded",
		file:    "internal/hadoop/hdfs/settings.go",
		old: `	r.Strict = !c.Bool(prefix+"best-effort", r.Least == 0)
`,
		new: `	_ = r.Least
`,
		pkg: "internal/hadoop/hdfs", test: "TestWriteOptions",
	},
	{
		promise: "dfs.client.block.write.replace-datanode-on-failure.min-replication is heeded",
		file:    "internal/hadoop/hdfs/settings.go",
		old: `	r.Least = int(max(0, min(least, 1<<15-1)))
`,
		new: `	_ = least
`,
		pkg: "internal/hadoop/hdfs", test: "TestWriteOptions",
	},
	{
		promise: "dfs.client.failover.resolve-needed is heeded",
		file:    "internal/hadoop/conf/services.go",
		old:     `if c.Bool("dfs.client.failover.resolve-needed."+name, false) {`,
		new:     `if false {`,
		pkg:     "internal/hadoop/conf", test: "TestResolvedNameNodes",
	},
	{
		promise: "a DataNode that says in ack after ack that it is slow is left at once",
		file:    "internal/hadoop/hdfs/write/pipeline.go",
		old:     `slow[i] >= slowAcks && nodes > 2 {`,
		new:     `false {`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestADataNodeThatSaysItIsSlowIsLeft",
	},
	{
		promise: "a file cannot claim a header of safetensors that takes any amount of memory",
		file:    "hdfsckpt/safetensors/file.go",
		old:     ` || length > maxHeader:`,
		new:     `:`,
		pkg:     "hdfsckpt/safetensors", test: "TestOthers",
	},
	{
		promise: "groups of HDF5 that are in each other do not keep a reader busy",
		file:    "hdfsckpt/hdf5/group.go",
		old:     `		case f.seen[at]:`,
		new:     `		case false:`,
		pkg:     "hdfsckpt/hdf5", test: "TestWhatCannotBe",
	},
	{
		promise: "the elements of a dataset of HDF5 lie within the file",
		file:    "hdfsckpt/hdf5/dataset.go",
		old:     `		case d.at > d.f.size || size > d.f.size-d.at:`,
		new:     `		case false:`,
		pkg:     "hdfsckpt/hdf5", test: "TestWhatCannotBe",
	},
	{
		promise: "a file of HDF5 that has its length and not its contents does not pass ckpt verify",
		file:    "hdfsckpt/kerasfile/file.go",
		old:     `	if err != nil && !hdf5.IsUnsupported(err) {`,
		new:     `	if false {`,
		pkg:     "hdfsckpt", test: "TestKerasIsVerified",
	},
	{
		promise: "a file of HDF5 with what is only not read passes ckpt verify",
		file:    "hdfsckpt/kerasfile/file.go",
		old:     `d.Err != nil && !hdf5.IsUnsupported(d.Err)`,
		new:     `d.Err != nil`,
		pkg:     "hdfsckpt", test: "TestKerasIsVerified",
	},
	{
		promise: "a byte that is wrong in an archive of Keras does not pass ckpt verify",
		file:    "hdfsckpt/kerasfile/file.go",
		old:     `got != c.f.CRC32 {`,
		new:     `false && got != c.f.CRC32 {`,
		pkg:     "hdfsckpt", test: "TestKerasIsVerified",
	},
	{
		promise: "a checkpoint of Orbax without a data file that its index names is not complete",
		file:    "hdfsckpt/formats/orbax.go",
		old:     `return look.Lacking(need, f.Sizes), nil`,
		new:     `return look.Lacking(need, f.Sizes)[:0], nil`,
		pkg:     "hdfsckpt", test: "TestLongRealOrbax",
	},
	{
		promise: "an index of OCDBT cannot claim any amount of memory",
		file:    "hdfsckpt/ocdbt/frame.go",
		old:     `b.spent > mostExpanded*b.read+freeExpanded`,
		new:     `false`,
		pkg:     "hdfsckpt/ocdbt", test: "TestCraftedStores",
	},
	{
		promise: "an index of OCDBT that names a node twice ends in an error",
		file:    "hdfsckpt/ocdbt/tree.go",
		old:     `	if w.seen[at] {`,
		new:     `	if false {`,
		pkg:     "hdfsckpt/ocdbt", test: "TestCraftedStores",
	},

	{
		promise: "a key server that is away is not waited for where there is another one",
		file:    "internal/hadoop/kms/client.go",
		old:     `for i := range k.servers {`,
		new:     `for i := range k.servers[:1] {`,
		pkg:     "internal/hadoop/kms", test: "TestServers",
	},
	{
		promise: "each of the key servers that a provider's URI names may be asked",
		file:    "internal/hadoop/kms/provider.go",
		old: `		list = append(list, u.String())
`,
		new: `		list = []string{u.String()}
`,
		pkg: "internal/hadoop/kms", test: "TestProviders",
	},
	{
		promise: "which file a checksum is of is said with it",
		file:    "container/master/commits.go",
		old:     `Inode: m.ID.Inode, ModifiedUnixNs: m.ID.Modified, WritingMs`,
		new:     `WritingMs`,
		pkg:     "container", test: "TestCheckpointsAreMounted",
	},
}
