// Package faults loses everything that a job stands on, one after another or
// two at a time, while real TensorFlow trains on a real cluster, and looks at
// what came of it.
//
// One job takes many rounds. A round begins when all tasks make steps and a
// checkpoint is complete; its faults are injected and healed; it is over when
// all tasks make steps again for a while and two newer checkpoints are complete.
// What takes a job or a cluster of its own shape is a scenario (scenarios.go).
// What is required of each round and of the job's end is in judge.go. The steps
// are read from what the tasks print (watch.go), 50 ms after they are made at
// the latest.
//
// Run is for one goroutine. The goroutines that it starts end before it returns.
package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/proto"
	"holdfast/test/asuser"
	"holdfast/test/testcluster"
)

// Options say what is broken and with what.
type Options struct {
	Cluster *testcluster.Cluster // with ClusterConf
	Submit  string               // the yarn-submit binary
	Python  string               // one that has TensorFlow
	Script  string               // examples/monitored-session/monitored_session.py
	Store   string               // an HDFS directory for checkpoints, with its scheme; each job gets one in it
	Home    string               // an empty directory for HOLDFAST_HOME
	Seed    uint64               // of what faults choose
	Spares  int                  // spare containers of the jobs
	Cuts    []*Cut               // of all nodes, for the faults that cut them off
	Warm    bool                 // a round begins when all containers have warm interpreters
	Cold    bool                 // jobs keep none
	Standby bool                 // HDFS has two NameNodes, of which nn serves at first
	Saving  bool                 // the first fault of a round strikes in the middle of a save
	// A later fault of a round strikes within this time (0: of 8 s) of the one before,
	// or, if When is given, of a task's saying what matches it.
	Within time.Duration
	When   *regexp.Regexp
	Rounds []Round
	// Scenarios come after the rounds; Examples is the directory of the programs
	// that they run.
	Scenarios []Scenario
	Examples  string
	PerJob    int // a job trains for as long as so many rounds take at most; all if 0
	// Log takes a line of what is going on; nil: nobody wants it.
	Log func(format string, args ...any)
	// Trace, if not nil, takes what the job and its tasks tell in each round, with
	// the seconds since its first fault.
	Trace func(line string)
}

// ClusterConf is what a cluster needs so that each of its parts can be lost: a
// ResourceManager that was restarted knows its applications, a job may lose many
// application masters, it uses more of the cluster than its queue's share, and the
// NodeManagers end containers that outgrow their memory.
func ClusterConf() map[string]string {
	conf := testcluster.TwoQueues(firstShare)
	maps.Copy(conf, testcluster.KeptState())
	maps.Copy(conf, map[string]string{
		"yarn.nodemanager.resource.memory-mb": strconv.Itoa(nodeMB),
		// Else it leaves them to cgroups (ContainersMonitorImpl.checkLimit).
		"yarn.nodemanager.resource.memory.enforced":      "false",
		"yarn.nodemanager.container-monitor.interval-ms": "500",
		"yarn.resourcemanager.am.max-attempts":           "100",
	})
	return conf
}

// The jobs that are broken.
const (
	parameterServers = 2
	workers          = 3
	stepsPerSecond   = 20
	saveSteps        = 60 // from checkpoint to checkpoint
	// A job has so many steps for each of its rounds, and for its beginning and a
	// last round those of a long one; most take fewer, and those that are left over
	// get another job. Interpreters take a while to get warm.
	stepsPerRound, stepsPerWarmRound         = 400, 900
	stepsPerLongRound, stepsPerLongWarmRound = 700, 1800
	// A job of few rounds has the steps of so many: on a busy machine, those that start
	// first make hundreds before all tasks run.
	leastRounds = 3
	chief       = "worker-0"
)

// secondWithin is how long a round's later faults wait at most, unless Options say.
const secondWithin = 8 * time.Second

// limits of what is waited for. Five imports at once take most of a minute on
// two busy cores, and as much again when all tasks are lost.
const (
	roundLimit = 5 * time.Minute
	endLimit   = 10 * time.Minute
	callLimit  = 2 * time.Minute
)

// Run breaks jobs until all rounds are done. An error says that nothing can be
// concluded; what a job did wrong is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Within == 0 {
		o.Within = secondWithin
	}
	if o.PerJob == 0 {
		o.PerJob = len(o.Rounds)
	}
	if err := errors.Join(o.something(), o.prepare()); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	report := &Report{}
	for n, rest := 1, o.Rounds; len(rest) > 0; n++ {
		j := &job{Options: o, rng: rng, report: report, store: fmt.Sprintf("%s/job-%d", o.Store, n)}
		j.steps = max(leastRounds, min(o.PerJob, len(rest)))*o.stepsPerRound() + o.stepsPerLongRound()
		done, err := j.run(ctx, rest)
		if err != nil {
			return report, fmt.Errorf("job %d (%s): %w", n, j.id, err)
		}
		rest = rest[done:]
	}
	for i, c := range o.Scenarios {
		j := &job{Options: o, rng: rng, report: report, store: fmt.Sprintf("%s/scenario-%d", o.Store, i+1)}
		report.Played = append(report.Played, c.play(ctx, j))
		if err := ctx.Err(); err != nil {
			return report, err
		}
	}
	return report, nil
}

func (o Options) stepsPerRound() int {
	if o.Warm {
		return stepsPerWarmRound
	}
	return stepsPerRound
}

func (o Options) stepsPerLongRound() int {
	if o.Warm {
		return stepsPerLongWarmRound
	}
	return stepsPerLongRound
}

// job is one job that is broken.
type job struct {
	Options
	rng    *rand.Rand
	report *Report
	id     string
	store  string
	steps  int // to its end
	watch  *watch
	lost   int // application masters
}

// run returns how many rounds the job took before it came near its end.
func (j *job) run(ctx context.Context, rounds []Round) (done int, err error) {
	if err := j.submit(ctx); err != nil {
		return 0, err
	}
	j.Log("%s runs to step %d", j.id, j.steps)
	j.watch = startWatch(filepath.Join(j.Cluster.Dir(), "yarn", "*", "local", "usercache", "*", "appcache", j.id, "*", "*.log"))
	defer j.watch.stop()
	defer func() {
		if err != nil {
			err = errors.Join(err, j.abandon())
		}
	}()
	if _, err := j.settled(ctx, time.Now(), 0); err != nil {
		return 0, err
	}
	for done == 0 || done < len(rounds) && int64(j.steps)-j.watch.step() > int64(j.stepsPerLongRound()) {
		if err := j.round(ctx, rounds[done]); err != nil {
			return done, fmt.Errorf("%s: %w", rounds[done], err)
		}
		done++
	}
	return done, j.finish(ctx)
}

// round injects faults and waits until they are over.
func (j *job) round(ctx context.Context, r Round) error {
	before, err := j.status(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	var healing []healer
	var lostWith []string // nodes
	defer func() {        // whatever happens, nothing stays broken
		over, cancel := context.WithCancel(ctx)
		cancel()
		if err := heal(over, healing); err != nil {
			j.Log("healing: %v", err)
		}
	}()
	out := Outcome{Round: r, at: begin, Step: j.watch.step(), Sealed: before.CompleteStep, charged: failures(before), free: true, apart: true}
	if j.Saving {
		if err := j.awaitSave(ctx); err != nil {
			return fmt.Errorf("waiting for the job to save: %w", err)
		}
		out.Step = j.watch.step()
	}
	for i, k := range r {
		if i > 0 && !j.awaitNext(ctx, out.at) {
			return ctx.Err()
		}
		s, stale := before, false
		if i > 0 {
			s, stale = j.sooner(ctx, before)
		}
		begun := time.Now()
		hit, err := k.inject(j, s)
		if err != nil && stale {
			j.Log("the second fault is left out, since the job does not answer: %v", err)
			out.Round = r[:i]
			break
		}
		if err != nil {
			return fmt.Errorf("injecting %s: %w", k.name, err)
		}
		j.Log("%s: %s, at step %d, %d complete", k.name, hit.what, out.Step, out.Sealed)
		out.What = append(out.What, hit.what)
		if hit.missed && i == 0 { // a later fault may find that an earlier one was there before it
			out.wrong("nothing was struck: %s", hit.what)
		}
		switch {
		case hit.missed:
		case hit.masters == anyMasters || len(r) > 1 && strings.HasSuffix(k.name, " NN"): // no node gets the binary then
			out.open = true
		case hit.on != "" && slices.Contains(lostWith, hit.on): // it was lost by then
		default:
			out.masters += hit.masters
			lostWith = append(lostWith, hit.on)
		}
		out.gone = append(out.gone, hit.gone...)
		out.free, out.apart = out.free && hit.free, out.apart && hit.apart
		if i == 0 {
			out.at = begun
		}
		if hit.heal != nil {
			healing = append(healing, healer{begun.Add(hit.hold), hit.heal})
		}
	}
	err = errors.Join(heal(ctx, healing), ctx.Err())
	healing = nil
	if err != nil {
		return err
	}
	after, err := j.settled(ctx, time.Now(), before.CompleteStep, out.gone...)
	if err != nil {
		return errors.Join(err, j.explain(out.at))
	}
	j.trace(out.at, after)
	j.judge(ctx, &out, before, after)
	j.report.Outcomes = append(j.report.Outcomes, out)
	j.Log("%s: %s", r, out)
	return nil
}

// awaitNext waits until a later fault of a round is to strike, and reports whether it is.
// What tasks say counts since begin.
func (j *job) awaitNext(ctx context.Context, begin time.Time) bool {
	for begun := time.Now(); j.When != nil && !j.watch.heard(j.When, begin); {
		if time.Since(begun) > secondWithin {
			j.Log("nothing that matches %s was said", j.When)
			break
		}
		if !wait(ctx, lookEvery/2) {
			return false
		}
	}
	return wait(ctx, time.Duration(j.rng.Int64N(int64(j.Within))))
}

// sooner is the job's state while a fault is at work; that of before (stale) if it
// cannot be had soon, as without a NameNode: then little will have changed.
func (j *job) sooner(ctx context.Context, before *proto.JobStatus) (s *proto.JobStatus, stale bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := j.status(ctx)
	if err != nil {
		return before, true
	}
	return s, false
}

// healer ends a fault.
type healer struct {
	due  time.Time
	heal func(context.Context) error
}

// heal ends faults when they are due, each by itself: a NodeManager does not come
// up before its ResourceManager has. Once ctx has ended, all are due.
func heal(ctx context.Context, faults []healer) error {
	errs := make([]error, len(faults))
	var all sync.WaitGroup
	for i, f := range faults {
		all.Go(func() {
			wait(ctx, time.Until(f.due))
			errs[i] = f.heal(context.WithoutCancel(ctx))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// settled waits until, since a moment and for some seconds, every task runs and
// every worker makes steps, two checkpoints newer than one of a step are complete and
// the job's journal has them, so that what the parameter servers hold is known to be of
// one piece, also to another application master, and processes that were given up have
// ended.
func (j *job) settled(ctx context.Context, since time.Time, newer int64, gone ...process) (*proto.JobStatus, error) {
	const (
		quiet     = 3 * time.Second
		journaled = time.Second // what no order depends on is in the journal after less
	)
	var whole, saved time.Time
	last := "nothing is known of it"
	for end := time.Now().Add(roundLimit); time.Now().Before(end); {
		s, err := j.status(ctx)
		now := time.Now()
		switch {
		case err != nil:
			last, whole = err.Error(), time.Time{}
		case s.State.Done():
			return nil, fmt.Errorf("the job has ended as %s: %s; before that, %s", s.State, s.Why, last)
		case !running(s):
			last, whole = "not all tasks run", time.Time{}
		case j.Warm && !j.warm(s):
			last, whole = "not all containers have a warm interpreter", time.Time{}
		case !j.watch.allMoved(now.Add(-quiet), since):
			last, whole = "not all workers make steps", time.Time{}
		case whole.IsZero():
			whole = now
		case now.Sub(whole) < quiet:
		case s.CompleteStep <= newer+2*saveSteps:
			last, saved = fmt.Sprintf("no two checkpoints after that of step %d are complete", newer), time.Time{}
		case saved.IsZero():
			saved = now
		case now.Sub(saved) < journaled:
		case slices.ContainsFunc(gone, process.lives):
			last = fmt.Sprintf("of the processes %v, which were given up, not all have ended", gone)
		default:
			return s, nil
		}
		if !wait(ctx, 200*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("the job does not go on within %s: %s", roundLimit, last)
}

func running(s *proto.JobStatus) bool {
	for _, t := range s.Tasks {
		if t.State != proto.TaskState_TASK_STATE_RUNNING || t.Pid == 0 || t.AgentPid == 0 {
			return false
		}
	}
	return s.State == proto.JobState_JOB_STATE_RUNNING && len(s.Tasks) == parameterServers+workers
}

// warm reports whether every container, spare ones too, could fork an attempt now.
func (j *job) warm(s *proto.JobStatus) bool {
	ready := 0
	for _, t := range s.Tasks {
		if strings.Contains(t.WarmStatus, "ready") {
			ready++
		}
	}
	for _, c := range s.Spares {
		if strings.Contains(c.WarmStatus, "ready") {
			ready++
		}
	}
	return ready == len(s.Tasks)+j.Spares
}

// finish lets the job come to its end.
func (j *job) finish(ctx context.Context) error {
	for end := time.Now().Add(endLimit); ; {
		s, err := j.status(ctx)
		if err == nil && s.State.Done() {
			j.report.Wrong = append(j.report.Wrong, j.judgeEnd(ctx, s)...)
			return nil
		}
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("the job does not end within %s after its last fault", endLimit), err)
		}
		if !wait(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// abandon ends a job that nothing more is to be learnt from.
func (j *job) abandon() error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	_, err := j.user().Call(ctx, "kill", j.id)
	return err
}

func (j *job) submit(ctx context.Context) (err error) {
	j.id, err = j.user().Run(ctx, "--name", "faults", "--framework", "tensorflow", "--tf1", fmt.Sprintf("--no-warm=%t", j.Cold),
		"--ps", strconv.Itoa(parameterServers), "--worker", strconv.Itoa(workers), "--ps-memory", "1200m", "--worker-memory", "1200m",
		"--restarts", "1000", "--spares", strconv.Itoa(j.Spares),
		"--files", j.Script+","+j.grower(), "--checkpoint", "./train_logs="+j.store, "--",
		j.Python, growerName, filepath.Base(j.Script), "--job_name={role}", "--task_index={index}", "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}",
		"--steps", strconv.Itoa(j.steps), "--steps_per_sec", strconv.Itoa(stepsPerSecond), "--save_steps", strconv.Itoa(saveSteps), "--log_steps", "1")
	return err
}

func (j *job) status(ctx context.Context) (*proto.JobStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return j.user().Status(ctx, j.id)
}

// user calls yarn-submit.
func (j *job) user() asuser.Caller {
	return asuser.Caller{Submit: j.Submit, ConfDir: j.Cluster.ConfDir(), Home: j.Home}
}

// wait reports whether the time passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
