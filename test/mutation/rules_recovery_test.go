package mutation

import (
	"testing"
	"time"
)

func TestLongEachRecoveryRuleHasATestThatFailsWithoutIt(t *testing.T) {
	eachFailsWithout(t)
}

// recoveryRules: a job that can go on does, what ended it is named, and nothing waits for
// ever. The simulator finds more of am/core (mutations).
var recoveryRules = []rule{
	// What hangs.
	{
		promise: "what is killed is of the attempt that was stopped, and not of the next one",
		file:    "container/attempt.go",
		old: `		if closed(a.done) { // killLeftovers has done it, or will
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), leftoverLimit)
		defer cancel()
		go func() {
			select {
			case <-a.done:
				cancel()
`,
		new: `		a.killing.Unlock()
		defer a.killing.Lock()
		ctx, cancel := context.WithTimeout(context.Background(), leftoverLimit)
		defer cancel()
		go func() {
			select {
`,
		pkg: "container", test: "TestWhatIsKilledIsOfTheAttemptThatWasStopped",
	},
	{
		promise: "a path means the same to all tasks",
		file:    "container/stage/workpath.go",
		old:     `	s.seen, s.point = path, point`,
		new:     `	s.point = point`,
		pkg:     "container", test: "TestAPathMeansTheSameInEveryContainer",
	},
	{
		promise: "no directory of somebody else's is taken for tasks' working directories",
		file:    "container/stage/workpath.go",
		old:     ` || at.Uid != uint32(os.Geteuid())`,
		new:     ``,
		pkg:     "container", test: "TestTheWorkPathIsLeftAsItWas/another's",
	},
	{
		promise: "a task does not go on when its working directory was removed from under it",
		file:    "container/sandbox/mountpoint.go",
		old:     `m.fuse != nil || m.isDir`,
		new:     `m.fuse != nil`,
		pkg:     "container", test: "TestTheDirectoryOfAMountIsRemoved/the_working_directory",
	},
	{
		promise: "a mount point in /tmp does not look unused",
		file:    "container/stage/mountpoint.go",
		old:     `_ = os.Chtimes(name, now, now)`,
		new:     `_, _ = name, now`,
		pkg:     "container/stage", test: "TestAMountPointDoesNotLookUnused",
	},
	{
		promise: "a TensorFlow 1 worker that comes back late does not wait for workers that have ended",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `return ["/job:ps", "/job:%s/task:%d" % (job, task)]`,
		new:     `return []`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "the signal by which the agent ends a launcher is not told as the reason of a failure",
		file:    "am/core/exit.go",
		old:     `&& e.Detail != "" && !e.Stopped:`,
		new:     `&& e.Detail != "":`,
		pkg:     "am/core", test: "TestTheSignalThatStopsIsNoReason",
	},
	{
		promise: "a parameter server that ends with exit code 0 is not said to have failed",
		file:    "am/core/exit.go",
		old:     `	case t.service() && e.Code == 0`,
		new:     `	case false && e.Code == 0`,
		pkg:     "am/core", test: "TestAServiceEnds",
	},
	{
		promise: "ranks that cannot save together any longer are not waited for",
		file:    "am/core/loss.go",
		old:     `t.role.SavesTogether && j.limits.Abandon`,
		new:     `false && j.limits.Abandon`,
		pkg:     "am/core", test: "TestRanksThatSaveTogether",
	},
	{
		promise: "what does not end although it is killed is given up, however often its agent comes and goes",
		file:    "am/core/task.go",
		old:     `a.left, a.until = min(a.left, a.until.Sub(since)), time.Time{}`,
		new:     `a.until = time.Time{}`,
		pkg:     "am/core", test: "TestWhatDoesNotEndWhereItsAgentComesAndGoes",
	},
	{
		promise: "an agent that could not end its task does not leave as if it had",
		file:    "container/agent.go",
		old:     `	case left != nil: // to close`,
		new:     `	case false: // to close`,
		pkg:     "container", test: "TestAnAgentLeavesWhatCannotBeKilled", limit: 5 * time.Minute,
	},
	{
		promise: "an agent that was told to end and does not loses its lease",
		file:    "am/agents/server.go",
		old:     `			if !s.isReleased(container) {`,
		new:     `			if true {`,
		pkg:     "am/agents", test: "TestTheLeaseOfWhoWasReleasedEnds",
	},
	{
		promise: "an agent that was connected anew is not told what was meant for it before",
		file:    "am/agents/server.go",
		old: `			s.mu.Unlock()
		}
		st.enqueue(single{m})
`,
		new: `			s.mu.Unlock()
		}
		s.send(container, m)
`,
		pkg: "am/agents", test: "TestWhatIsMeantForOneStream",
	},
	{
		promise: "what was killed under a master before this one is given up within what is left of the time for that",
		file:    "am/core/loss.go",
		old:     `		at.left = min(at.left, j.limits.Kill+s.KillIn)`,
		new:     `		_ = at.left`,
		pkg:     "am/core", test: "TestAStopIsTakenOver",
	},
	{
		promise: "an agent tells the next master that its attempt is to end",
		file:    "container/connection.go",
		old: `		h.Stopping = a.attempt.reportStop()
`,
		new: ``,
		pkg: "container", test: "TestTheNextMasterHearsWhatIsStopped", limit: 5 * time.Minute,
	},
	{
		promise: "why a task was lost last is told under another master, too",
		file:    "am/status/store.go",
		old:     `			if t.Why != "" || t.Parked {`,
		new:     `			if true {`,
		pkg:     "am/status", test: "TestTheLastLossIsTakenOver",
	},
	{
		promise: "when the next checkpoint is expected is told under another master, too",
		file:    "am/status/cadence.go",
		old:     `atMS != 0 && distance > 0`,
		new:     `false && distance > 0`,
		pkg:     "am/status", test: "TestTheCadenceIsTakenOver",
	},
	{
		promise: "what the job can do without does not end it by the loss of its containers",
		file:    "am/core/loss.go",
		old:     `	case !unneeded:`,
		new:     `	case true:`,
		pkg:     "am/core", test: "TestWhatIsNotNeededDoesNotEndTheJob",
	},
	{
		promise: "what the job can do without is not charged with want of memory in which nothing works",
		file:    "am/core/loss.go",
		old:     `c.OfMemory() && !j.unneeded(t)`,
		new:     `c.OfMemory()`,
		pkg:     "am/core", test: "TestWhatIsNotNeededDoesNotEndTheJob",
	},
	{
		promise: "who waits where others work keeps nobody from moving",
		file:    "am/core/moving.go",
		old:     `!(t.state == waiting && (t.optional() || j.unneeded(t)))`,
		new:     `true`,
		pkg:     "am/core", test: "TestWhoWaitsWhereOthersWorkKeepsNobodyFromMoving",
	},
	{
		promise: "who is to work and gives its container up before it starts keeps nobody waiting",
		file:    "am/core/loss.go",
		old:     `if t.together() && !t.parked && j.phase == jobRunning {`,
		new:     `if false {`,
		pkg:     "am/core", test: "TestAMemberIsLostBeforeItStarts",
	},
	{
		promise: "who has ended and is not wanted any longer leaves when the others start again",
		file:    "am/core/loss.go",
		old: `		if t.surplus {
			j.dismiss(t)
`,
		new: `		if false {
			j.dismiss(t)
`,
		pkg: "am/core", test: "TestWhoHasEndedIsSetAside",
	},
	{
		promise: "the loss of a parked task concerns nobody",
		file:    "am/core/loss.go",
		old:     `if unneeded && without {`,
		new:     `if false {`,
		pkg:     "am/core", test: "TestAGroupWaitsForAWhileForWhatItLost",
	},
	{
		promise: "the loss of a container of a parked task is no incident",
		file:    "am/core/loss.go",
		old:     `if unneeded && without {`,
		new:     `if false {`,
		pkg:     "am/status", test: "TestALostContainerOfAParkedTaskIsNoIncident",
	},
	{
		promise: "a group goes on without what the scheduler took",
		file:    "am/core/group.go",
		old:     `t.loss.cause != event.CausePreempted && j.waiting`,
		new:     `j.waiting`,
		pkg:     "am/core", test: "TestAGroupDoesNotWaitForWhatTheSchedulerTook",
	},
	{
		promise: "nobody starts before what is left behind is fenced",
		file:    "am/core/group.go",
		old:     `	if len(j.fenced()) > 0 || j.any(`,
		new:     `	if false && j.any(`,
		pkg:     "am/core", test: "TestNobodyStartsBeforeWhatIsLeftBehindIsFenced",
	},
	{
		promise: "what is left behind of a group meets none of those that go on",
		file:    "am/core/group.go",
		old: `	if j.leavesBehind() {
		j.changePorts()`,
		new: `	if false {
		j.changePorts()`,
		pkg: "am/core", test: "TestAGroupIsMetElsewhereWhereOneIsLeftBehind",
	},
	{
		promise: "a rank does not start before it listens where its peers look for it",
		file:    "am/core/start.go",
		old:     ` || t.awaitsPort() ||`,
		new:     ` ||`,
		pkg:     "am/core", test: "TestAGroupIsMetElsewhereWhereOneIsLeftBehind",
	},
	{
		promise: "ranks that are to be met elsewhere listen there",
		file:    "container/task.go",
		old:     `p, err := peers.HoldPort(number, cfg.Conf)`,
		new:     `p, err := t.port, error(nil)`,
		pkg:     "container", test: "TestWhatIsLeftBehindMeetsNobody",
	},
	{
		promise: "a warm interpreter that starts while an attempt ends is not ended with it",
		file:    "container/sandbox/process.go",
		old:     `if c.Standing {`,
		new:     `if false {`,
		pkg:     "container/sandbox", test: "TestAStandingProcessOutlivesAnAttempt",
	},
	{
		promise: "the first save of all is gone on from, though it was not named yet",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `	if !known && before.Missing {`,
		new:     `	if false {`,
		pkg:     "hdfsckpt", test: "TestTheFirstSaveOfAllIsGoneOnFrom",
	},
	{
		promise: "a mount records the first save of all",
		file:    "hdfsckpt/retain/changes.go",
		old:     `formats.BeginSave(ctx, c.Store, name, false)`,
		new:     `error(nil)`,
		pkg:     "hdfsckpt/mount", test: "TestTheFirstSaveOfAllIsGoneOnFrom",
	},
	{
		promise: "what a file of the program's names is no first save that was not named yet",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `err == nil && !named[path.Base(whole[0].Name)], err`,
		new:     `err == nil && named != nil, err`,
		pkg:     "hdfsckpt", test: "TestTheFirstSaveOfAllIsGoneOnFrom",
	},
	{
		promise: "a program that writes no pointer gets none",
		file:    "hdfsckpt/format/saves/saves.go",
		old:     `r.Own = !shown`,
		new:     `r.Own = false && shown`,
		pkg:     "hdfsckpt", test: "TestTheFirstSaveOfAllIsGoneOnFrom",
	},
	{
		promise: "what is only a part of a save leaves no record of a first one",
		file:    "hdfsckpt/formats/tensorflow.go",
		old:     ` && len(OwnersOf(name)) > 0`,
		new:     ``,
		pkg:     "hdfsckpt", test: "TestFirstSavesAreFewRecords",
	},
	{
		promise: "the record of a first save goes with its directory",
		file:    "hdfsckpt/format/saves/saves.go",
		old: `		if r.Own {
			of = r.dir()
		}
`,
		new: `		if r.Own {
			return nil
		}
`,
		pkg: "hdfsckpt", test: "TestFirstSavesAreFewRecords",
	},
	{
		promise: "what a user has put beside a first save keeps it from being gone on from",
		file:    "hdfsckpt/repair_pointers.go",
		old:     `	if len(whole) != 1 {`,
		new:     `	if len(whole) == 0 {`,
		pkg:     "hdfsckpt", test: "TestTheFirstSaveOfAllIsGoneOnFrom",
	},
	{
		promise: "the kernel kills a task as its agent dies",
		file:    "container/sandbox/guard.go",
		old:     `unix.O_NONBLOCK|unix.O_ASYNC)`,
		new:     `unix.O_NONBLOCK)`,
		pkg:     "container/sandbox", test: "TestTheTaskEndsWithItsAgent",
	},
	{
		promise: "also the groups that a task's programs make are killed as its agent dies",
		file:    "container/sandbox/guard.go",
		old: `	now := look(processes)
`,
		new: `	now := look(processes)
	if len(now) > 1 {
		return nil
	}
`,
		pkg: "container/sandbox", test: "TestTheTaskEndsWithItsAgent",
	},
	{
		promise: "guards of groups that have ended are given up",
		file:    "container/sandbox/guard.go",
		old:     `unix.Kill(-group, 0) == unix.ESRCH`,
		new:     `false`,
		pkg:     "container/sandbox", test: "TestGuardsOfGroupsThatComeAndGo",
	},
	{
		promise: "a task whose mount was taken away is killed",
		file:    "container/sandbox/mountpoint.go",
		old: `		case m.fuse != nil || m.isDir:
			return m.target
`,
		new: ``,
		pkg: "container/sandbox", test: "TestAMountThatIsTakenAway",
	},
	{
		promise: "a mount that was moved with its directory is noticed",
		file:    "container/sandbox/mountpoint.go",
		old:     `gone := errors.Is(err, fs.ErrNotExist) ||`,
		new:     `gone := errors.Is(err, fs.ErrPermission) ||`,
		pkg:     "container/sandbox", test: "TestAMountThatIsTakenAway",
	},
	{
		promise: "the end of a task whose mount was taken away is told with its reason",
		file:    "container/agent.go",
		old:     `	if err := a.box.MountRemoved(); err != nil {`,
		new:     `	if err := error(nil); err != nil {`,
		pkg:     "container", test: "TestTheDirectoryOfAMountIsRemoved",
	},
	{
		promise: "a bind over a file that is replaced is made again",
		file:    "container/sandbox/mountpoint.go",
		old:     `unix.Mount(m.source, m.target, "", unix.MS_BIND, "") == nil`,
		new:     `false`,
		pkg:     "container/sandbox", test: "TestABindIsMadeAgain",
	},
	{
		promise: "an agent's log is copied to its end before the job can end",
		file:    "container/agent.go",
		old: `		a.ownLog.Stop("") // once all agents have left, the job ends, and so does this container
`,
		new: ``,
		pkg: "container", test: "TestAnAgentsLogIsCopiedBeforeItLeaves",
	},
	{
		promise: "where ranks were met before, nobody listens",
		file:    "container/task.go",
		old: `		t.former = append(t.former, former)
`,
		new: `		former.Close()
`,
		pkg: "container", test: "TestWhatIsLeftBehindMeetsNobody",
	},
	{
		promise: "a rank that has left nothing half written waits, too, until what others have left is put right",
		file:    "am/core/group.go",
		old:     `return t.together() && t.dirty }) {`,
		new:     `return t.elastic() && t.dirty }) {`,
		pkg:     "am/core", test: "TestNobodyBeginsBeforeTheStoreIsPutRight",
	},
	{
		promise: "a group does not grow after a loss where the checkpoint needs as many as before",
		file:    "am/core/group.go",
		old:     `left[r] = min(left[r], members[r])`,
		new:     `left[r] = max(left[r], members[r])`,
		pkg:     "am/core", test: "TestAGroupDoesNotGrowWhereTheCheckpointForbidsIt",
	},
	{
		promise: "who a checkpoint needs does not leave, though fewer are wanted",
		file:    "am/core/requests.go",
		old: `	j.fixedWorld = fixedWorld
	j.keepSurplus()
`,
		new: `	j.fixedWorld = fixedWorld
`,
		pkg: "am/core", test: "TestWhoACheckpointNeedsStays",
	},
	{
		promise: "since when the others work without a task, another application master knows, too",
		file:    "am/core/takeover.go",
		old: `	t.absence = absence{journal.Time(r.ParkedSince), r.ParkedBy}
`,
		new: ``,
		pkg: "am/core", test: "TestAnotherMasterKnowsWhoIsInTheGroup",
	},
	{
		promise: "the first rank stays where the scheduler takes the last one's container, too",
		file:    "am/core/group.go",
		old:     `if first && last == nil`,
		new:     `if first && false && last == nil`,
		pkg:     "am/core", test: "TestTheFirstRankStays",
	},
	{
		promise: "a scheduler that says of no resources that they would do gets what it names",
		file:    "am/yarn/updates.go",
		old:     `p.Resources.MemoryMB == 0`,
		new:     `false`,
		pkg:     "am/yarn", test: "TestDriverTellsWhatIsAnnounced",
	},
	{
		promise: "with spares, a group does not wait for who has none",
		file:    "am/limits.go",
		old: `		l.LossWait = -1
`,
		new: ``,
		pkg: "am", test: "TestHowLongAnElasticJobWaits",
	},
	{
		promise: "a group waits for who gets a spare",
		file:    "am/core/start.go",
		old:     `j.holdsUpGang(t) && t.state == preparing && !t.unreachable()`,
		new:     `false`,
		pkg:     "am/core", test: "TestWhoGetsASpareIsWaitedFor",
	},
	{
		promise: "a task cannot have the job work with other numbers of tasks",
		file:    "am/server/authorize.go",
		old:     `proto.JobService_Scale_FullMethodName:       {jobtls.Client, true}`,
		new:     `proto.JobService_Scale_FullMethodName:       {jobtls.Agent, true}`,
		pkg:     "am/server", test: "TestPartiesMayCallOnlyTheirOwn",
	},
	{
		promise: "a group that grows does so seldom",
		file:    "am/core/group.go",
		old:     `len(j.grown) == growths`,
		new:     `false`,
		pkg:     "am/core", test: "TestAGroupThatGrowsDoesSoSeldom",
	},
	{
		promise: "a task whose container was preempted asks for another later",
		file:    "am/core/containers.go",
		old:     `	if n <= 0 {`,
		new:     `	if n <= 1000 {`,
		pkg:     "am/core", test: "TestWhatIsPreemptedAsksAgainLater",
	},
	{
		promise: "what the scheduler wants leaves, also where more tasks are wanted",
		file:    "am/core/requests.go",
		old:     `t.loc.leave.reason == journal.LeaveSurplus &&`,
		new:     `t.loc.leave.whateverNode() &&`,
		pkg:     "am/core", test: "TestWhatTheSchedulerWantsLeavesHoweverManyAreWanted",
	},
	{
		promise: "an agent that saves its logs at the job's end keeps its container, also without a connection",
		file:    "am/core/loss.go",
		old:     `j.ending() && !e.Orderly:`,
		new:     `false:`,
		pkg:     "am/core", test: "TestAnAgentThatSavesItsLogsIsAwaited",
	},
	{
		promise: "a group keeps its size where the checkpoint needs it",
		file:    "hdfsckpt/formats/pytorch/deepspeed.go",
		old:     ` RankFile: deepSpeedFile.MatchString,`,
		new:     ``,
		pkg:     "am/checkpoint", test: "TestACheckpointOfAFixedNumberOfRanks",
	},
	{
		promise: "a group keeps its size where another program's checkpoint has DeepSpeed's files in it",
		file:    "hdfsckpt/format/walk.go",
		old:     `c.FixedWorld = c.FixedWorld || w.isOfRank(path.Base(x.Name))`,
		new:     `c.FixedWorld = c.FixedWorld || path.Dir(x.Name) == c.Name && w.isOfRank(path.Base(x.Name))`,
		pkg:     "am/checkpoint", test: "TestACheckpointOfAFixedNumberOfRanks/Trainer's,_DeepSpeed",
	},
	{
		promise: "an attempt listens at once where the one before did",
		file:    "container/steer/supervisor.go",
		old:     `return s.letBind(fd, n, to.Port())`,
		new:     `return errNotOurs`,
		pkg:     "container/steer", test: "TestItsOwnPortIsFreeAtOnce",
	},
	{
		promise: "no connect goes to the address of a peer that was lost while that was looked up",
		file:    "container/steer/table.go",
		old: `	if t.isCut(w) {
		return nil, false
	}
`,
		new: ``,
		pkg: "container/steer", test: "TestAPeerThatIsLostWhileItsNameIsResolved", limit: 4 * time.Minute,
	},
	{
		promise: "a socket that a lost peer has refused can be connected to its successor",
		file:    "container/steer/cut.go",
		old:     `!unconnected(sock) && `,
		new:     ``,
		pkg:     "container/steer", test: "TestASocketThatWasRefusedByALostPeer",
	},
	{
		promise: "a command of exec that waits for a file system holds up no attempt",
		file:    "container/exec.go",
		old:     `launch.Argv(command.Dir, argv), "/"`,
		new:     `launch.Argv(command.Dir, argv)[3:], command.Dir`,
		pkg:     "container", test: "TestACommandWaitsForItsFileSystem", limit: 6 * time.Minute,
	},
	{
		promise: "a task that was killed since its directory was removed is not said to have been stopped in order",
		file:    "am/core/moving.go",
		old:     `o != nil && o.evicted {`,
		new:     `o != nil && false {`,
		pkg:     "am/core", test: "TestWhatIsToldOfATaskWhoseDirectoryWasRemoved",
	},
	{
		promise: "no task starts while a generation assembles, also not one outside of it whose agent has missed its start",
		file:    "am/core/containers.go",
		old: `	case unheard && t.state == running && j.phase == assembling: // it starts with the generation to come
		j.becomeReady(t)
`,
		new: ``,
		pkg: "am/core", test: "TestAnObserverIsNotStartedWhileAGenerationAssembles",
	},
	{
		promise: "where connections are forwarded, those of one job do not come out in another",
		file:    "container/task.go",
		old: `		t.peers.MoveTo(block)
`,
		new: ``,
		pkg: "container", test: "TestJobsOnOneNodeDoNotMeet",
	},
	{
		promise: "a spare takes no task that belongs into another image",
		file:    "am/core/spare.go",
		old:     `(s.task != nil || t.role.Image == "") && `,
		new:     ``,
		pkg:     "am/core", test: "TestASpareTakesNoTaskOfAnotherImage",
	},
	{
		promise: "XGBoost's tracker stays until all ranks have ended their work",
		file:    "runtime/python/_holdfast/xgboost.py",
		old:     `            group.wait_for_others()`,
		new:     `            pass`,
		pkg:     "runtime", test: "TestLongXGBoostInitializesByItself",
	},
	{
		promise: "a program that names its own machines of LightGBM keeps them",
		file:    "runtime/python/_holdfast/lightgbm.py",
		old:     `all(params.get(name) is None for name in _MACHINES)`,
		new:     `True`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "a node of Ray whose head was lost joins the next one",
		file:    "runtime/python/_holdfast/ray.py",
		old:     `        print("holdfast: Ray's head at %s is gone`,
		new:     `        return 1; print("holdfast: Ray's head at %s is gone`,
		pkg:     "runtime", test: "TestLongRayFindsItsCluster",
	},
	{
		promise: "a node of Ray sees that its head is another one, however soon that one listens",
		file:    "runtime/python/_holdfast/ray.py",
		old: `        if self._kept is None:
            return False
        try`,
		new: `        if True:
            return False
        try`,
		pkg: "runtime", test: "TestAWorkerOfRaySeesThatItsHeadIsAnother", hangs: true, limit: 45 * time.Second,
	},
	{
		promise: "a task that serves others is not given up for failing twice where they make steps",
		file:    "am/core/blame.go",
		old:     `(o == t || serves || `,
		new:     `(o == t || serves && false || `,
		pkg:     "am/core", test: "TestWhoServesOthersCanWorkIfTheyDo",
	},
	{
		promise: "a node of Ray is as large as its container",
		file:    "runtime/frameworks/ray.go",
		old:     `role.MemoryMb << 20 * 3 / 10`,
		new:     `int64(1) << 40`,
		pkg:     "runtime", test: "TestCommandsOfRay",
	},
	{
		promise: "device filters that a script sets are left as they are",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `            if _has_filters(server, config):`,
		new:     `            if False:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "a session whose graph needs another worker sees that worker",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `if not graph.finalized or any(self._elsewhere(d, job, task) for d in self._devices(graph)):`,
		new:     `if not graph.finalized:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "HOLDFAST_DEVICE_FILTERS=0 leaves sessions as they are",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `    if os.environ.get("HOLDFAST_DEVICE_FILTERS") == "1":`,
		new:     `    if os.environ.__setitem__("HOLDFAST_DEVICE_FILTERS", "1") is None:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "TensorFlow jobs get device filters without asking for them",
		file:    "runtime/frameworks/tensorflow.go",
		old: `		"HOLDFAST_DEVICE_FILTERS":   "1",
`,
		new: ``,
		pkg: "runtime", test: "TestTensorFlowVariables",
	},
	{
		promise: "a worker whose work is done stays while another one's session needs it",
		file:    "am/core/exit.go",
		old:     `case t.state == finishing, t.state == running && !j.peersNeeded:`,
		new:     `case t.state == finishing, t.state == running:`,
		pkg:     "am/core", test: "TestProcessesLingerForOthers",
	},
	{
		promise: "a worker whose work is done ends at once where no session needs it",
		file:    "am/core/exit.go",
		old:     `case t.state == finishing, t.state == running && !j.peersNeeded:`,
		new:     `case t.state == finishing:`,
		pkg:     "am/core", test: "TestNobodyLingersForNothing",
	},
	{
		promise: "another application master knows that workers are needed after their work",
		file:    "am/core/takeover.go",
		old: `	j.peersNeeded = r.PeersNeeded
`,
		new: ``,
		pkg: "am/core", test: "TestLingeringIsToldAgain",
	},
	{
		promise: "without a journal, it is known from the reports that workers are needed after their work",
		file:    "am/core/reconcile/reconcile.go",
		old: `	r.known.PeersNeeded = r.known.PeersNeeded || e.NeedsPeers
`,
		new: ``,
		pkg: "am/core", test: "TestWhoReportsLastNeedsTheOthers",
	},
	{
		promise: "who stays after its work is not restarted because no steps are made",
		file:    "am/core/stall.go",
		old:     `case t.notRunning() || t.optional() || t.state == lingering:`,
		new:     `case t.notRunning() || t.optional():`,
		pkg:     "am/core", test: "TestAStallIsNotTheFaultOfWhoLingers",
	},
	{
		promise: "who stays after its work moves off a node that is taken out of service",
		file:    "am/core/moving.go",
		old:     `case leaves && t.state.ongoing():`,
		new:     `case leaves && t.state == running:`,
		pkg:     "am/core", test: "TestWhoLingersMoves",
	},
	{
		promise: "a process that stays after its work is told of on each stream",
		file:    "container/connection.go",
		old:     `	if lingers {`,
		new:     `	if lingers && a.task == nil {`,
		pkg:     "container", test: "TestAProcessLingersUntilItIsLetEnd",
	},
	{
		promise: "a program that fails does not stay",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `if self._failed() or os.getpid() != self._process:`,
		new:     `if os.getpid() != self._process:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "the stacks of a process are those that it printed since they were asked for",
		file:    "container/exec.go",
		old:     `tasklog.Stacks(p.out.Since(printed[i]))`,
		new:     `tasklog.Stacks(p.out.Since(0 * printed[i]))`,
		pkg:     "container", test: "TestStacksAreThoseOfNow",
	},
	{
		promise: "the application master acts on stalls after the time that the job says",
		file:    "am/limits.go",
		old:     `l.Stall = orNone(c.Spec.RestartStalledMs)`,
		new:     `l.Stall = 0`,
		pkg:     "am", test: "TestStallsAreActedOn",
	},
	{
		promise: "a task is a straggler only once it was slow for as long as the job says",
		file:    "am/core/straggler.go",
		old:     `s.since.IsZero() && slow >= least {`,
		new:     `s.since.IsZero() && slow >= least/2 {`,
		pkg:     "am/core", test: "TestWhenAStragglerIsNamed",
	},
	{
		promise: "a task that pauses once is no straggler, however seldom steps are",
		file:    "am/core/straggler.go",
		old:     `time.Duration(s.known.Counts)*j.CountInterval()`,
		new:     `0*time.Duration(s.known.Counts)`,
		pkg:     "am/core", test: "TestWhoIsNoStraggler/one-that-pauses-while-steps-are-seldom",
	},
	{
		promise: "ranks of which none works most of the time do not wait for one of them",
		file:    "am/core/pace/speed.go",
		old:     `if s.Work < busyShare {`,
		new:     `if false {`,
		pkg:     "am/core", test: "TestWhoIsNoStraggler/ranks-that-wait-for-their-data",
	},
	{
		promise: "a slow rank is named by the steps that are made, however seldom one is told",
		file:    "am/core/pace/speed.go",
		old: `		made = span.steps
`,
		new: `		made = span.reports
`,
		pkg: "am/core", test: "TestASlowRankWhoseStepsAreToldSeldom",
	},
	{
		promise: "a straggler is moved no more often than the job says, whichever application master counts",
		file:    "am/core/takeover.go",
		old:     `Moves: t.history.moves,`,
		new:     `Moves: 0 * t.history.moves,`,
		pkg:     "am/core", test: "TestMovesOfStragglersAreCounted",
	},
	{
		promise: "a rank that is a straggler moves once a checkpoint is complete",
		file:    "am/core/straggler.go",
		old:     `return !t.together() || j.justSealed ||`,
		new:     `return true ||`,
		pkg:     "am/core", test: "TestTranscriptsOfStragglers/a-rank-moves-after-a-checkpoint",
	},
	{
		promise: "a stall that restarts do not end ends the job",
		file:    "am/core/stall.go",
		old:     `if j.pace.Tried <= stallTries {`,
		new:     `if true {`,
		pkg:     "am/core", test: "TestTranscriptsOfStalls/nothing-helps",
	},
	{
		promise: "a job that is ended because it stalls says where the silent task stood",
		file:    "am/core/stall.go",
		old:     `t.loss.why += "; it stood at " + innermost(e.Stack)`,
		new:     `_ = innermost(e.Stack)`,
		pkg:     "am/core", test: "TestTranscriptsOfStalls/nothing-helps",
	},
	{
		promise: "the event log tells of a stall before anything is done about it",
		file:    "am/core/stall.go",
		old:     `		j.record(nil, action.KindStalled, "no task has made a step for %s, %d times`,
		new:     `		_ = fmt.Sprintf("no task has made a step for %s, %d times`,
		pkg:     "am/core", test: "TestTranscriptsOfStalls/it-goes-on-by-itself",
	},
	{
		promise: "a task that is stopped for a stall is asked where it stands first",
		file:    "container/attempt.go",
		old:     `asked := stack && askForStacks(a.box.Processes())`,
		new:     `asked := false`,
		pkg:     "container", test: "TestStopAsksWhereAPythonProgramStands",
	},
	{
		promise: "a task that hangs is asked where it stands also with --stop-grace 0",
		file:    "container/attempt.go",
		old:     `asked := stack && askForStacks(a.box.Processes())`,
		new:     `asked := stack && grace > 0 && askForStacks(a.box.Processes())`,
		pkg:     "container", test: "TestStopAsksWhereAPythonProgramStands",
	},
	{
		promise: "the event log names the rank that failed as the reason why all start again",
		file:    "am/core/blame.go",
		old: `		reason = first
`,
		new: ``,
		pkg: "am/core", test: "TestTranscriptsOfBlame/the-culprit-ends-last",
	},
	{
		promise: "a rank that failed is charged with it also where the others go on without one that is silent",
		file:    "am/core/job.go",
		old:     `j.growGroup, j.leaveBehind, j.attributeFailure,`,
		new:     `j.attributeFailure, j.growGroup, j.leaveBehind,`,
		pkg:     "am/core", test: "TestAFailureIsChargedAlsoWhereOneIsLeftBehind",
	},
	{
		promise: "a task whose directory was removed leaves, also where YARN finds its container again",
		file:    "am/core/containers.go",
		old:     ` || j.past(t.loc.orphan.until) {`,
		new:     ` {`,
		pkg:     "am/core", test: "TestWhatHasLostItsDirectoryLeavesThoughItIsFound",
	},
	{
		promise: "another application master names the rank that failed, too",
		file:    "am/core/takeover.go",
		old:     `*r.Fault, r.Fault.Cause, r.Fault.Why`,
		new:     `*r.Fault, t.loss.cause, t.loss.why`,
		pkg:     "am/core", test: "TestTranscriptsOfBlame/another-application-master-judges",
	},
	{
		promise: "the event log says of a job that tells of no steps that it does not",
		file:    "am/core/stall.go",
		old: `		return j.quietDue()
`,
		new: `		return next.time
`,
		pkg: "am/core", test: "TestAJobWithoutSteps/none",
	},
	{
		promise: "the event log says of a job that tells of no steps that it does not, also where no journal was found",
		file:    "am/core/stall.go",
		old:     `return !j.pace.Measured() || j.pace.Guessed() && !j.anyStep()`,
		new:     `return !j.pace.Measured()`,
		pkg:     "am/core", test: "TestAJobWithoutSteps/no-journal-is-found",
	},
	{
		promise: "a program goes on from what parameter servers hold",
		file:    "container/process.go",
		old:     `given[proto.EnvKept] = "1"`,
		new:     `_ = given`,
		pkg:     "container", test: "TestAProgramIsToldThatTheModelIsKept",
	},
	{
		promise: "HOLDFAST_MODEL_KEPT=0 has a program restore the checkpoint in any case",
		file:    "container/process.go",
		old:     `s.ConsistentServerState && !own {`,
		new:     `s.ConsistentServerState && (own || !own) {`,
		pkg:     "container", test: "TestAProgramIsToldThatTheModelIsKept",
	},
	{
		promise: "Python programs can say where they stand",
		file:    "runtime/python/_holdfast/start.py",
		old:     `faulthandler.register(_signal.SIGQUIT, file=2, all_threads=True)`,
		new:     `pass`,
		pkg:     "container", test: "TestStopAsksWhereAPythonProgramStands",
	},
	{
		promise: "a task whose container YARN is killing is not started again in it",
		file:    "container/agent.go",
		old:     `if !killed { // else another attempt would be started in the container`,
		new:     `if true {`,
		pkg:     "container", test: "TestAnAgentThatIsAskedToEndTellsOfNoExit",
	},
	{
		promise: "a task that ran out of memory gets a larger container",
		file:    "am/core/loss.go",
		old:     `t.memoryMB = max(before, min(before*3/2, t.role.MemoryMaxMb))`,
		new:     `_ = min(0, 0)`,
		pkg:     "am/core", test: "TestTranscripts/a-container-grows-after-it-was-too-small",
	},
	{
		promise: "the rank that failed is blamed, and not the one whose end was heard first",
		file:    "am/core/blame.go",
		old:     `case first == nil || k > first.loss.fault.Kind || k == first.loss.fault.Kind && t.loss.fault.AtMS < first.loss.fault.AtMS:`,
		new:     `case first == nil:`,
		pkg:     "am/core", test: "TestTranscriptsOfBlame/the-culprit-ends-last",
	},
	{
		promise: "a failure is its owner's also if the application master that saw it was lost with it",
		file:    "am/core/exit.go",
		old: `		if t.together() && failedStopping(e) {
			j.noteFault(t, journal.FaultLate, e.AtMS)
		}
`,
		new: ``,
		pkg: "am/core", test: "TestAFailureBeforeATakeOverIsItsOwners",
	},
	{
		promise: "what excuses a rank's end excuses it also where the others take long to stop",
		file:    "am/core/blame.go",
		old: `		lost = lost || t.loss.fault.Evicted
`,
		new: ``,
		pkg: "am/core", test: "TestWhatExcusesAnEndExcusesItLater",
	},
	{
		promise: "a rank that failed before it was told to stop is not forgotten",
		file:    "am/core/blame.go",
		old: `	case e.Stopped:
		j.noteFault(t, journal.FaultLate, e.AtMS)
`,
		new: `	case e.Stopped:
`,
		pkg: "am/core", test: "TestTranscriptsOfBlame/the-culprit-dies-of-the-signal-to-stop",
	},
	{
		promise: "the error file of torch.distributed.elastic names the cause",
		file:    "container/cause.go",
		old:     `if at, text := p.frameworkError(); text != "" {`,
		new:     `if at, text := p.frameworkError(); false {`,
		pkg:     "container", test: "TestTheErrorFileOfTorchElasticTellsTheCause",
	},
	{
		promise: "ranks that all fail by one error are one failure of the job",
		file:    "am/core/blame.go",
		old: `	if !t.together() {
		return t.history.failures
	}
`,
		new: `	if true {
		return t.history.failures
	}
`,
		pkg: "am/core", test: "TestAGenerationFailsOnce",
	},
	{
		promise: "a task's loss quotes the exception that ended it",
		file:    "am/core/exit.go",
		old: `	case e.Error != "":
		s = e.Error
`,
		new: ``,
		pkg: "am/core", test: "TestTranscriptsOfBlame/the-culprit-ends-last",
	},
	{
		promise: "the last exception of a traceback is found in what a task wrote",
		file:    "runtime/explain.go",
		old:     `v.Error = tasklog.Plain(last.Line)`,
		new:     `_ = tasklog.Plain(last.Line)`,
		pkg:     "runtime", test: "TestQuotes",
	},
	{
		promise: "the exception of a traceback is found whatever its name",
		file:    "runtime/tasklog/traceback.go",
		old:     `case r.in && named.MatchString(line)`,
		new:     `case false && named.MatchString(line)`,
		pkg:     "runtime", test: "TestQuotes",
	},
	{
		promise: "an exception that Python ignored is not what ended a program",
		file:    "runtime/tasklog/traceback.go",
		old:     `if !r.ignored {`,
		new:     `if true {`,
		pkg:     "runtime", test: "TestExplainLines/what_Python_ignored_at_its_end",
	},
	{
		promise: "a harmless line before an exception gives no advice about it",
		file:    "runtime/explain.go",
		old:     `v.Advice = l.advise(e.Text)`,
		new:     `v.Advice = l.advise(e.Text + text)`,
		pkg:     "runtime", test: "TestExplainLines/an_own_fault_where_no_GPU_is",
	},
	{
		promise: "a lost peer is recognized whatever a program has said before",
		file:    "runtime/explain.go",
		old:     `l.lostFirst(strings.Split(last.Text, "\n"))`,
		new:     `l.advise(text) == "" && l.lostFirst(strings.Split(last.Text, "\n"))`,
		pkg:     "runtime", test: "TestExplainLines/a_peer_that_is_lost_where_no_GPU_is",
	},
	{
		promise: "what fails twice in the same way before its first step is not tried again",
		file:    "am/core/blame.go",
		old:     `return !e.Over && e.Times > 1`,
		new:     `return false`,
		pkg:     "am/core", test: "TestTheSameErrorEachTime",
	},
	{
		promise: "a takeover does not wait for a checkpoint directory that does not answer",
		file:    "am/recovery/predecessor.go",
		old: `case <-ctx.Done():
			select {`,
		new: `case <-(chan struct{})(nil):
			select {`,
		pkg: "am/recovery", test: "TestATakeoverDoesNotWaitForACheckpointDirectory",
	},
	{
		promise: "what a traceback quotes of a program's source is no step",
		file:    "container/output/output.go",
		old:     `if !o.sources.In(read) {`,
		new: `o.sources.In(read)
	{`,
		pkg: "container/output", test: "TestWhatATracebackQuotes",
	},
	{
		promise: "different errors before the first step do not end a job early",
		file:    "am/core/blame.go",
		old:     ` || e.Times > 0 && e.Error != how {`,
		new:     ` {`,
		pkg:     "am/core", test: "TestTheSameErrorEachTime",
	},
	{
		promise: "a port that cannot be had is not put down to another program alone",
		file:    "runtime/explain.go",
		old:     `, or another task of the job, as where two take themselves for the same rank. Let`,
		new:     `. Let`,
		pkg:     "runtime", test: "TestExplain",
	},
	{
		promise: "a program that aborts is quoted with the last line that it wrote",
		file:    "container/cause.go",
		old:     `if signal == syscall.SIGABRT && e.Error == "" {`,
		new:     `if false {`,
		pkg:     "container", test: "TestTheErrorFileOfTorchElasticTellsTheCause",
	},
	{
		promise: "a signal that ended a shell's program is told as one",
		file:    "proto/reason.go",
		old:     `n > 0 && n <= last {`,
		new:     `n > last {`,
		pkg:     "container", test: "TestSignalsUnderAShell",
	},
	{
		promise: "the signal that stops a shell's program is not its failure",
		file:    "am/core/blame.go",
		old:     `case e.Stopped && bySignal(e):`,
		new:     `case e.Stopped && e.Signal != 0:`,
		pkg:     "am/core", test: "TestTranscriptsOfBlame/who-dies-of-the-signal-to-stop-in-a-shell-is-not-to-blame",
	},
	// A healthy job is not given up.
	{
		promise: "an agent is waited for while its node unpacks the job's archives",
		file:    "am/core/containers.go",
		old: `		*deadline = next
`,
		new: `		_ = next
`,
		pkg: "am/core", test: "TestAnAgentIsWaitedForWhileItsContainerGetsItsFiles",
	},
	{
		promise: "a node that never gets its files is given up",
		file:    "am/core/containers.go",
		old:     `next.Before(l.since.Add(j.limits.Localize)) && `,
		new:     ``,
		pkg:     "am/core", test: "TestAnAgentThatDoesNotComeIsGivenUpOnceItHasItsFiles",
	},
	{
		promise: "the time in which nodes unpack archives does not count for --start-limit",
		file:    "am/core/start.go",
		old:     `if j.filesSeen.After(j.gang.since) {`,
		new:     `if false {`,
		pkg:     "am/core", test: "TestTheLimitOfTheStartBeginsWhenFilesAreThere",
	},
	{
		promise: "tasks without a container have their address in the others' lists",
		file:    "am/master.go",
		old:     `, Port: runtime.PeerPort(cfg.ID, i)})`,
		new:     `, Port: 0 * i})`,
		pkg:     "am", test: "TestAJobThatStartsWithFewerKnowsAllAddresses",
	},
	{
		promise: "a job starts with the least tasks that it needs, and others join",
		file:    "am/core/start.go",
		old:     `least(r) >= r.Count || !j.quorum() || j.any`,
		new:     `r.Count > 0 || !j.quorum() || j.any`,
		pkg:     "am/core", test: "TestTranscriptsOfStarts/with-fewer,-and-one-comes-late",
	},
	{
		promise: "a task whose container YARN has found again stays in it",
		file:    "am/core/containers.go",
		old: `	j.endOrphan(t)
	if t.loc.leave.whateverNode() {`,
		new: `	if t.loc.leave.whateverNode() {`,
		pkg: "am/core", test: "TestWhatIsFoundAgainStaysWhereItIs",
	},
	{
		promise: "a container that YARN has found again and no task has is given back",
		file:    "am/core/containers.go",
		old: `	if t == nil {
		j.emit(action.Release{Container: e.Container})
		return
	}
	t.loc.node = e.Node`,
		new: `	if t == nil {
		return
	}
	t.loc.node = e.Node`,
		pkg: "am/core", test: "TestWhatIsFoundAndNotNeededIsGivenBack",
	},
	{
		promise: "tasks outlive an application master that takes long to start",
		file:    "container/master/lease.go",
		old:     `case said.Ended || int32(said.Attempt) < l.master:`,
		new:     `case said.Ended || int32(said.Attempt) != l.master:`,
		pkg:     "container", test: "TestAMasterThatStartsSlowly/announced_at_once",
	},
	{
		promise: "tasks outlive one that announces itself late in their lease, too",
		file:    "container/master/lease.go",
		old: `			l.from = max(l.from, l.look)
`,
		new: ``,
		pkg: "container", test: "TestAMasterThatStartsSlowly/announced_late_in_the_lease",
	},
	{
		promise: "without a journal, no task is given up whose agent may have seen no application master",
		file:    "am/core/takeover.go",
		old:     `j.past(j.confirmedExpiry(r.Until()))`,
		new:     `!r.Until().After(j.now)`,
		pkg:     "am/core", test: "TestReportsAreWaitedForUntilLeasesHaveExpired",
	},
	{
		promise: "a start that is repeated goes on from what parameter servers hold, as the first was to",
		file:    "am/core/containers.go",
		old:     `j.emit(j.startOf(t))`,
		new:     `again := j.startOf(t); again.ConsistentServerState = false; j.emit(again)`,
		pkg:     "am/core", test: "TestTranscripts/an-agent-never-heard-that-its-attempt-is-to-go-on-from-what-parameter-servers-hold",
	},
	{
		promise: "--start-limit does not end a job that has trained",
		file:    "am/core/start.go",
		old:     ` || j.begun || `,
		new:     ` || `,
		pkg:     "am/core", test: "TestTranscriptsOfStarts/for-long-after-it-had-begun",
	},
	{
		promise: "a job starts without a TensorBoard or evaluator that has no container",
		file:    "am/core/start.go",
		old:     `return !t.optional() && !t.state.done() && !t.state.ongoing()`,
		new:     `return !t.state.done() && !t.state.ongoing()`,
		pkg:     "am/core", test: "TestTranscriptsOfOptionalRoles/there-is-no-container-for-it",
	},
	{
		promise: "a TensorBoard or evaluator that cannot run does not end the job",
		file:    "am/core/ending.go",
		old:     `	if t.optional() {`,
		new:     `	if false {`,
		pkg:     "am/core", test: "TestTranscriptsOfOptionalRoles/its-command-is-not-there",
	},
	{
		promise: "an evaluator gets the time to evaluate and export the last checkpoint",
		file:    "am/core/ending.go",
		old:     `t.optional() && t.role.FinishMs > 0 && t.state == running`,
		new:     `false`,
		pkg:     "am/core", test: "TestTranscriptsOfOptionalRoles/it-may-finish",
	},
	{
		promise: "where one rank is to be preempted, all are told together, and can save together",
		file:    "am/core/moving.go",
		old: `		if t.together() { // what they save, they may have to save together
			j.restart(t, "has to leave its container", graceOf(grace), (*task).together)
		}
`,
		new: ``,
		pkg: "am/core", test: "TestTranscriptsOfMoves/a-rank-is-wanted-back,-and-all-are-told",
	},
	{
		promise: "a task that has to leave is not stopped between the files of its save",
		file:    "am/checkpoint/sealer.go",
		old:     `	if !pending || before.files != files || writing {`,
		new:     `	if pending && writing && false {`,
		pkg:     "am/checkpoint", test: "TestASaveHasEnded",
	},
	{
		promise: "a container killed for virtual memory is told as that, with the remedy",
		file:    "am/core/loss.go",
		old:     `	if c == event.CauseVirtualLimit {`,
		new:     `	if false {`,
		pkg:     "am/core", test: "TestTranscripts/a-node-limits-virtual-memory",
	},
	{
		promise: "connections to a lost peer are cut also by an agent that was not told in time",
		file:    "container/peers/peers.go",
		old:     `if moved || named[i] {`,
		new:     `if _ = moved; named[i] {`,
		pkg:     "container", test: "TestConnectionsToAFormerAddressAreCut/steered",
		limit: 4 * time.Minute,
	},
	{
		promise: "connections to peers that a new master does not know yet are left alone",
		file:    "container/peers/peers.go",
		old:     `at.Host != "" && p.last[i].Host != "" && at != p.last[i]`,
		new:     `p.last[i].Host != "" && at != p.last[i]`,
		pkg:     "container", test: "TestConnectionsToAFormerAddressAreCut/steered",
		limit: 4 * time.Minute,
	},
	{
		promise: "spares are handed from one application master to the next",
		file:    "am/core/takeover.go",
		old:     `		Spares: j.spareRecords(), `,
		new:     `		`,
		pkg:     "am/core", test: "TestSparesAreTakenOver",
	},
	{
		promise: "no task starts before what it may have left half saved was looked at",
		file:    "am/core/start.go",
		old:     `if !t.dirtied.After(j.storeRequested) {`,
		new:     `if !t.history.lastLoss.After(j.storeRequested) {`,
		pkg:     "am/core", test: "TestWhoIsStoppedWhileTheStoreIsPreparedWaitsForItAgain",
	},
	{
		promise: "a task stays where it is when the scheduler does not want its container back any longer",
		file:    "am/core/moving.go",
		old: `			j.becomeStaying(t)
			j.record(t, action.KindNote, "the scheduler does not want`,
		new: `			j.record(t, action.KindNote, "the scheduler does not want`,
		pkg: "am/core", test: "TestTranscriptsOfMoves/the-scheduler-takes-back-that-it-wants-containers",
	},
	{
		promise: "tasks get the time to stop that --stop-grace says",
		file:    "am/limits.go",
		old:     `if ms := c.Spec.StopGraceMs; ms != nil {`,
		new:     `if ms := c.Spec.StopGraceMs; false {`,
		pkg:     "am", test: "TestWhatATaskGetsToStop",
	},
	{
		promise: "a TensorFlow that does not know the word for failing fast does not get it",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `if version is not None and version >= (2, 4):`,
		new:     `if version is not None:`,
		pkg:     "runtime", test: "TestTheShimKnowsWhichTensorFlowFailsFast",
	},
	{
		promise: "a user's own GRPC_FAIL_FAST stands",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `if "GRPC_FAIL_FAST" not in os.environ:`,
		new:     `if True:`,
		pkg:     "runtime", test: "TestTheShimKnowsWhichTensorFlowFailsFast",
	},
	{
		promise: "each default of TensorFlow's jobs is off at 0",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `    if seconds > 0:`,
		new:     `    if wait:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "where HOLDFAST_FAIL_FAST is switched off, calls of TensorFlow to a server that is away wait for it",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `if os.environ.get("HOLDFAST_FAIL_FAST") == "1":`,
		new:     `if True:`,
		pkg:     "runtime", test: "TestTheShimKnowsWhichTensorFlowFailsFast",
	},
	{
		promise: "where HOLDFAST_COORDINATOR_EXIT is switched off, how a program with a ClusterCoordinator ends is TensorFlow's own affair",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `if os.environ.get("HOLDFAST_COORDINATOR_EXIT") == "1":`,
		new:     `if True:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "where HOLDFAST_NAME_LOST_PEERS is switched off, a failed step says what TensorFlow says",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `if os.environ.get("HOLDFAST_NAME_LOST_PEERS") == "1":`,
		new:     `if True:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "where HOLDFAST_LINGER is switched off, sessions are not watched",
		file:    "runtime/python/_holdfast/tensorflow.py",
		old:     `if os.environ.get("HOLDFAST_LINGER", "0") != "0":`,
		new:     `if True:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "what Cython's modules put in place is not told as the script's doing",
		file:    "runtime/python/_holdfast/start.py",
		old:     `not name.startswith(("cython_runtime", "_cython_")) and `,
		new:     ``,
		pkg:     "container", test: "TestWhatAForkWouldNotBearIsFoundOut/Cython's_own_module",
	},
	{
		promise: "the script never runs in the warm interpreter itself",
		file:    "runtime/python/_holdfast/start.py",
		old: `    finally:
        _wait_warm()`,
		new: `    finally:
        pass
    _wait_warm()`,
		pkg: "runtime", test: "TestPython",
	},
	{
		promise: "start-up files that run each other end",
		file:    "runtime/python/_holdfast/start.py",
		old:     `not in _begun]`,
		new:     `not in _begun[:1]]`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "a script with a path that is no text imports its framework",
		file:    "runtime/python/_holdfast/start.py",
		old:     `except (TypeError, UnicodeEncodeError):`,
		new:     `except UnicodeEncodeError:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "what is done after an import is not done after that of another module of its ZIP file",
		file:    "runtime/python/_holdfast/start.py",
		old:     `if getattr(getattr(module, "__spec__", None), "name", name) != name:`,
		new:     `if False:`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "a framework of an unknown version can be imported",
		file:    "runtime/python/_holdfast/start.py",
		old:     `_try(name, action, module)`,
		new:     `action(module)`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "the Pythons of conda can be kept warm",
		file:    "runtime/python/_holdfast/hidden.py",
		old:     `files = [_nameless_file(), _nameless_file()]`,
		new:     `files = [os.memfd_create("printed"), os.memfd_create("buffered")]`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "a launcher is started once in each replica group of torchft",
		file:    "runtime/processes.go",
		old:     `r.Launcher = launches(f, command) ||`,
		new:     `r.Launcher = f.Program(command) != "" ||`,
		pkg:     "runtime", test: "TestHowManyProcesses",
	},
	{
		promise: "the ranks that a launcher starts count in HOLDFAST_WORLD_MAX",
		file:    "runtime/processes.go",
		old:     `if f.TellsLaunchers {`,
		new:     `if false {`,
		pkg:     "runtime", test: "TestHowManyProcesses",
	},
	{
		promise: "a port that PyTorch's store cannot have is no lost peer",
		file:    "runtime/explain.go",
		old:     ` && l.advise(last.Line) == ""`,
		new:     ``,
		pkg:     "runtime", test: "TestExplainLines/torch's_store,_whose_port_is_taken",
	},
	{
		promise: "a rank of JAX whose peer was killed is not charged",
		file:    "runtime/frameworks/jax.go",
		old:     `, "ValueError"}`,
		new:     `}`,
		pkg:     "runtime", test: "TestExplainLines/a_rank_of_JAX_with_gloo,_on_its_way_to_SIGABRT",
	},
	// Bounds and guards.
	{
		promise: "any number of saved files is told of in messages that gRPC takes",
		file:    "container/master/commits.go",
		old:     ` || size+n > committedSize {`,
		new:     ` {`,
		pkg:     "container/master", test: "TestCommitsFitIntoMessages",
	},
	{
		promise: "steering reads an address only for who still waits for its connect",
		file:    "container/steer/supervisor.go",
		old:     `	if stillThere(fd, n) != nil {`,
		new:     `	if false {`,
		pkg:     "container/steer", test: "TestNothingIsTakenFromAnotherThanTheCaller",
	},
	{
		promise: "steering takes a socket only from who still waits for its connect",
		file:    "container/steer/supervisor.go",
		old:     `	if err := stillThere(listener, n); err != nil {`,
		new:     `	if err := error(nil); err != nil {`,
		pkg:     "container/steer", test: "TestNothingIsTakenFromAnotherThanTheCaller",
	},
	{
		promise: "an agent with a pass of its own cannot say that it is another",
		file:    "am/agents/server.go",
		old:     `hello.Container != own {`,
		new:     `hello.Container == "" && own != "" {`,
		pkg:     "am", test: "TestAnAgentThatClaimsToBeAnother",
	},
	{
		promise: "no other process of its user reads the job's keys in an agent's memory",
		file:    "container/agent.go",
		old:     `		err = nodump.Protect()`,
		new:     `		_ = nodump.Protect`,
		pkg:     "container", test: "TestAnAgentsMemoryIsShutToItsUser",
		limit: 4 * time.Minute,
	},
	{
		promise: "a spread role's next container is asked for apart from the others",
		file:    "am/core/containers.go",
		old:     `Apart: j.apart(t), Near: j.near(t),`,
		new:     `Near: j.near(t),`,
		pkg:     "am/core", test: "TestASpreadRoleIsKeptApart",
	},
	{
		promise: "the time of a line in a log is when it was written, not when it was copied",
		file:    "container/output/output.go",
		old:     `part{len(o.pending.text), at}`,
		new:     `part{len(o.pending.text), time.Now()}`,
		pkg:     "container/output", test: "TestTimesOfTheCopy",
	},
	{
		promise: "what a lighthouse prints of the steps of its groups is not taken for steps of the job",
		file:    "am/agents/messages.go",
		old: `			return ""
`,
		new: ``,
		pkg: "am/agents", test: "TestStepsOfServices",
	},
	{
		promise: "a replica group of torchft that is lost stops no other",
		file:    "runtime/frameworks/torchft.go",
		old: `	return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_REQUIRED
`,
		new: `	return proto.LossRule_LOSS_RULE_ALL, proto.CompletionRule_COMPLETION_RULE_REQUIRED
`,
		pkg: "runtime", test: "TestRolesOfTorchFT",
	},
	{
		promise: "DeepSpeed's launcher in each task starts the processes of that task, as part of one world",
		file:    "runtime/python/_holdfast/deepspeed.py",
		old:     `"--no_ssh", "--node_rank=" + os.environ["NODE_RANK"],`,
		new:     ``,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "DeepSpeed's launcher takes the GPUs of its task, and not those of another",
		file:    "runtime/python/_holdfast/deepspeed.py",
		old:     `local_accelerator_ids = [own[i] for i in local_accelerator_ids]`,
		new:     `pass`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "DeepSpeed's launcher is told all tasks, and how many processes each has",
		file:    "runtime/frameworks/pytorch.go",
		old: `	maps.Copy(env, deepspeedEnv(m))
`,
		new: ``,
		pkg: "runtime", test: "TestRanks",
	},
	{
		promise: "accelerate launch trains as one world where there is no GPU",
		file:    "runtime/python/_holdfast/accelerate.py",
		old: `        args.cpu = True
`,
		new: `        pass
`,
		pkg: "runtime", test: "TestPython",
	},
	{
		promise: "ranks with Accelerator() are one world where there is no GPU",
		file:    "runtime/python/_holdfast/accelerate.py",
		old:     `yield "accelerate.state", _use_cpus`,
		new:     `pass`,
		pkg:     "runtime", test: "TestPython",
	},
	{
		promise: "the ranks of Horovod start again together",
		file:    "runtime/frameworks/horovod.go",
		old:     `Rules:         allTogether,`,
		new:     ``,
		pkg:     "runtime", test: "TestRules",
	},
	{
		promise: "who starts torchrun so that it may wait for ever is told",
		file:    "client/spec/commands.go",
		old:     `return append(notes, runtime.Notes(spec)...)`,
		new:     `return notes`,
		pkg:     "cmd/yarn-submit", test: "TestRunTellsWhatItTakesAJobFor",
	},
	{
		promise: "a program may write its step to a file",
		file:    "container/progress.go",
		old:     `p.told.Look(time.Now())`,
		new:     `_ = p`,
		pkg:     "container", test: "TestStepsOfAProgramThatPrintsNothing",
	},
	{
		promise: "a loss that is not a number does not hide the step in a progress file",
		file:    "container/output/progress.go",
		old:     "`\"step\"\\s*:\\s*(\\d{1,12})\\s*[,}]`",
		new:     "`\"step\"\\s*:\\s*(\\d{1,12})\\s*[,}][^N]*$`",
		pkg:     "container/output", test: "TestProgressFile",
	},
	{
		promise: "tasks that a person wants again join, though no checkpoint is complete",
		file:    "am/core/requests.go",
		old: `	if more {
`,
		new: `	if false && more {
`,
		pkg: "am/core", test: "TestScalingDoesNotWaitForACheckpointForLong",
	},
	{
		promise: "what changes a job without a checkpoint directory waits for no checkpoint",
		file:    "am/limits.go",
		old: `		l.Save = -1 // no checkpoint will ever be complete
`,
		new: ``,
		pkg: "am", test: "TestNothingWaitsForCheckpointsThatCannotCome",
	}, {
		promise: "a text of a program that is not UTF-8 does not cost a task its agent",
		file:    "container/master/conn.go",
		old:     `	proto.MakeText(m) // else it could not be encoded, and the stream would end`,
		new:     ``,
		pkg:     "container/master", test: "TestWhatIsSentCanBeEncoded",
	},
	{
		promise: "a command in a container is read no faster than its client takes what it prints",
		file:    "container/exec.go",
		old:     `	case e.window <- struct{}{}:`,
		new:     `	default:`,
		pkg:     "container", test: "TestACommandThatPrintsMuch", limit: 4 * time.Minute,
	},
	{
		promise: "a command in a container ends with the stream on which its output goes",
		file:    "container/connection.go",
		old: `		a.execs.endAll()
`,
		new: ``,
		pkg: "container", test: "TestACommandEndsWithItsStream", limit: 4 * time.Minute,
	},
	{
		promise: "output that a client does not take does not fill the application master's memory",
		file:    "am/agents/exec.go",
		old:     `e.waiting > proto.ExecWindow`,
		new:     `e.waiting < 0`,
		pkg:     "am/agents", test: "TestAnAgentThatDoesNotWaitForTheClient",
	},
	{
		promise: "a master that takes over does not take the checkpoint that it finds for one that is saved now",
		file:    "am/checkpoint/sealer.go",
		old:     `Saved: sums.isFresh(c)}`,
		new:     `Saved: true}`,
		pkg:     "am/checkpoint", test: "TestWhatWasCompleteBeforeIsNoNews/a_takeover",
	},
	{
		promise: "a checkpoint that is the newest since a newer one was removed is not taken for one that is saved now",
		file:    "am/checkpoint/sums.go",
		old: `				delete(s.fresh, name)
`,
		new: `				_ = name
`,
		pkg: "am/checkpoint", test: "TestWhatWasCompleteBeforeIsNoNews/a_takeover",
	},
	{
		promise: "a group is not stopped for a checkpoint that was complete when the master took over",
		file:    "am/core/job.go",
		old: `	case event.CheckpointFound:
`,
		new: `	case event.CheckpointFound:
		j.justSealed = true
`,
		pkg: "am/core", test: "TestWhatWasSavedBeforeATakeover",
	},
	{
		promise: "the record of generations goes on under another master, also where that has no journal",
		file:    "am/core/job.go",
		old: `	if j.reports != nil {
		return Group{}
	}
`,
		new: ``,
		pkg: "am/status", test: "TestGenerations",
	},
}
