package mutation

import (
	"testing"
	"time"
)

func TestLongEachStorageRuleHasATestThatFailsWithoutIt(t *testing.T) {
	eachFailsWithout(t)
}

// storageRules: what lies in the user's directory is the user's. Their tests need no
// cluster.
var storageRules = []rule{
	// The user's own files.
	{
		promise: "a file called checkpoint that is the user's own is left alone",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `if !known || before.Foreign {`,
		new:     `if before.Foreign && !known {`,
		pkg:     "hdfsckpt", test: "TestUsersFileCheckpoint/a_text/local",
	},
	{
		promise: "a directory in which no saver has named one gets no file called checkpoint",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `if !known || before.Foreign {`,
		new:     `if !known && !before.Missing || before.Foreign {`,
		pkg:     "hdfsckpt", test: "TestUsersFileCheckpoint/weights_that_no_saver_has_named/local",
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
		old:     `err == nil && strings.HasSuffix(to, linkMark) && same(p.lock, p.path) {`,
		new:     `err == nil && to != "" && same(p.lock, p.path) {`,
		pkg:     "container", test: "TestTheUsersLinkStays/linked",
	},
	{
		promise: "an agent does not wait forever for a lock that another program has on the checkpoint directory",
		file:    "container/stage/mountpoint.go",
		old:     `unix.LOCK_SH|unix.LOCK_NB)`,
		new:     `unix.LOCK_SH)`,
		pkg:     "container", test: "TestADirectoryThatAnotherProgramHasLocked", limit: 4 * time.Minute,
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

	{
		promise: "a submission changes nothing in the user's directory, no time either, once Holdfast has a directory of its own there",
		file:    "client/submit/check.go",
		old:     `[]string{path.Dir(writers.Dir("any")), store.OwnDir, "."}`,
		new:     `[]string{".", path.Dir(writers.Dir("any"))}`,
		pkg:     "cmd/yarn-submit", test: "TestTheUsersDirectoryStays",
	},
	{
		promise: "a checkpoint directory in which the user may make no files is refused though .holdfast in it can be written",
		file:    "client/submit/check.go",
		old:     `return store.MayWrite(ctx, s, ".")`,
		new:     `return nil`,
		pkg:     "client/submit", test: "TestWhetherADirectoryIsWritable",
	},

	// Files that belong together.
	{
		promise: "a directory of Trainer's is one checkpoint",
		file:    "hdfsckpt/formats/formats.go",
		old:     `directory{}, pytorch.HuggingFaceFormat{}, pytorch.Safe`,
		new:     `pytorch.Safe`,
		pkg:     "hdfsckpt", test: "TestTrainersDirectories",
	},
	{
		promise: "files of one save that are of no known format are one checkpoint, which prune does not take apart",
		file:    "hdfsckpt/formats/formats.go",
		old:     `directory{}, pytorch.HuggingFaceFormat{}`,
		new:     `pytorch.HuggingFaceFormat{}`,
		pkg:     "hdfsckpt", test: "TestFilesThatBelongTogether",
	},
	{
		promise: "a TensorFlow checkpoint among others in a directory named after a step belongs to it",
		file:    "hdfsckpt/formats/directory.go",
		old:     `		if !others {`,
		new:     `		if others = false; !others {`,
		pkg:     "hdfsckpt", test: "TestABundleAmongOthersBelongsToItsDirectory",
	},
	{
		promise: "a torn TensorFlow checkpoint in a directory that a program chooses by its step is out of the way before tasks start",
		file:    "hdfsckpt/format/walk.go",
		old:     `if left := w.Chosen && partOf == "" && hasPointer(f); !left`,
		new:     `if left := w.Chosen && hasPointer(f); !left`,
		pkg:     "hdfsckpt", test: "TestABundleAmongOthersBelongsToItsDirectory",
	},
	{
		promise: "a file among others in a directory named after a step belongs to it, of whatever format it is",
		file:    "hdfsckpt/formats/directory.go",
		old:     `		if !d.Rule.Finds(f) {`,
		new:     `		if !d.Rule.Finds(f) || f.Traits().Kind != pytorch.Torch {`,
		pkg:     "hdfsckpt", test: "TestAFileAmongOthersBelongsToItsDirectory/model.keras",
	},
	{
		promise: "a directory named after a step is torn if anything in it is by its own format's rules",
		file:    "hdfsckpt/format/walk.go",
		old:     `		w.found[i].tornBy(w.parts[w.found[i].Name])`,
		new:     `		_ = i`,
		pkg:     "hdfsckpt", test: "TestTornByWhatItHolds/safetensors_of_several_files_in_93/local",
	},
	{
		promise: "a directory named after a step is not moved since something of another step in it is torn",
		file:    "hdfsckpt/format/walk.go",
		old:     `p.State != Torn && p.State != InProgress || p.hasOwnStepIn(c)`,
		new:     `p.State != Torn && p.State != InProgress`,
		pkg:     "hdfsckpt", test: "TestStepsOfTheirOwnStayApart/local",
	},
	{
		promise: "a directory of Trainer's is torn if what FSDP has put into it is",
		file:    "hdfsckpt/formats/pytorch/huggingface.go",
		old:     `Take: []string{e.Name}, Inside: true, Check`,
		new:     `Take: []string{e.Name}, Check`,
		pkg:     "hdfsckpt", test: "TestWholeButForWhatItHolds/Trainer's/local",
	},
	{
		promise: "prune does not remove another job's checkpoints with the one in whose directory they lie",
		file:    "hdfsckpt/prune.go",
		old:     `within := storeWithin(&c, nested); within != ""`,
		new:     `within := storeWithin(&c, nested); false`,
		pkg:     "hdfsckpt", test: "TestPruneAroundAnotherStore/of_a_job_that_has_ended/local",
	},
	{
		promise: "another job's checkpoint directory is not moved aside with a torn checkpoint in which it lies",
		file:    "hdfsckpt/aside.go",
		old:     `within := storeWithin(&c, report.Nested); within != ""`,
		new:     `within := storeWithin(&c, report.Nested); false`,
		pkg:     "hdfsckpt", test: "TestTornAroundAnotherStore/local",
	},
	{
		promise: "checkpoints in a directory that is the number of a run have steps of their own",
		file:    "hdfsckpt/formats/directory.go",
		old:     `if d.Place, err = isPlace(d); d.Place || err != nil {`,
		new:     `if err != nil {`,
		pkg:     "hdfsckpt", test: "TestNumberedDirectories/a_seed/local",
	},
	{
		promise: "a rollback of one run, which is named by a number, leaves the others alone",
		file:    "hdfsckpt/format/checkpoint.go",
		old:     `	return IsNumber(dir) && (c.inPlace || !counts(dir, path.Base(c.Name)))`,
		new:     `	return IsNumber(dir) && false`,
		pkg:     "hdfsckpt", test: "TestRunsAreCountedApart/local",
	},
	{
		promise: "the checkpoints of two networks do not make room for one another",
		file:    "hdfsckpt/format/names.go",
		old:     `			glued && !isStep && !measured, unicode`,
		new:     `			unicode`,
		pkg:     "hdfsckpt", test: "TestSeriesAreToldApart/two_networks/local",
	},
	{
		promise: "checkpoints are of one series whatever the sign of what was measured",
		file:    "hdfsckpt/format/names.go",
		old:     `			from-- // its sign`,
		new:     `			_ = from`,
		pkg:     "hdfsckpt", test: "TestSeriesAreToldApart/a_loss_that_falls_below_0/local",
	},
	{
		promise: "a file that only has the name of a model makes no checkpoint of its directory",
		file:    "hdfsckpt/formats/directory.go",
		old:     `		if c != nil {`,
		new:     `		if c != nil || ctx != nil {`,
		pkg:     "hdfsckpt", test: "TestOthersFilesInStepDirectories",
	},
	{
		promise: "whatever the script removes stays readable once: DeepSpeed's",
		file:    "hdfsckpt/formats/pytorch/deepspeed.go",
		old:     `[]string{latest, "global_step*"}`,
		new:     `nil`,
		pkg:     "hdfsckpt", test: "TestDeepSpeedIsRemoved/local",
	},
	{
		promise: "whatever the script removes stays readable once: Ray's, of which its list says nothing any longer",
		file:    "hdfsckpt/retain/view.go",
		old:     `was, _, err = c.WasSealed(ctx, b.s)`,
		new:     `_, _, err = c.WasSealed(ctx, b.s)`,
		pkg:     "hdfsckpt", test: "TestContract/ray/retain_removed",
	},
	{
		promise: "what is left alone of a directory that is being removed is not retained as a checkpoint by its own name",
		file:    "hdfsckpt/retain/view.go",
		old:     `path.Dir(c.Name) == b.Name && c.Traits().AloneInStepDir`,
		new:     `false && path.Dir(c.Name) == b.Name`,
		pkg:     "hdfsckpt", test: "TestContract/directory/retain_removed",
	},
	{
		promise: "what is left of a directory that is being removed is not retained as a checkpoint",
		file:    "hdfsckpt/retain/retain.go",
		old:     `err != nil || m == nil || !c.Agrees(m) {`,
		new:     `err != nil || m == nil && err != nil {`,
		pkg:     "hdfsckpt", test: "TestContract/directory/retain_removed",
	},
	{
		promise: "Lightning's directories of FSDP are retained with their meta.pt",
		file:    "hdfsckpt/formats/pytorch/lightning.go",
		old:     `|meta\.pt|`,
		new:     `|`,
		pkg:     "hdfsckpt", test: "TestLightningsMetadataIsRetained",
	},
	{
		promise: "what DeepSpeed's latest names and was removed is restored",
		file:    "hdfsckpt/repair_pointers.go",
		old: `		if back {
`,
		new: `		if back && dir == "" {
`,
		pkg: "hdfsckpt", test: "TestDeepSpeedIsRemoved/local",
	},
	{
		promise: "a start says that DeepSpeed's latest names what is not whole, and what to do",
		file:    "hdfsckpt/repair.go",
		old:     `	for _, l := range r.Lost {`,
		new:     `	for _, l := range r.Lost[:0] {`,
		pkg:     "hdfsckpt", test: "TestDeepSpeedPointer/local",
	},
	{
		promise: "what was sealed can be gone forward to again after a rollback",
		file:    "hdfsckpt/list.go",
		old:     `(c.State == format.Complete || was)`,
		new:     `(c.State == format.Complete || false && was)`,
		pkg:     "hdfsckpt", test: "TestDeepSpeedRollsForward",
	},
	{
		promise: "an export of TensorFlow's is one checkpoint",
		file:    "hdfsckpt/formats/formats.go",
		old:     `plain{}, savedModel{}, `,
		new:     `plain{}, `,
		pkg:     "hdfsckpt", test: "TestSavedModels",
	},
	{
		promise: "an export whose saved_model.pb was cut off is not complete",
		file:    "hdfsckpt/formats/savedmodel.go",
		old:     `return onefile.CutOff(fmt.Errorf("it has %d bytes, and a graph`,
		new:     `return error(fmt.Errorf("it has %d bytes, and a graph`,
		pkg:     "hdfsckpt", test: "TestSavedModelIsCut",
	},
	{
		promise: "a pointer of TensorFlow's is never pointed at an export",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `return c.Kind != p.Traits().Kind })`,
		new:     `return false })`,
		pkg:     "hdfsckpt", test: "TestPointerAndExports",
	},
	{
		promise: "a torn file of Lightning's is moved aside",
		file:    "hdfsckpt/formats/pytorch/torch.go",
		old:     `sure || a.pickled && suffixOf(f.Name) == ".ckpt"`,
		new:     `sure`,
		pkg:     "hdfsckpt", test: "TestTornLightning",
	},
	{
		promise: "an archive called *.ckpt that torch.save has not written is left alone",
		file:    "hdfsckpt/formats/pytorch/torch.go",
		old:     `sure || a.pickled && suffixOf(f.Name) == ".ckpt"`,
		new:     `sure || suffixOf(f.Name) == ".ckpt"`,
		pkg:     "hdfsckpt", test: "TestTornLightning",
	},
	{
		promise: "where files are there that are not understood, the page says which",
		file:    "hdfsckpt/inspect/browser.go",
		old:     `if len(found.Checkpoints) == 0 {`,
		new:     `if len(found.Checkpoints) == 0 && false {`,
		pkg:     "am/web", test: "TestFilesThatAreNotUnderstood",
	},
	{
		promise: "prune keeps what was saved together with what it keeps",
		file:    "hdfsckpt/prune.go",
		old:     `reason == "" && c.Whole() && name != ""`,
		new:     `reason == "" && c.Whole() && name == "."`,
		pkg:     "hdfsckpt", test: "TestPruneKeepsWhatWasSavedTogether",
	},
	{
		promise: "prune leaves last.ckpt alone",
		file:    "hdfsckpt/prune.go",
		old:     `case c.NamedStep() == format.NoStep:`,
		new:     `case c.Step == format.NoStep:`,
		pkg:     "hdfsckpt", test: "TestLightningsLast",
	},
	{
		promise: "a directory of Trainer's without the random state of its last rank is not complete",
		file:    "hdfsckpt/formats/pytorch/huggingface.go",
		old:     `		if ok && n > 1 {`,
		new:     `		if ok && n > 1<<40 {`,
		pkg:     "hdfsckpt", test: "TestTrainersRanks",
	},
	{
		promise: "a directory of Orbax's of which a data file was cut off is moved aside, though it has its name",
		file:    "hdfsckpt/formats/orbax.go",
		old:     `c.State, c.Certain = format.Torn, c.Step != format.NoStep`,
		new:     `c.State = format.Torn`,
		pkg:     "hdfsckpt", test: "TestContract/orbax/torn",
	},
	{
		promise: "a directory step-N is not complete by the files in it where those beside it have a marker",
		file:    "hdfsckpt/formats/plain.go",
		old:     `case c.Kind != Plain && inUnmarked(c, marks):`,
		new:     `case c.Kind == Directory && inUnmarked(c, marks):`,
		pkg:     "hdfsckpt", test: "TestMarkedBesideUnmarked",
	},
	{
		promise: "a torn file that lies alone in a directory named after its step is moved aside with that",
		file:    "hdfsckpt/aside.go",
		old:     `err == nil && len(entries) == len(c.Files)`,
		new:     `err == nil && len(entries) < len(c.Files)`,
		pkg:     "hdfsckpt", test: "TestMarkedBesideUnmarked",
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
		old:     `	case !all[0].Whole():`,
		new:     `	case false:`,
		pkg:     "hdfsckpt", test: "TestRollback/local",
	},
	{
		promise: "prune removes nothing where what is in a checkpoint may not be removed",
		file:    "hdfsckpt/prune.go",
		old:     `mayChange(ctx, s, p.Remove, within...)`,
		new:     `mayChange(ctx, s, p.Remove, within[:0]...)`,
		pkg:     "hdfsckpt/inspect", test: "TestChangesBeginTogether",
	},
	{
		promise: "rollback and prune change none of several directories where one cannot be changed",
		file:    "hdfsckpt/inspect/plan.go",
		old:     `if err := may(c); err != nil {`,
		new:     `if err := may(c); false && err != nil {`,
		pkg:     "hdfsckpt/inspect", test: "TestChangesBeginTogether",
	},
	{
		promise: "no directory of a job is rolled back under a job that has begun while another one was waited for",
		file:    "hdfsckpt/inspect/plan.go",
		old: `	if err := hdfsckpt.NobodyElseWrites(ctx, s, r.jobOf, r.lost); err != nil {
		return err
	}
`,
		new: ``,
		pkg: "hdfsckpt/inspect", test: "TestAJobBeginsWhileARollbackWaits",
	},
	{
		promise: "a step that means several checkpoints is refused",
		file:    "client/checkpoints/checkpoints.go",
		old: `	case 1:
		return &found[0], nil
`,
		new: `	default:
		return &found[0], nil
`,
		pkg: "cmd/yarn-submit", test: "TestAStepThatMeansSeveral",
	},
	{
		promise: "who asks for a checkpoint that is not there is told which there are, by what means one of them",
		file:    "client/checkpoints/checkpoints.go",
		old:     `	if c.Step == format.NoStep || slices.ContainsFunc(`,
		new:     `	if false && slices.ContainsFunc(`,
		pkg:     "client/checkpoints", test: "TestWhatThereIsCanBeAskedFor",
	},
	{
		promise: "a step means the whole checkpoint of it, where one beside it is torn",
		file:    "client/checkpoints/checkpoints.go",
		old: `	found = prefer(found, func(c Chosen) bool { return c.Whole() })
`,
		new: ``,
		pkg: "cmd/yarn-submit", test: "TestAStepThatMeansSeveral",
	},
	{
		promise: "ckpt get copies nothing into the checkpoint directory itself, by whatever path it is named",
		file:    "hdfsckpt/copy.go",
		old:     `		if within {`,
		new:     `		if within && false {`,
		pkg:     "cmd/yarn-submit", test: "TestGetLeavesTheProgramsDirectory",
	},
	{
		promise: "what is in the way of a pointer is found before a rollback changes anything",
		file:    "hdfsckpt/rollback.go",
		old: `	_, err := p.readPointer(ctx, s, path.Dir(name))
	return err
`,
		new: `	_ = name
	return nil
`,
		pkg: "cmd/yarn-submit", test: "TestDirectoriesOfAJobChangeTogether",
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
		old:     `directory{}, pytorch.HuggingFaceFormat{}`,
		new:     `pytorch.HuggingFaceFormat{}`,
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
		file:    "hdfsckpt/formats/pytorch/dcp.go",
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
		old: `			err = s.Rename(ctx, p.Name, a.at(p.Name))
`,
		new: `			err = store.RemoveOwn(ctx, s, p.Name)
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
		old:     `by == writers.Tasks && (c.Inferred || time.Since(c.Time) < age)`,
		new:     `by == writers.Tasks && c.Inferred`,
		pkg:     "hdfsckpt", test: "TestTornOfTheLivingStays/local",
	},
	{
		promise: "while observers run, what is torn is moved aside although it is young",
		file:    "hdfsckpt/aside.go",
		old:     `by == writers.Tasks && (c.Inferred || time.Since(c.Time) < age)`,
		new:     `by != writers.Nobody && (c.Inferred || time.Since(c.Time) < age)`,
		pkg:     "hdfsckpt", test: "TestTornWhileObserversRun/local",
	},
	{
		promise: "while observers run, what one of them is saving stays",
		file:    "hdfsckpt/aside.go",
		old:     `if err == nil && by == writers.Observers && len(list) > 0 {`,
		new:     `if false {`,
		pkg:     "hdfsckpt", test: "TestAnObserverSaves",
	},
	{
		promise: "while observers run, what was being saved over is restored",
		file:    "hdfsckpt/retain/repair.go",
		old:     `return c.Whole() && (by != writers.Tasks || c.Traits().Steady), nil`,
		new:     `return c.Whole() && (by == writers.Nobody || c.Traits().Steady), nil`,
		pkg:     "hdfsckpt", test: "TestRestoredWhileOthersRun",
	},
	{
		promise: "an observer that runs keeps nothing from being put right before the others start again",
		file:    "am/core/start.go",
		old:     `return t.state.active() && !t.optional() }),`,
		new:     `return t.state.active() }),`,
		pkg:     "am/core", test: "TestAllRestartBesideAnObserver",
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
		promise: "what was moved aside is told whatever came after it",
		file:    "am/checkpoint/preparer.go",
		old:     `		now, err := p.prepareOnce(ctx, c, by, lost)`,
		new: `		done = nil
		now, err := p.prepareOnce(ctx, c, by, lost)`,
		pkg: "am/checkpoint", test: "TestWhatWasDoneIsToldWhateverCameAfterIt/at_first",
	},
	{
		promise: "what was moved aside is told where a preparation fails",
		file:    "am/checkpoint/preparer.go",
		old:     `if len(done) > 0 {`,
		new:     `if err == nil && len(done) > 0 {`,
		pkg:     "am/checkpoint", test: "TestWhatWasDoneIsToldWhateverCameAfterIt/for_good",
	},
	{
		promise: "an application master prepares a checkpoint directory once at a time",
		file:    "am/prepare.go",
		old: `		if early != nil {
			if !valid {`,
		new: `		if early != nil && valid {
			if !valid {`,
		pkg: "am", test: "TestOnePreparationAtATime",
	},
	{
		promise: "before tasks start again, a torn checkpoint is out of the way: after a loss that the master saw",
		file:    "am/checkpoint/preparer.go",
		old:     `if len(others) == 0 {`,
		new:     `if false {`,
		pkg:     "cmd/yarn-submit", test: "TestTornAndLost/kill,_20",
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
		promise: "what is recorded of a pointer goes with its directory",
		file:    "hdfsckpt/repair.go",
		old:     `, format.ForgetPointerFiles(ctx, s))`,
		new:     `)`,
		pkg:     "hdfsckpt", test: "TestRecordsGoWithTheirDirectories",
	},
	{
		promise: "that a program's format is its own is forgotten with its directory",
		file:    "hdfsckpt/formats/pytorch/huggingface_begun.go",
		old:     `return begunSaves.Forget(ctx, s)`,
		new:     `return nil`,
		pkg:     "hdfsckpt", test: "TestRecordsGoWithTheirDirectories",
	},
	{
		promise: "a file called .index of another program's, in a directory of a checkpoint, makes no damaged bundle of it",
		file:    "hdfsckpt/formats/tensorflow.go",
		old:     `if d.Part && len(b.data) == 0 {`,
		new:     `if false && d.Part && len(b.data) == 0 {`,
		pkg:     "hdfsckpt", test: "TestAnIndexOfAnotherKind",
	},
	{
		promise: "where a format is named, a bundle makes no directory of that",
		file:    "hdfsckpt/formats/directory.go",
		old:     `if bundled && d.Rule.Finds(tensorFlow{}) {`,
		new:     `if bundled {`,
		pkg:     "hdfsckpt", test: "TestABundleIsNotOfAnotherFormat",
	},
	{
		promise: "the number of a run's directory is no step of a bundle in it",
		file:    "hdfsckpt/formats/tensorflow.go",
		old:     `c.Step == format.NoStep && !place && format`,
		new:     `c.Step == format.NoStep && format`,
		pkg:     "hdfsckpt", test: "TestABundleInADirectoryOfARun",
	},
	{
		promise: "of a preparation that another one follows, no failure is told",
		file:    "am/prepare.go",
		old:     `notes = slices.Concat(notes, done, failed)`,
		new:     `notes = slices.Concat(notes, early.failed, done, failed)`,
		pkg:     "am", test: "TestAnEarlyFailureIsNotTold",
	},
	{
		promise: "the first save of Trainer's, of which nothing but its model is there, is known to be torn",
		file:    "hdfsckpt/mount/dir.go",
		old:     `formats.BeginSave(ctx, f.store, p, true); err != nil {`,
		new:     `formats.BeginSave(ctx, f.store, ".", true); err != nil {`,
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
		old:     `return len(others) < enough ||`,
		new:     `return len(others) < 1000*enough ||`,
		pkg:     "hdfsckpt", test: "TestRemovedWhereOlderOnesStay/local",
	},
	{
		promise: "of all that a script removes the newest stays readable: it is removed while older ones are there",
		file:    "hdfsckpt/retain/retain.go",
		old:     `return len(others) < enough || !slices.ContainsFunc(others, func(o saved) bool { return !x.after(o) })`,
		new:     `return len(others) < enough`,
		pkg:     "hdfsckpt", test: "TestOfAllThatIsRemovedTheNewestStays",
	},
	{
		promise: "of all that a script removes the newest stays readable: it was removed before older ones",
		file:    "hdfsckpt/retain/retain.go",
		old:     `} else if is != nil && is.Whole() {`,
		new:     `} else if false && is != nil {`,
		pkg:     "hdfsckpt", test: "TestOfAllThatIsRemovedTheNewestStays",
	},
	{
		promise: "of a program that has gone back to a lower step, what it saves since is retained",
		file:    "hdfsckpt/retain/retain.go",
		old:     `|| wentBack(r.saved) {`,
		new:     `|| false && wentBack(r.saved) {`,
		pkg:     "hdfsckpt", test: "TestRetainedOfAProgramThatHasGoneBack",
	},
	{
		promise: "whatever the script removes stays readable once: a file below a directory that is the number of a run",
		file:    "hdfsckpt/formats/formats.go",
		old:     `if !slices.ContainsFunc(all, func(has format.Owner) bool { return has.Checkpoint == o.Checkpoint }) {`,
		new:     `if len(all) == 0 {`,
		pkg:     "hdfsckpt", test: "TestContract/torch/below_numbers",
	},
	{
		promise: "of what lies in directories of steps, one of a series is retained",
		file:    "hdfsckpt/format/names.go",
		old:     `if IsStepDir(d) && (hasStepWord(d) || !counted) {`,
		new:     `if false && IsStepDir(d) && !counted {`,
		pkg:     "hdfsckpt", test: "TestRetainedOfDirectoriesOfSteps",
	},
	{
		promise: "a directory step-N is a checkpoint with all that is below it",
		file:    "hdfsckpt/formats/plain.go",
		old: `c := &format.Checkpoint{Name: d.Name, Kind: Plain, Step: format.StepAfterDash(d.Name), State: format.Torn}
`,
		new: `c := &format.Checkpoint{Name: d.Name, Kind: Plain, Step: format.StepAfterDash(d.Name), State: format.Torn}
	d.Entries = slices.DeleteFunc(d.Entries, store.Info.IsDir)
`,
		pkg: "hdfsckpt", test: "TestContract/plain,_with_directories/retain_removed",
	},
	{
		promise: "what was being replaced when its program was lost comes back",
		file:    "hdfsckpt/repair.go",
		old:     `if report.Restored, err = retain.Repair(ctx, s, by); err != nil {`,
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
		old:     `return c.Whole() && (by != writers.Tasks || c.Traits().Steady), nil`,
		new:     `return c.Whole(), nil`,
		pkg:     "hdfsckpt", test: "TestRestoredWhileOthersRun",
	},
	{
		promise: "what a save by fewer ranks leaves of the one that it saves over is no part of the new one",
		file:    "hdfsckpt/formats/pytorch/dcp.go",
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
		old: `		if err := retain.Restore(ctx, s, *c); err != nil {
`,
		new: `		if err := error(nil); err != nil {
			_ = retain.Restore
`,
		pkg: "hdfsckpt", test: "TestRollbackToWhatWasRemoved/local",
	},
	{
		promise: "what a script removes or saves over through its checkpoint path stays readable once",
		file:    "hdfsckpt/retain/changes.go",
		old: `	return Removing(ctx, c.Store, c.Area, name)
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
	{
		promise: "what is made in a store for the files of one directory does not stay there until the program ends",
		file:    "hdfsckpt/mount/area/area.go",
		old: `		a.removeOld(ctx)
`,
		new: ``,
		pkg: "hdfsckpt/mount", test: "TestWhatIsMadeForADirectoryIsRemoved",
	},
	{
		promise: "a directory in which a file is about to be made is not removed before",
		file:    "hdfsckpt/mount/area/area.go",
		old:     `s.live() || s.users > 0 {`,
		new:     `s.live() {`,
		pkg:     "hdfsckpt/mount/area", test: "TestADirectoryThatIsAboutToBeWrittenTo",
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
		old:     ` || !isUnchanged(ctx, home, jobs.Directory(e.Name), keep) {`,
		new:     ` {`,
		pkg:     "cmd/yarn-submit", test: "TestOldJobsGo",
	},
	{
		promise: "the directory of a job that is not known to have ended is not removed",
		file:    "client/submit/cleanup.go",
		old:     `			case ended && !yield(e, nil):`,
		new:     `			case (ended || true) && !yield(e, nil):`,
		pkg:     "cmd/yarn-submit", test: "TestOldJobsGo",
	},
	{
		promise: "a local job of another machine with the same home directory does not count as ended",
		file:    "client/jobs/local.go",
		old:     ` && m.place.Host == here.Host:`,
		new:     `:`,
		pkg:     "client/jobs", test: "TestALocalJobBelongsToAMachine",
	},
	{
		promise: "what has changed during its upload is not under the digest that it had before",
		file:    "client/submit/upload.go",
		old:     `err == nil && sum != "" && read != sum {`,
		new:     `err == nil && sum == "none" && read != sum {`,
		pkg:     "client/submit", test: "TestWhatChangesDuringAnUpload",
	},
	{
		promise: "nothing stays on HDFS of an upload that is interrupted before it has its name",
		file:    "client/submit/upload.go",
		old:     `context.WithTimeout(context.WithoutCancel(ctx), cluster.Timeout)`,
		new:     `context.WithTimeout(ctx, cluster.Timeout)`,
		pkg:     "client/submit", test: "TestAnUploadIsInterrupted",
	},
	{
		promise: "a second job on a checkpoint directory is refused, and told which the first is",
		file:    "client/submit/exclusive.go",
		old:     `	case len(living) > 0:`,
		new:     `	case len(living) > 0 && false:`,
		pkg:     "client/submit", test: "TestADirectoryBelongsToTheJobThatWaits",
	},
	{
		promise: "a local job whose application master runs is not fenced off, although it sends no heartbeat",
		file:    "client/jobs/local.go",
		old:     "	}\n	return Alive\n}",
		new:     "	}\n	return Unknown\n}",
		pkg:     "client/submit", test: "TestALocalJobThatIsStopped",
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

	// Pointers, torn ones and what is removed, of each format.
	{
		promise: "a file called checkpoint that TensorFlow has written is made again when it is lost",
		file:    "hdfsckpt/repair_pointers.go",
		old: `	case before.Missing:
`,
		new: `	case before.Missing:
		return nil, false, nil
	case false:
`,
		pkg: "hdfsckpt", test: "TestSaversFileIsKnown/start,_lost/local",
	},
	{
		promise: "a file called checkpoint does not name a torn one when tasks start",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `return c.Whole() || c.State == format.Unchecked, fmt.Sprintf(`,
		new:     `return true, fmt.Sprintf(`,
		pkg:     "hdfsckpt", test: "TestRepair/names_a_torn_one",
	},
	{
		promise: "a file called checkpoint does not name one that is gone when tasks start",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `return false, fmt.Sprintf("it named %s, which is not there", base), nil`,
		new:     `return true, "", nil`,
		pkg:     "hdfsckpt", test: "TestRepair/names_one_that_is_gone",
	},
	{
		promise: "a file that once could be read as TensorFlow's is known to be its own",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `if before.Named() && !known {`,
		new:     `if false {`,
		pkg:     "hdfsckpt", test: "TestSaversFileIsKnown/start,_cut/local",
	},
	{
		promise: "a checkpoint directory that does not answer at a job's end takes no time from the others",
		file:    "am/checkpoint/preparer.go",
		old: `		wg.Go(func() {
			done, err := f(c)`,
		new: `		wg.Wait()
		wg.Go(func() {
			done, err := f(c)`,
		pkg: "am/checkpoint", test: "TestADirectoryThatDoesNotAnswerKeepsNoOtherFromItsEnd",
	},
	{
		promise: "a checkpoint that cannot be read keeps no other from being sealed",
		file:    "am/checkpoint/sealer.go",
		old:     `failed = append(failed, err) // which is no reason not to seal the others`,
		new:     `return again, err`,
		pkg:     "am/checkpoint", test: "TestWhatCannotBeReadKeepsNothingElseFromBeingSealed",
	},
	{
		promise: "a file called checkpoint that a saver wrote is recorded as its own when its checkpoints are sealed",
		file:    "am/checkpoint/sealer.go",
		old:     `if err := format.RememberPointers(ctx, store, list); err != nil {`,
		new:     `if err := format.RememberPointers(ctx, store, nil); err != nil {`,
		pkg:     "am", test: "TestASaverIsRemembered",
	},
	{
		promise: "a save that its program could not name any more is gone on from",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `best, err = p.savedSince(ctx, dir, before, list); err`,
		new:     `best, err = p.savedSince(ctx, dir, before, nil); err`,
		pkg:     "hdfsckpt", test: "TestRepairAfterAnUnsaidSave/local",
	},
	{
		promise: "who writes an earlier step into the file called checkpoint goes on from that",
		file:    "hdfsckpt/repair_pointers.go",
		old:     ` || !c.Time.After(at.Written)`,
		new:     ``,
		pkg:     "hdfsckpt", test: "TestAChoiceByHandStays/an_earlier_step,_by_hand/local",
	},
	{
		promise: "an earlier step that somebody puts beside the program's is not gone on from",
		file:    "hdfsckpt/repair_pointers.go",
		old:     ` || c.Step <= step`,
		new:     ``,
		pkg:     "hdfsckpt", test: "TestAChoiceByHandStays/an_earlier_step,_put_there_later/local",
	},
	{
		promise: "the job's event log says what was done to the file called checkpoint",
		file:    "am/checkpoint/preparer.go",
		old: `	done = append(done, report.Lines()...)
	if len(others) > 0 {`,
		new: `	if len(others) > 0 {`,
		pkg: "am", test: "TestTheStoreIsPreparedBeforeARestart",
	},
	{
		promise: "a torn file of safetensors is out of the way before tasks start",
		file:    "hdfsckpt/formats/pytorch/safetensors.go",
		old:     `c.State, c.Certain = format.Torn, f.Size > 0 || c.Step != format.NoStep`,
		new:     `c.State = format.Torn`,
		pkg:     "hdfsckpt", test: "TestSafetensors",
	},
	{
		promise: "a checkpoint of safetensors in several files of which one is missing is out of the way before tasks start",
		file:    "hdfsckpt/formats/pytorch/safetensors.go",
		old:     `c.State, c.Certain = format.Torn, true`,
		new:     `c.State = format.Torn`,
		pkg:     "hdfsckpt", test: "TestSafetensors",
	},
	{
		promise: "a checkpoint of safetensors in several files of which one is cut off is out of the way before tasks start",
		file:    "hdfsckpt/formats/pytorch/safetensors.go",
		old:     `c.State, c.Certain = format.Torn, counted`,
		new:     `c.State = format.Torn`,
		pkg:     "hdfsckpt", test: "TestSafetensors",
	},
	{
		promise: "a torn checkpoint of several files is moved aside with all of them",
		file:    "hdfsckpt/aside.go",
		old:     `a.Parts = filesBeforeName(&c)`,
		new:     `a.Parts = nil`,
		pkg:     "hdfsckpt", test: "TestContract/mxnet/torn",
	},
	{
		promise: "a torn file of Keras, XGBoost, LightGBM or MXNet is out of the way before tasks start",
		file:    "hdfsckpt/format/onefile/onefile.go",
		old:     `c.State, c.Why, c.Certain = format.Torn, wrong.Error(), true`,
		new:     `c.State, c.Why = format.Torn, wrong.Error()`,
		pkg:     "hdfsckpt", test: "TestXGBoostCheckpoints",
	},
	{
		promise: "a directory of Orbax's of which a file is lost is out of the way before tasks start",
		file:    "hdfsckpt/formats/orbax.go",
		old:     `c.State, c.Certain = format.Torn, c.Step != format.NoStep`,
		new:     `c.State = format.Torn`,
		pkg:     "hdfsckpt", test: "TestTornIsMovedAside/Orbax's/local",
	},
	{
		promise: "what a save has left under the name of one that has not ended is out of the way, by a time of quiet too",
		file:    "hdfsckpt/formats/plain.go",
		old:     `c.Why, c.Certain = "its name is that of a save that has not ended", true`,
		new:     `c.Why = "its name is that of a save that has not ended"`,
		pkg:     "hdfsckpt", test: "TestTornIsMovedAside/by_a_time_of_quiet/local",
	},
	{
		promise: "for how long directories of old jobs stay can be set",
		file:    "client/submit/cleanup.go",
		old:     `text := os.Getenv(EnvKeepJobs)`,
		new:     `text := os.Getenv("")`,
		pkg:     "cmd/yarn-submit", test: "TestOldJobsGo",
	},
	{
		promise: "whatever the script removes stays readable once: a file of safetensors",
		file:    "hdfsckpt/formats/pytorch/safetensors.go",
		old: `	return []format.Owner{format.SavedInPlace(name)}
`,
		new: `	return []format.Owner{format.SavedInPlace(name)}[:0]
`,
		pkg: "hdfsckpt", test: "TestRetainedOfEachFormat/safetensors/local",
	},
	{
		promise: "whatever the script removes stays readable once: a checkpoint that is one file",
		file:    "hdfsckpt/format/onefile/onefile.go",
		old: `	return []format.Owner{format.SavedInPlace(file)}
`,
		new: `	return nil
`,
		pkg: "hdfsckpt", test: "TestRetainedOfEachFormat/LightGBM/local",
	},
	{
		promise: "the states beside a file of MXNet's are retained with it",
		file:    "hdfsckpt/formats/mxnet.go",
		old:     `all[0] = format.SavedInPlace(name + mxnetSuffix)`,
		new:     `all[0] = format.SavedInPlace(name)`,
		pkg:     "hdfsckpt", test: "TestMXNetIsRetained",
	},
	{
		promise: "what was moved aside gives its space back after 30 days",
		file:    "hdfsckpt/aside.go",
		old:     `if time.Now().After(a.until()) {`,
		new:     `if false {`,
		pkg:     "hdfsckpt", test: "TestAsideGoesAfterItsTime/local",
	},
	{
		promise: "a directory step-N without COMMITTED is out of the way where the spec says that the program writes one",
		file:    "hdfsckpt/formats/plain.go",
		old:     `case r.Format == Plain || marks[path.Dir(c.Name)]:`,
		new:     `case marks[path.Dir(c.Name)]:`,
		pkg:     "hdfsckpt", test: "TestTornIsMovedAside/step-N,_as_the_spec_says/local",
	},

	// Rollbacks where programs take what is newest.
	{
		promise: "after a rollback nothing of a later step is where the program looks",
		file:    "hdfsckpt/rollback_moves.go",
		old: `	case step > p.To.Step:
		return true, nil
`,
		new: `	case step > p.To.Step:
		return c.Whole(), nil
`,
		pkg: "hdfsckpt", test: "TestRollbackWithoutAPointer/torch/local",
	},
	{
		promise: "what is called the last is moved aside when the copy that takes its place is there",
		file:    "hdfsckpt/rollback_moves.go",
		old:     `return p.order(&m) > 0`,
		new:     `return m.Step != p.To.Step`,
		pkg:     "hdfsckpt", test: "TestTheLastIsMovedWhenItsCopyIsMade",
	},
	{
		promise: "after a rollback what is called the last is the one that was gone back to",
		file:    "hdfsckpt/rollback_moves.go",
		old: `			p.Copies = append(p.Copies, c.Name)
		}
		return !same, nil
`,
		new: `			_ = c
		}
		return !same, nil
`,
		pkg: "hdfsckpt", test: "TestRollbackOfLightnings/files/local",
	},
	{
		promise: "after a rollback what has no step and is younger is not taken as the newest",
		file:    "hdfsckpt/rollback_moves.go",
		old:     `return c.Time.After(youngest), nil`,
		new:     `return false, nil`,
		pkg:     "hdfsckpt", test: "TestRollbackOfLightnings/files/local",
	},
	{
		promise: "what a pointer decides about stays where it is",
		file:    "hdfsckpt/rollback_moves.go",
		old:     `return !hasPointer(kind)`,
		new:     `return true`,
		pkg:     "hdfsckpt", test: "TestRollbackOfSeveralOfAStep",
	},
	{
		promise: "a rollback that is broken off between two files of a checkpoint keeps them together",
		file:    "hdfsckpt/rollback_moves.go",
		old: `		if !left {
			continue
		}
`,
		new: `		if !left || true {
			continue
		}
`,
		pkg: "hdfsckpt", test: "TestLongRollbackIsBrokenOffAnywhere/several_files_each",
	},
	{
		promise: "a rollback that is broken off before it has copied what is called the last does so the next time",
		file:    "hdfsckpt/rollback_moves.go",
		old: `		if !there {
			p.Copies = append(p.Copies, a.Name)
		}
`,
		new: `		_ = there
`,
		pkg: "hdfsckpt", test: "TestLongRollbackIsBrokenOffAnywhere/files,_and_what_is_called_the_last",
	},
	{
		promise: "a directory is removed with the temporary files in it",
		file:    "hdfsckpt/store/records.go",
		old: `		entries, err := ListAll(ctx, s, dir)
		for`,
		new: `		entries, err := s.List(ctx, dir)
		for`,
		pkg: "hdfsckpt/store", test: "TestLocal/removed_with_all_that_is_in_it",
	},
	{
		promise: "a directory is removed with what is put into it meanwhile",
		file:    "hdfsckpt/store/records.go",
		old:     `removeTries = 4`,
		new:     `removeTries = 1`,
		pkg:     "hdfsckpt/store", test: "TestWhatComesMeanwhileIsRemoved",
	},
	{
		promise: "what a rollback moved is sealed when it is restored",
		file:    "hdfsckpt/aside.go",
		old: `	err := a.moveManifests(ctx, s, func(name string) (from, to string) {
		return path.Join(a.entry, asideManifests, path.Base(manifest.Path(name))), manifest.Path(name)
	})
`,
		new: `	var err error
`,
		pkg: "hdfsckpt", test: "TestRollbackWithoutAPointer/torch/local",
	},
	{
		promise: "the start after a rollback does not restore what the checkpoint had replaced that lies aside",
		file:    "hdfsckpt/aside.go",
		old: `		err := s.Rename(ctx, a.backup(), path.Join(a.entry, asideRetained))
`,
		new: `		var err error
`,
		pkg: "hdfsckpt", test: "TestRollbackOfWhatWasSavedOver/local",
	},
	{
		promise: "what is retained can be gone back to though what has its name is torn",
		file:    "hdfsckpt/rollback_moves.go",
		old:     `r.WithBackup = !p.restoresFrom(`,
		new:     `r.WithBackup = true || !p.restoresFrom(`,
		pkg:     "hdfsckpt", test: "TestRollbackToWhatIsRetainedUnderWhatIsTorn/a_file_that_was_saved_over",
	},
	{
		promise: "what a former version has moved away though it was to go back to it can be gone back to",
		file:    "hdfsckpt/aside.go",
		old:     `(r.WithBackup || a.Step != r.ToStep)`,
		new:     `true`,
		pkg:     "hdfsckpt", test: "TestRollbackOfAFormerVersion",
	},
	{
		promise: "a rollback that dies while it restores what is retained is gone on with",
		file:    "hdfsckpt/rollback.go",
		old:     `retain.Restorable(ctx, s)`,
		new:     `retain.List(ctx, s)`,
		pkg:     "hdfsckpt", test: "TestRollbackToWhatIsRetainedUnderWhatIsTorn/a_directory_that_was_saved_over",
	},
	{
		promise: "what was restored replaces nothing",
		file:    "hdfsckpt/rollback_moves.go",
		old:     `return true, nil // it is not whole, or would have been chosen`,
		new:     `return false, nil`,
		pkg:     "hdfsckpt", test: "TestRollbackAfterTheProgramWentOn/local",
	},
	{
		promise: "what was moved of a checkpoint is not removed because the rest could not be",
		file:    "hdfsckpt/store/records.go",
		old: `		if !e.IsDir() || e.Link {
			return fmt.Errorf("%s is in %s: %w", e.Name, dir, syscall.ENOTEMPTY)
		}
`,
		new: `		if !e.IsDir() {
			if err := s.Remove(ctx, path.Join(dir, e.Name)); err != nil {
				return err
			}
			continue
		}
`,
		pkg: "hdfsckpt", test: "TestAMoveFailsHalfway",
	},
	{
		promise: "a move aside of which the answer was lost has been made",
		file:    "hdfsckpt/aside.go",
		old:     `statErr == nil && there {`,
		new:     `statErr == nil && there && false {`,
		pkg:     "hdfsckpt", test: "TestAnAnswerIsLost",
	},
	{
		promise: "a rollback does not go on from what was changed since it was planned",
		file:    "hdfsckpt/rollback_moves.go",
		old:     `		if err := sameFiles(ctx, s, c); err != nil {`,
		new:     `		if err := error(nil); err != nil && c.Name != "" {`,
		pkg:     "hdfsckpt", test: "TestRollbackOfWhatHasChanged",
	},
	{
		promise: "a rollback of Ray's leaves no checkpoint in the list that is not there",
		file:    "hdfsckpt/formats/ray.go",
		old:     `i < len(l.results) && gone(rayName(r)) ||`,
		new:     `false ||`,
		pkg:     "hdfsckpt", test: "TestRollbackWithoutAPointer/ray/local",
	},
	{
		promise: "the page has a rollback for checkpoints of every format",
		file:    "hdfsckpt/inspect/describe.go",
		old:     `return c.Complete && c.named }`,
		new:     `return c.Complete && c.named && c.Current }`,
		pkg:     "am/web", test: "TestNewerCheckpointsAreMovedAside",
	},
	{
		promise: "what another saver has saved is no save that the program did not come to name",
		file:    "hdfsckpt/repair_pointers.go",
		old:     ` || format.Shape(path.Base(c.Name)) != format.Shape(target)`,
		new:     ``,
		pkg:     "hdfsckpt", test: "TestAnotherSaversCheckpoint/saved_later,_and_not_named/local",
	},
	{
		promise: "what another saver's file names is its own, whatever it is called",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `!named[path.Base(c.Name)] && (best`,
		new:     `!named[""] && (best`,
		pkg:     "hdfsckpt", test: "TestAnotherSaversCheckpoint/called_alike,_and_named/local",
	},
	{
		promise: "in place of a torn checkpoint another of its series is named, if one is whole",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `s != shape || other[s]`,
		new:     `s != shape && false || other[s]`,
		pkg:     "hdfsckpt", test: "TestAnotherSaversCheckpoint/the_named_one_is_torn/local",
	},
	{
		promise: "a prune keeps the newest of each model, and the best one",
		file:    "hdfsckpt/format/checkpoint.go",
		old:     `return cmp.Or(SeriesOf(c.Name), c.Name) }`,
		new:     `return cmp.Or(SeriesDirOf(c.Name), c.Name) }`,
		pkg:     "hdfsckpt", test: "TestPruneKeepsOfEachSeries/the_best_one",
	},
	{
		promise: "what is pruned stays removed",
		file:    "hdfsckpt/prune.go",
		old:     `err := retain.Forget(ctx, s, c.Name); err != nil {`,
		new:     `err := error(nil); err != nil {`,
		pkg:     "hdfsckpt", test: "TestPrunedStaysRemoved/local",
	},
	{
		promise: "what is restored at the next start is not pruned",
		file:    "hdfsckpt/prune.go",
		old:     `} else if whole {`,
		new:     `} else if whole && false {`,
		pkg:     "hdfsckpt", test: "TestPrunedStaysRemoved/local",
	},
	{
		promise: "a prune leaves what checkpoints share with others by links",
		file:    "hdfsckpt/prune.go",
		old:     `return strings.HasPrefix(name, d+"/")`,
		new:     `return false && strings.HasPrefix(name, d+"/")`,
		pkg:     "hdfsckpt", test: "TestPruneLeavesWhatLinksLeadTo",
	},
	{
		promise: "a checkpoint is retained whatever the bytes of its name",
		file:    "hdfsckpt/store/records.go",
		old:     `replaceStrings(reflect.ValueOf(record), toRecord); changed {`,
		new:     `replaceStrings(reflect.ValueOf(record), toRecord); changed && false {`,
		pkg:     "hdfsckpt", test: "TestRetainedWhateverItsBytes/tensorflow",
	},
	{
		promise: "a directory goes with the links in it, wherever these lead",
		file:    "hdfsckpt/store/records.go",
		old:     `if e.IsDir() && !e.Link {`,
		new:     `if e.IsDir() {`,
		pkg:     "hdfsckpt/store", test: "TestLinksAreRemovedAndNotWhatTheyLeadTo",
	},
	{
		promise: "no start fails for a link that was moved aside",
		file:    "hdfsckpt/store/local.go",
		old: `			if to, err := l.root.Stat(path.Join(dir, e.Name())); err == nil {
				st = to
			}
`,
		new: `			if st, err = l.root.Stat(path.Join(dir, e.Name())); err != nil {
				continue
			}
`,
		pkg: "hdfsckpt", test: "TestLinksAsideGoAfterTheirTime",
	},
	{
		promise: "a link is moved aside though what it led to was moved before",
		file:    "hdfsckpt/aside.go",
		old:     `i, err := store.Lstat(ctx, s, p.Name)`,
		new:     `i, err := s.Stat(ctx, p.Name)`,
		pkg:     "hdfsckpt", test: "TestRollbackOfALinkedLast",
	},
	{
		promise: "what was moved aside goes after its time, though its removal was broken off",
		file:    "hdfsckpt/aside.go",
		old:     `for _, dir := range []string{asideRetained, asideManifests, asideFiles} {`,
		new:     `for _, dir := range []string{} {`,
		pkg:     "hdfsckpt", test: "TestAsideGoesThoughARemovalFailed",
	},

	// What is being written.
	{
		promise: "a truncation that fails loses nothing that is being written",
		file:    "hdfsckpt/mount/work.go",
		old: `	s, err := w.createTemporary(ctx)
	if err != nil {
		return err
	}
	w.discard()
`,
		new: `	w.discard()
	s, err := w.createTemporary(ctx)
	if err != nil {
		return err
	}
`,
		pkg: "hdfsckpt/mount", test: "TestAFailedTruncationLosesNothing",
	},
	{
		promise: "what is changed in a mapping stays in its place, though its descriptor appends",
		file:    "hdfsckpt/mount/requests.go",
		old:     `h.atEnd && in.WriteFlags&fuse.WRITE_CACHE == 0`,
		new:     `h.atEnd`,
		pkg:     "hdfsckpt/mount", test: "TestAMappedPageStaysInItsPlace",
	},
	{
		promise: "a rename that must not replace replaces nothing of another task",
		file:    "hdfsckpt/mount/rename.go",
		old:     `change = f.retaining.RenameNew`,
		new:     `change = f.retaining.Rename`,
		pkg:     "hdfsckpt/mount", test: "TestNoReplaceAmongTasks",
	},
	{
		promise: "a read that finds less because a flush has failed is no end of the file",
		file:    "hdfsckpt/mount/reader.go",
		old:     `return 0, err != nil, err`,
		new:     `return 0, false, err`,
		pkg:     "hdfsckpt/mount", test: "TestAReadTellsOfAFailedFlush",
	},
	{
		promise: "a DataNode that acks nothing is left, though it answers and gets heartbeats",
		file:    "internal/hadoop/hdfs/write/pipeline.go",
		old:     `if p.unacked++; p.unacked == 1 {`,
		new:     `if p.unacked++; true {`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestAFlushPastADataNodeThatAcksNothing",
	},
	{
		promise: "a DataNode whose ack is late is waited for, where data transfer is protected too",
		file:    "internal/hadoop/hdfs/transfer/wrapped.go",
		old:     `if errors.Is(err, os.ErrDeadlineExceeded) {`,
		new:     `if false && errors.Is(err, os.ErrDeadlineExceeded) {`,
		pkg:     "internal/hadoop/hdfs/transfer", test: "TestADeadlineLosesNothing",
	},
	{
		promise: "what has come of a protected message is not lost while the rest is late",
		file:    "internal/hadoop/hdfs/transfer/wrapped.go",
		old: `	if c.whole {
`,
		new: `	if true {
`,
		pkg: "internal/hadoop/hdfs/transfer", test: "TestADeadlineLosesNothing",
	},
	{
		promise: "DataNodes are reached while the NameNode is away, however long ago it was asked",
		file:    "internal/hadoop/hdfs/defaults/defaults.go",
		old: `		if old != nil {
			return old, nil
		}
`,
		new: ``,
		pkg: "internal/hadoop/hdfs/transfer", test: "TestTheNameNodeIsAway",
	},
	{
		promise: "a NameNode that is away costs those on their way to a DataNode little time",
		file:    "internal/hadoop/hdfs/defaults/defaults.go",
		old:     `ctx, cancel = context.WithTimeout(ctx, againLimit)`,
		new:     `ctx, cancel = context.WithTimeout(ctx, time.Hour)`,
		pkg:     "internal/hadoop/hdfs/transfer", test: "TestTheNameNodeIsAway",
	},
	{
		promise: "names on HDFS that differ in bytes that are not UTF-8 are never one file",
		file:    "internal/hadoop/hdfs/client.go",
		old:     `!utf8.ValidString(v.String())`,
		new:     `false && utf8.ValidString("")`,
		pkg:     "internal/hadoop/hdfs", test: "TestNamesThatAreNotUTF8",
	},
	{
		promise: "chmod takes the sticky and the set-group-ID bit from no directory that was to keep them",
		file:    "hdfsckpt/mount/attr.go",
		old:     `f.chmod(n, modeOf(mode))`,
		new:     `f.chmod(n, modeOf(mode&0o777))`,
		pkg:     "hdfsckpt/mount", test: "TestPosix/chmod:_the_sticky_bit",
	},
	{
		promise: "a local store keeps the bits of a directory that chmod asks for",
		file:    "hdfsckpt/store/local.go",
		old:     `mode&(fs.ModePerm|fs.ModeSticky|fs.ModeSetgid)`,
		new:     `mode&fs.ModePerm`,
		pkg:     "hdfsckpt/store", test: "TestLocal/attributes",
	},
	{
		promise: "a sealed checkpoint is not looked into at each save",
		file:    "hdfsckpt/format/judged.go",
		old:     `was := w.Judged.get(`,
		new:     `was := (*Judged)(nil).get(`,
		pkg:     "hdfsckpt", test: "TestSealedOnesAreLookedIntoOnce",
	},
	{
		promise: "a sealed checkpoint of which a file was changed is looked into again",
		file:    "hdfsckpt/format/judged.go",
		old:     ` || !was.ModTime.Equal(now.ModTime)`,
		new:     ``,
		pkg:     "hdfsckpt", test: "TestSealedOnesAreLookedIntoOnce",
	},
	{
		promise: "what a pointer, or another file beside a checkpoint, says of it is read each time",
		file:    "hdfsckpt/format/judged.go",
		old:     ` || hasPointer(f) || len(f.Traits().Beside) > 0 {`,
		new:     ` {`,
		pkg:     "hdfsckpt", test: "TestSealedOnesAreLookedIntoOnce",
	},
	{
		promise: "what Ray's list says of a checkpoint is read each time",
		file:    "hdfsckpt/format/judged.go",
		old:     ` || len(f.Traits().Beside) > 0 {`,
		new:     ` {`,
		pkg:     "hdfsckpt", test: "TestSealedOnesAreLookedIntoOnce",
	},
	{
		promise: "a program's own checkpoint-N stays once that has ended, in a directory of a long name, too",
		file:    "hdfsckpt/store/records.go",
		old:     `if !e.Mode.IsRegular() {`,
		new:     `if !e.Mode.IsRegular() || strings.Contains(e.Name, "%~") {`,
		pkg:     "hdfsckpt", test: "TestTornIsMovedAside/a_program's_own,_which_has_ended/local",
	},
	{
		promise: "a sealed checkpoint that Ray has just dropped from its list is no broken save",
		file:    "hdfsckpt/formats/ray.go",
		old:     `case c.State == format.Torn && err == nil:`,
		new:     `case false:`,
		pkg:     "hdfsckpt", test: "TestOneThatRayDroppedLastIsNoBrokenSave",
	},
	{
		promise: "a checkpoint that Ray's list does not name is torn unless it is what was sealed",
		file:    "hdfsckpt/format/checkpoint.go",
		old:     `return m != nil && c.Agrees(m), unread, err`,
		new:     `return m != nil, unread, err`,
		pkg:     "hdfsckpt", test: "TestOneThatRayDroppedLastIsNoBrokenSave",
	},
	{
		promise: "an ack of which a part is late is taken",
		file:    "internal/hadoop/hdfs/transfer/operation.go",
		old:     `await(r); err != nil && !errors`,
		new:     `await(r); err != nil && false && !errors`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestALateAck",
	},
	{
		promise: "who sends to a DataNode ends when that was found to have failed",
		file:    "internal/hadoop/hdfs/write/pipeline.go",
		old: `		p.f.cond.Broadcast()
	}
	p.conn.Close()
`,
		new: `		p.f.cond.Broadcast()
	}
`,
		pkg: "internal/hadoop/hdfs/write", test: "TestTheSenderDoesNotOutwaitTheProbe",
	},
	{
		promise: "what was flushed is seen, though it fills a block",
		file:    "internal/hadoop/hdfs/write/file.go",
		old: `	f.filled = p.end()
	return f.enqueue(p)
`,
		new: `	f.filled = p.end()
	if err := f.enqueue(p); err != nil || f.filled < f.blockSize {
		return err
	}
	return f.queueEnd()
`,
		pkg: "internal/hadoop/hdfs/write", test: "TestAFlushAtABlocksEdgeIsVisible",
	},
	{
		promise: "the first fsync of a file reaches the block that has just become full",
		file:    "internal/hadoop/hdfs/write/file.go",
		old: `	f.filled = p.end()
	return f.enqueue(p)
`,
		new: `	f.filled = p.end()
	if err := f.enqueue(p); err != nil || f.filled < f.blockSize {
		return err
	}
	return f.queueEnd()
`,
		pkg: "internal/hadoop/hdfs/write", test: "TestASyncAtABlocksEdge",
	},
	{
		promise: "what was drained up to a block's edge is on the disks after fsync",
		file:    "internal/hadoop/hdfs/write/flush.go",
		old:     `case tell && length == f.blockSize:`,
		new:     `case length == f.blockSize:`,
		pkg:     "internal/hadoop/hdfs/write", test: "TestADrainAtABlocksEdge",
	},
	{
		promise: "what fsync has confirmed is on the disks, though a connection ends with a block's last packet",
		file:    "internal/hadoop/hdfs/write/file.go",
		old: `	if f.syncEnds {
`,
		new: `	if false {
`,
		pkg: "internal/hadoop/hdfs/write", test: "TestBlocksEndOnTheDisks",
	},
	{
		promise: "what fsync has confirmed is on the disks of DataNodes that had the bytes already",
		file:    "internal/hadoop/hdfs/write/flush.go",
		old: `p.n > p.repeated {
`,
		new: `p.n > p.repeated {
		p.sync, sync = sync, false
`,
		pkg: "internal/hadoop/hdfs/write", test: "TestSyncThoughADataNodeFails",
	},

	// Several servers.
	{
		promise: "what Routers must not do twice is asked of one at a time",
		file:    "internal/hadoop/rpc/hedge.go",
		old:     `if index != first && !anywhere && !c.oneActive(asking, index) {`,
		new:     `if false {`,
		pkg:     "internal/hadoop/rpc", test: "TestACallIsMadeAtOneRouter",
	},
	{
		promise: "a change does not wait for a NameNode that hangs where another one has taken over",
		file:    "internal/hadoop/rpc/hedge.go",
		old: `	return c.oneIsActive
`,
		new: `	return false
`,
		pkg: "internal/hadoop/rpc", test: "TestOneOfAPairHangs",
	},
}
