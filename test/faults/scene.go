package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// Played is what came of a scenario.
type Played struct {
	Scenario Scenario
	Took     time.Duration
	Again    int64 // steps that had to be made again; negative: not counted
	Wrong    []string
}

// scene is a scenario that is being played.
type scene struct {
	*job
	again int64
	wrong []string
}

// sceneLimit is how long a job of a scenario is waited for, each time.
const sceneLimit = 8 * time.Minute

func (c Scenario) play(ctx context.Context, j *job) Played {
	j.Log("%s", c)
	s := &scene{job: j, again: -1}
	took, err := c.run(ctx, s)
	if err != nil {
		s.fault("%v", err)
	}
	if err := s.leave(); err != nil {
		s.fault("%v", err)
	}
	j.Log("%s: %.1f s %s", c, took.Seconds(), c.took)
	for _, w := range s.wrong {
		j.Log("WRONG: %s", w)
	}
	return Played{c, took, s.again, s.wrong}
}

func (s *scene) fault(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// start submits the scene's job and watches what its tasks print.
func (s *scene) start(ctx context.Context, args ...string) (err error) {
	if s.id, err = s.user().Run(ctx, args...); err != nil {
		return err
	}
	s.watch = startWatch(filepath.Join(s.Cluster.Dir(), "yarn", "*", "local", "usercache", "*", "appcache", s.id, "*", "*.log"))
	return nil
}

// leave ends what the scene has started and has not ended.
func (s *scene) leave() error {
	if s.watch == nil {
		return nil
	}
	s.watch.stop()
	s.watch = nil
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	if st, err := s.status(ctx); err == nil && st.State.Done() {
		return nil
	}
	return s.abandon()
}

// until waits for something of the job, which may be its end.
func (s *scene) until(ctx context.Context, what string, is func(*proto.JobStatus) bool) (*proto.JobStatus, error) {
	begun := time.Now()
	for {
		st, err := s.status(ctx)
		if err == nil && is(st) {
			return st, nil
		}
		switch {
		case err == nil && st.State.Done():
			return nil, fmt.Errorf("the job ended as %s before %s: %s\n%w", st.State, what, st.Why, s.explain(begun))
		case time.Since(begun) > sceneLimit:
			return nil, fmt.Errorf("the job was waited for %s until %s (%v):\n%w", sceneLimit, what, err, s.explain(begun))
		case !wait(ctx, 200*time.Millisecond):
			return nil, ctx.Err()
		}
	}
}

// ended waits for the job's end, which must be a good one.
func (s *scene) ended(ctx context.Context) (*proto.JobStatus, error) {
	st, err := s.until(ctx, "its end", func(st *proto.JobStatus) bool { return st.State.Done() })
	if err == nil && st.State != proto.JobState_JOB_STATE_SUCCEEDED {
		err = fmt.Errorf("the job ended as %s: %s", st.State, st.Why)
	}
	return st, err
}

// awaitSteps waits until what the watch sees of steps is as wanted.
func (s *scene) awaitSteps(ctx context.Context, what string, are func() bool) error {
	for end := time.Now().Add(sceneLimit); !are(); {
		if time.Now().After(end) {
			return fmt.Errorf("within %s, not %s:\n%w", sceneLimit, what, s.explain(end.Add(-sceneLimit)))
		}
		if !wait(ctx, lookEvery) {
			return ctx.Err()
		}
	}
	return nil
}

// train are the arguments of a job that runs a program of the examples, or a copy of it,
// to its last step, s.steps.
func (s *scene) train(script string, ps, workers, perSecond int, flags ...string) []string {
	args := append([]string{"--framework", "tensorflow", "--tf1", "--no-warm", "--ps", strconv.Itoa(ps), "--worker", strconv.Itoa(workers),
		"--files", script + "," + s.grower(), "--checkpoint", "./train_logs=" + s.store}, flags...)
	return append(args, "--", s.Python, growerName, filepath.Base(script), "--job_name={role}", "--task_index={index}",
		"--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--steps", strconv.Itoa(s.steps), "--steps_per_sec", strconv.Itoa(perSecond))
}

var filterArgument = regexp.MustCompile(`device_filters=\[[^\]]*\]`)

// unfiltered writes a copy of an example that sets no device filters, so that its
// sessions are of all tasks.
func (s *scene) unfiltered(example string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.Examples, example))
	if err != nil {
		return "", err
	}
	if n := len(filterArgument.FindAll(text, -1)); n != 1 {
		return "", fmt.Errorf("%s sets device filters %d times, and not once", example, n)
	}
	path := filepath.Join(s.Home, filepath.Base(example))
	return path, os.WriteFile(path, filterArgument.ReplaceAll(text, nil), 0o600)
}

// on is a cluster with nodes of its own, on which a scene goes on. Its properties are over
// those of ClusterConf.
func (s *scene) on(ctx context.Context, nodes, nodeMB int, conf map[string]string, play func() error) (err error) {
	all := ClusterConf()
	maps.Copy(all, map[string]string{"yarn.nodemanager.resource.memory-mb": strconv.Itoa(nodeMB), "dfs.replication": strconv.Itoa(min(nodes, 2))})
	maps.Copy(all, conf)
	c, err := testcluster.Start(ctx, testcluster.Options{NodeManagers: nodes, DataNodes: nodes, Conf: all})
	if err != nil {
		return err
	}
	s.Cluster, s.store = c, c.HDFS()+"/faults"
	defer func() { err = errors.Join(err, s.leave(), c.Stop()) }()
	return play()
}
