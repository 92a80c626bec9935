package mutation

import "testing"

func TestLongEachStorageRuleHasATestThatFailsWithoutIt(t *testing.T) {
	eachFailsWithout(t, storageRules)
}

// storageRules: what lies in the user's directory is the user's. Their tests need no
// cluster.
var storageRules = []rule{
	// The user's own files.
	{
		promise: "a file called checkpoint that is the user's own is left alone",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `case !known || before.Foreign ||`,
		new:     `case before.Foreign && !known ||`,
		pkg:     "hdfsckpt", test: "TestUsersFileCheckpoint/a_text/local",
	},
	{
		promise: "a SavedModel gets no file called checkpoint",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `case !known || before.Foreign ||`,
		new:     `case !known && !before.Missing || before.Foreign ||`,
		pkg:     "hdfsckpt", test: "TestUsersFileCheckpoint/a_SavedModel,_which_has_none/local",
	},
	{
		promise: "a directory called checkpoint holds nothing up",
		file:    "hdfsckpt/format/pointer.go",
		old:     `err == nil && !info.Mode.IsRegular() || errors.Is`,
		new:     `errors.Is`,
		pkg:     "hdfsckpt", test: "TestUsersFileCheckpoint/a_directory/local",
	},
	{
		promise: "a file called checkpoint that TensorFlow has written is put right when it is cut off",
		file:    "hdfsckpt/format/pointer.go",
		old:     `if p := c.Pointer(); c.Current && p != nil && !done[k] {`,
		new:     `if p := c.Pointer(); false && c.Current && p != nil && !done[k] {`,
		pkg:     "hdfsckpt", test: "TestSaversFileIsKnown/seal,_cut/local",
	},
	{
		promise: "a name that somebody has made up below .holdfast leads nowhere else",
		file:    "hdfsckpt/retain/backup.go",
		old:     `!store.IsEntryFor(path.Base(b.entry), r.Name) || `,
		new:     ``,
		pkg:     "hdfsckpt", test: "TestUsersFileCheckpoint/entries_of_what_is_retained_that_lead_elsewhere/local",
	},
	{
		promise: "the user's own symbolic link at the checkpoint path stays",
		file:    "container/stage/checkpoints.go",
		old:     `if strings.HasSuffix(to, linkMark) && same(p.lock, p.path) {`,
		new:     `if to != "" && same(p.lock, p.path) {`,
		pkg:     "container", test: "TestTheUsersLinkStays/linked",
	},
	{
		promise: "what is at the checkpoint path already is not replaced",
		file:    "container/stage/checkpoints.go",
		old: `	if same(d, p.path) {
		return nil // by a link of the user's, or of another agent on this host
	}
`,
		new: `	_ = os.Remove(p.path)
`,
		pkg: "container", test: "TestTheUsersLinkStays/linked,_elsewhere",
	},
	{
		promise: "a link of the user's to the checkpoint directory serves as it is",
		file:    "container/stage/checkpoints.go",
		old: `	if same(d, p.path) {
		return nil // by a link of the user's, or of another agent on this host
	}
`,
		new: ``,
		pkg: "container", test: "TestTheUsersLinkStays/linked",
	},

	// Files that belong together.
	{
		promise: "a directory of Trainer's is one checkpoint",
		file:    "hdfsckpt/formats/formats.go",
		old:     `directory{}, huggingFace{}, safeTensors{}`,
		new:     `safeTensors{}`,
		pkg:     "hdfsckpt", test: "TestTrainersDirectories",
	},
	{
		promise: "files of one save that are of no known format are one checkpoint, which prune does not take apart",
		file:    "hdfsckpt/formats/formats.go",
		old:     `deepSpeed{}, ray{}, directory{}, huggingFace{}`,
		new:     `deepSpeed{}, ray{}, huggingFace{}`,
		pkg:     "hdfsckpt", test: "TestFilesThatBelongTogether",
	},
	{
		promise: "prune removes nothing of which it is not known whether it is whole",
		file:    "hdfsckpt/prune.go",
		old:     `case c.State == format.Unchecked:`,
		new:     `case c.State == format.Unchecked && c.Step == format.NoStep:`,
		pkg:     "hdfsckpt", test: "TestPruneLeavesWhatCannotBeChecked",
	},
	{
		promise: "prune names what it leaves because it does not know it whole",
		file:    "hdfsckpt/prune.go",
		old:     `reason = "cannot be checked"`,
		new:     `reason = "is kept"`,
		pkg:     "cmd/yarn-submit", test: "TestNotUnderstood",
	},
	{
		promise: "rollback refuses, by its name, what is not known to be whole",
		file:    "hdfsckpt/rollback.go",
		old:     `case !found[0].Whole():`,
		new:     `case false:`,
		pkg:     "hdfsckpt", test: "TestRollback/local",
	},
	{
		promise: "a checkpoint to which files were added since it was sealed is sealed again",
		file:    "hdfsckpt/format/checkpoint.go",
		old:     ` && (!c.IsDir() || len(c.Files) == len(m.Files))`,
		new:     ``,
		pkg:     "hdfsckpt", test: "TestSealedWhenComplete",
	},
	{
		promise: "ckpt get copies all files of a directory of Trainer's",
		file:    "hdfsckpt/format/walk.go",
		old: `		case !e.IsDir():
			c.Files = append(c.Files, FileOf(dir, e))
			c.Shards++
`,
		new: `		case !e.IsDir():
			if len(c.Files) < 3 {
				c.Files = append(c.Files, FileOf(dir, e))
			}
			c.Shards++
`,
		pkg: "hdfsckpt", test: "TestCopyOfATrainersDirectory",
	},
	{
		promise: "ckpt get copies all files of a directory of no known format",
		file:    "hdfsckpt/formats/formats.go",
		old:     `deepSpeed{}, ray{}, directory{}, huggingFace{}`,
		new:     `deepSpeed{}, ray{}, huggingFace{}`,
		pkg:     "cmd/yarn-submit", test: "TestNotUnderstood",
	},
	{
		promise: "where files are there that are not understood, ckpt ls says which, and how to name their form",
		file:    "cmd/yarn-submit/ckpt/ls.go",
		old:     `; there are %s\nSay how`,
		new:     `%.0s\nSay how`,
		pkg:     "cmd/yarn-submit", test: "TestNotUnderstood",
	},

	// Torn checkpoints.
	{
		promise: "a torn checkpoint of Trainer's is out of the way before tasks start",
		file:    "hdfsckpt/repair.go",
		old: `	if starts {
`,
		new: `	if false {
`,
		pkg: "hdfsckpt", test: "TestTornIsMovedAside/Trainer's/local",
	},
	{
		promise: "a checkpoint without the file that the job's spec says is written last is out of the way before tasks start",
		file:    "hdfsckpt/aside.go",
		old:     `format.Search{Rule: rule, Chosen: true}`,
		new:     `format.Search{Rule: func(format.Rule) format.Rule { return format.Rule{} }(rule), Chosen: true}`,
		pkg:     "hdfsckpt", test: "TestTornIsMovedAside/by_a_marker_of_one's_own/local",
	},
	{
		promise: "a torn file of torch.save is out of the way before tasks start",
		file:    "hdfsckpt/repair.go",
		old: `	if starts {
`,
		new: `	if false {
`,
		pkg: "hdfsckpt", test: "TestTornIsMovedAside/files_of_torch.save/local",
	},
	{
		promise: "a torn checkpoint of torch.distributed.checkpoint is out of the way before tasks start",
		file:    "hdfsckpt/formats/dcp.go",
		old: `	c.Certain = c.Shards > 0
`,
		new: ``,
		pkg: "hdfsckpt", test: "TestTornIsMovedAside/distributed/local",
	},
	{
		promise: "a torn directory step-N is out of the way before tasks start",
		file:    "hdfsckpt/repair.go",
		old: `	if starts {
`,
		new: `	if false {
`,
		pkg: "hdfsckpt", test: "TestTornIsMovedAside/step-N/local",
	},
	{
		promise: "a program's own directories are not moved aside, whatever is missing in them",
		file:    "hdfsckpt/aside.go",
		old:     `return !c.Certain || c.State != format.Torn && c.State != format.InProgress || c.Name == "." ||`,
		new:     `return c.Whole() || c.Name == "." ||`,
		pkg:     "hdfsckpt", test: "TestTornIsMovedAside/a_program's_own_checkpoint-N/local",
	},
	{
		promise: "what is moved aside is kept, and can be had back as it was",
		file:    "hdfsckpt/aside.go",
		old: `		err = s.Rename(ctx, a.Name, a.Where)
`,
		new: `		err = store.RemoveOwn(ctx, s, a.Name)
`,
		pkg: "hdfsckpt", test: "TestTornIsMovedAside/Trainer's/local",
	},
	{
		promise: "the job's event log says what was moved aside, and to where",
		file:    "hdfsckpt/repair.go",
		old: `	for i, a := range r.Aside {
`,
		new: `	for i, a := range r.Aside[:0] {
`,
		pkg: "cmd/yarn-submit", test: "TestTornAndLost/kill,_20",
	},
	{
		promise: "what was moved aside goes by itself after 30 days, not before",
		file:    "hdfsckpt/aside.go",
		old:     `if time.Now().After(a.until()) {`,
		new:     `if true {`,
		pkg:     "hdfsckpt", test: "TestTornIsMovedAside/Trainer's/local",
	},
	{
		promise: "while others run, what was written to lately is not taken for torn",
		file:    "hdfsckpt/aside.go",
		old:     `age > 0 && (c.Inferred || time.Since(c.Time) < age)`,
		new:     `age > 0 && c.Inferred`,
		pkg:     "hdfsckpt", test: "TestTornOfTheLivingStays/local",
	},
	{
		promise: "while anything is being written, nothing is moved aside",
		file:    "hdfsckpt/aside.go",
		old:     `if writing, err := writers.Writing(ctx, s); err != nil || writing {`,
		new:     `if _, err := writers.Writing(ctx, s); err != nil {`,
		pkg:     "hdfsckpt", test: "TestTornOfTheLivingStays/local",
	},
	{
		promise: "what another user has left torn and may not be moved is told, and the rest is moved",
		file:    "hdfsckpt/aside.go",
		old:     `if errors.Is(err, fs.ErrPermission) {`,
		new:     `if errors.Is(err, fs.ErrPermission) && false {`,
		pkg:     "hdfsckpt", test: "TestTornOfAnotherUser",
	},
	{
		promise: "before tasks start again, a torn checkpoint is out of the way: after a loss that the master saw",
		file:    "am/checkpoint/preparer.go",
		old: `	if allDown && len(others) == 0 {
`,
		new: `	if false {
`,
		pkg: "cmd/yarn-submit", test: "TestTornAndLost/kill,_20",
	},
	{
		promise: "before a job starts anew, a torn checkpoint is out of the way: after a loss that nobody saw",
		file:    "hdfsckpt/repair.go",
		old: `	if starts {
`,
		new: `	if false {
`,
		pkg: "cmd/yarn-submit", test: "TestTornAndLost/silently,_20",
	},
	{
		promise: "the first save of Trainer's, of which nothing but its model is there, is known to be torn",
		file:    "hdfsckpt/mount/dir.go",
		old:     `formats.BeginSave(ctx, f.store, p); err != nil {`,
		new:     `formats.BeginSave(ctx, f.store, "."); err != nil {`,
		pkg:     "cmd/yarn-submit", test: "TestTornAndLost/kill,_10",
	},

	// What a program removes or replaces.
	{
		promise: "whatever the script removes stays readable once: Trainer's",
		file:    "hdfsckpt/retain/retain.go",
		old: `	if err := b.begin(ctx, removed, c); err != nil {
		return false, err
	}
	return true, b.take(ctx, file)
`,
		new: `	return false, nil
`,
		pkg: "hdfsckpt", test: "TestRetainedOfEachFormat/Trainer's/local",
	},
	{
		promise: "whatever the script saves over stays readable once: torch.save",
		file:    "hdfsckpt/format/format.go",
		old:     `InPlace: true, `,
		new:     ``,
		pkg:     "hdfsckpt", test: "TestReplacedIsRetained/local",
	},
	{
		promise: "what Ray Train has not listed is not complete",
		file:    "hdfsckpt/formats/ray.go",
		old:     `			case complete:`,
		new:     `			case complete || listed != nil:`,
		pkg:     "hdfsckpt", test: "TestRayCheckpoints",
	},
	{
		promise: "a model of XGBoost whose end is missing is torn",
		file:    "hdfsckpt/formats/xgboost.go",
		old:     `if !ubjsonEnd.Match(end) {`,
		new:     `if false {`,
		pkg:     "hdfsckpt", test: "TestXGBoostCheckpoints",
	},
	{
		promise: "a file of MXNet whose end is missing is torn",
		file:    "hdfsckpt/formats/mxnet.go",
		old:     `f.fail(onefile.CutOff(fmt.Errorf("it ends %s", f.where)))`,
		new:     `f.fail(fmt.Errorf("it ends %s", f.where))`,
		pkg:     "hdfsckpt", test: "TestMXNetIsCut",
	},
	{
		promise: "arrays of MXNet without the optimizer's states that the others have are torn",
		file:    "hdfsckpt/formats/mxnet.go",
		old:     `s.no == 1 && s.all > 1 {`,
		new:     `s.no == 1 && s.all < 1 {`,
		pkg:     "hdfsckpt", test: "TestMXNetCheckpoints",
	},
	{
		promise: "where older checkpoints stay, one that is removed is gone",
		file:    "hdfsckpt/retain/retain.go",
		old:     `if others >= enough {`,
		new:     `if others >= 1000*enough {`,
		pkg:     "hdfsckpt", test: "TestRemovedWhereOlderOnesStay/local",
	},
	{
		promise: "what was being replaced when its program was lost comes back",
		file:    "hdfsckpt/repair.go",
		old:     `if report.Restored, err = retain.Repair(ctx, s, age > 0); err != nil {`,
		new:     `if _ = retain.Repair; err != nil {`,
		pkg:     "hdfsckpt", test: "TestReplacementThatNeverCame/nobody_runs",
	},
	{
		promise: "files of an old and of a new save are never taken for one checkpoint",
		file:    "hdfsckpt/retain/backup.go",
		old:     `if marker := b.name(b.Marker); b.Marker != "" && marker != file {`,
		new:     `if marker := b.name(b.Marker); false && marker != file {`,
		pkg:     "hdfsckpt", test: "TestReplacedIsRetained/local",
	},
	{
		promise: "while other tasks run, what another program may still be saving over is not put back",
		file:    "hdfsckpt/retain/repair.go",
		old:     `return c.Whole() && (!live || c.Traits().Steady), nil`,
		new:     `return c.Whole(), nil`,
		pkg:     "hdfsckpt", test: "TestRestoredWhileOthersRun",
	},
	{
		promise: "what a save by fewer ranks leaves of the one that it saves over is no part of the new one",
		file:    "hdfsckpt/formats/dcp.go",
		old: `			leaveOut(c, need)
`,
		new: ``,
		pkg: "hdfsckpt", test: "TestSavedOverByFewerRanks/local",
	},
	{
		promise: "what a save by fewer ranks leaves of the one that it saves over is retained with the rest of that",
		file:    "hdfsckpt/retain/changes.go",
		old: `	if err := Replaced(ctx, c.Store, name); err != nil {
		c.Log(name, err)
	}
`,
		new: ``,
		pkg: "hdfsckpt/mount", test: "TestSavedOverByFewerRanks",
	},
	{
		promise: "what was removed can be gone back to",
		file:    "hdfsckpt/rollback.go",
		old: `		if err := retain.Restore(ctx, s, p.To); err != nil {
`,
		new: `		if err := error(nil); err != nil {
			_ = retain.Restore
`,
		pkg: "hdfsckpt", test: "TestRollbackToWhatWasRemoved/local",
	},
	{
		promise: "what a script removes or saves over through its checkpoint path stays readable once",
		file:    "hdfsckpt/retain/changes.go",
		old: `	return Removing(ctx, c.Store, name)
`,
		new: `	return false, nil
`,
		pkg: "cmd/yarn-submit", test: "TestWhatAScriptRemovesStays",
	},
	{
		promise: "checkpoints with long names of many non-ASCII characters are sealed and retained",
		file:    "hdfsckpt/store/records.go",
		old: `	if len(escaped) <= longestEntry {
		return escaped
	}
`,
		new: `	if len(escaped) > 0 {
		return escaped
	}
`,
		pkg: "hdfsckpt", test: "TestNamesOfManyBytes/local",
	},

	// Logs and directories.
	{
		promise: "what fsync(2) has said yes to is there, though the file was new and its writer is killed",
		file:    "hdfsckpt/mount/handle.go",
		old: `	w.grows = w.grows || in.Flags&(syscall.O_APPEND|syscall.O_TRUNC) == syscall.O_APPEND
`,
		new: ``,
		pkg: "hdfsckpt/mount", test: "TestNewLogOutlivesItsWriter",
	},
	{
		promise: "a file is of the group of the directory that it is written to",
		file:    "hdfsckpt/mount/area/area.go",
		old: `	s := a.stages[birth]
`,
		new: `	s := a.stages[birth]
	if s == nil {
		s = &stage{dir: area}
	}
`,
		pkg: "hdfsckpt/mount", test: "TestFilesAreOfTheirDirectory",
	},

	// Jobs.
	{
		promise: "directories of old jobs are removed",
		file:    "client/submit/cleanup.go",
		old: `	if keep == 0 {
		return
	}
`,
		new: `	if keep >= 0 {
		return
	}
`,
		pkg: "cmd/yarn-submit", test: "TestOldJobsGo",
	},
	{
		promise: "the directory of a job that lives is not removed, however long it runs",
		file:    "client/submit/cleanup.go",
		old:     ` && isUnchanged(ctx, home, jobs.Directory(e.Name), keep) && `,
		new:     ` && `,
		pkg:     "cmd/yarn-submit", test: "TestOldJobsGo",
	},
	{
		promise: "a second job on a checkpoint directory is refused, and told which the first is",
		file:    "client/submit/exclusive.go",
		old:     `	case len(living) > 0:`,
		new:     `	case len(living) > 0 && false:`,
		pkg:     "cmd/yarn-submit", test: "TestTornAndLost/silently,_20",
	},
	{
		promise: "a second job above or below the first one's checkpoint directory is refused, too",
		file:    "client/submit/exclusive.go",
		old:     `	for _, uri := range near {`,
		new:     `	for _, uri := range near[:0] {`,
		pkg:     "test/e2e", test: "TestTwoJobsOnOneDirectory/local",
	},
	{
		promise: "what another job may not have completed in a checkpoint directory below is left alone",
		file:    "hdfsckpt/repair.go",
		old:     `if _, is := r.Nested[name]; is {`,
		new:     `if _, is := r.Nested[name]; is && false {`,
		pkg:     "hdfsckpt", test: "TestAnotherStoreWithin/local",
	},
	{
		promise: "what another job is writing in a checkpoint directory below can be completed",
		file:    "hdfsckpt/temporaries.go",
		old:     `if dir != "." && slices`,
		new:     `if dir == "" && slices`,
		pkg:     "hdfsckpt", test: "TestAnotherStoreWithin/local",
	},
	{
		promise: "a job that was lost silently does not count as another one for ever",
		file:    "hdfsckpt/writers/heartbeat.go",
		old: `		if beats {
			alive = append(alive, job)
`,
		new: `		if beats || job != own {
			alive = append(alive, job)
`,
		pkg: "hdfsckpt", test: "TestOtherJobs/local",
	},
	{
		promise: "a job that was lost silently can write no longer once another has begun",
		file:    "hdfsckpt/writers/heartbeat.go",
		old: `			err = errors.Join(err, Fence(ctx, s, w))
`,
		new: `			err = errors.Join(err, nil)
`,
		pkg: "hdfsckpt", test: "TestOtherJobs/local",
	},
	{
		promise: "a job that is told to share its checkpoint directory may use one that another job writes to",
		file:    "client/submit/exclusive.go",
		old:     `	case c.Share:`,
		new:     `	case c.Share && false:`,
		pkg:     "test/e2e", test: "TestTwoJobsOnOneDirectory/local",
	},
}
