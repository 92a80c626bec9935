package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
	"holdfast/test/bench"
)

// MasterLost measures from kill -9 of the application master to the moment in
// which the next one has the last agent's connection; likewise until command
// bare, which has nothing to take over, is registered again.
func (b *Jobs) MasterLost(ctx context.Context) error {
	const aim = 1.5
	var took, yarns, rest, floor bench.Series
	var way, floorWay ways
	for range b.Pairs {
		all, until, err := b.loseMaster(ctx, &way)
		if err != nil {
			return err
		}
		took, yarns, rest = append(took, all), append(yarns, until), append(rest, all-until)
		least, err := b.loseBare(ctx, &floorWay)
		if err != nil {
			return err
		}
		floor = append(floor, least)
	}
	b.Title(fmt.Sprintf("From the application master's end to the next one having all %d agents", recoverTasks))
	bench.Line(b.Out, "yarn-submit", took.Aimed(" s", 2, aim))
	bench.Line(b.Out, "of which until YARN has begun its process", yarns.Format(" s", 2))
	bench.Line(b.Out, "and from there on", rest.Format(" s", 2))
	bench.Line(b.Out, "YARN's own floor, until registered", floor.Format(" s", 2))
	way.print(b.Out, "where the time goes, medians in s")
	floorWay.print(b.Out, "in YARN's own floor")
	fmt.Fprintln(b.Out)
	return nil
}

func (b *Jobs) loseMaster(ctx context.Context, way *ways) (took, yarns float64, err error) {
	m, err := b.newMarks()
	if err != nil {
		return 0, 0, err
	}
	job, err := b.run(ctx, "--worker", strconv.Itoa(recoverTasks), "--worker-memory", containerMB+"m", "--", "bash", m.script)
	if err != nil {
		return 0, 0, err
	}
	if _, err := m.wait(ctx, recoverTasks); err != nil {
		return 0, 0, b.explain(ctx, job, err)
	}
	before, err := b.settled(ctx, job, false)
	if err != nil {
		return 0, 0, err
	}
	// A container of which its node has not told yet that it runs, the ResourceManager
	// ends together with the master (CapacityScheduler.doneApplicationAttempt), and
	// its replacement is another measurement. Nothing shows when it has been told.
	time.Sleep(2 * nodeHeartbeat)
	lost, err := b.killMaster()
	if err != nil {
		return 0, 0, err
	}
	// The master notes the times itself, and each call of yarn-submit would take the
	// processor from what is measured.
	time.Sleep(3 * time.Second)
	var s *proto.JobStatus
	err = poll(ctx, time.Minute, "the next application master to have all agents", func() (_ bool, err error) {
		if s, err = b.status(ctx, job); err != nil {
			return false, nil // nobody answers for a while
		}
		if yarns, err = since(lost, s.Stages, "process"); err != nil || yarns < 0 {
			return false, err
		}
		took = 0
		for i, t := range s.Tasks {
			if was := before.Tasks[i].Container; t.Container != was {
				return false, fmt.Errorf("%s was in %s and is in %q now: its agent has not come back but was replaced", t.Task, was, t.Container)
			}
			attached, err := since(lost, t.Stages, "attached")
			if err != nil || attached < 0 {
				return false, nil // not yet
			}
			took = max(took, attached)
		}
		return true, nil
	})
	if err != nil {
		return 0, 0, b.explain(ctx, job, err)
	}
	noticed, err := b.noticed(ctx, job)
	if err != nil {
		return 0, 0, err
	}
	all := lost.Add(time.Duration(took * float64(time.Second)))
	passed := append([]*proto.Stage{noticed}, s.Stages...)
	way.add(lost, append(passed, &proto.Stage{Name: "agents", AtUnixMs: all.UnixMilli()}), all)
	return took, yarns, b.kill(ctx, job)
}

// loseBare kills command bare, with nothing to run, and waits for its next attempt.
func (b *Jobs) loseBare(ctx context.Context, way *ways) (took float64, err error) {
	m, err := b.newMarks()
	if err != nil {
		return 0, err
	}
	_, err = b.floor(ctx, 0, m, func(id yarn.ApplicationID) error {
		if _, err := b.bareBegan(ctx, m); err != nil {
			return err
		}
		if err := os.Remove(m.stages()); err != nil {
			return err
		}
		lost, err := b.killMaster()
		if err != nil {
			return err
		}
		passed, err := b.bareBegan(ctx, m)
		if err != nil {
			return err
		}
		if took, err = since(lost, passed, "registered"); err != nil {
			return err
		}
		noticed, err := b.noticed(ctx, id.String())
		if err != nil {
			return err
		}
		way.add(lost, append([]*proto.Stage{noticed}, passed...), lost.Add(time.Duration(took*float64(time.Second))))
		return nil
	})
	return took, err
}

// bareBegan waits until command bare has told its stages.
func (b *Jobs) bareBegan(ctx context.Context, m marks) (passed []*proto.Stage, err error) {
	err = poll(ctx, time.Minute, "the bare application master", func() (bool, error) {
		passed, err = m.bareStages()
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return len(passed) > 0, err
	})
	return passed, err
}

// killMaster kills the application master and returns when.
func (b *Jobs) killMaster() (time.Time, error) {
	pid, err := b.master()
	if err != nil {
		return time.Time{}, err
	}
	lost := time.Now()
	return lost, syscall.Kill(pid, syscall.SIGKILL)
}

// noticed is when the ResourceManager had noticed the end of an application's
// first attempt, and begun the second (AppAttemptInfo).
func (b *Jobs) noticed(ctx context.Context, application string) (*proto.Stage, error) {
	var known struct {
		AppAttempts struct {
			AppAttempt []struct {
				ID        int
				StartTime int64 // Unix milliseconds
			}
		}
	}
	if err := b.rm(ctx, "apps/"+application+"/appattempts", &known); err != nil {
		return nil, err
	}
	for _, a := range known.AppAttempts.AppAttempt {
		if a.ID == 2 {
			return &proto.Stage{Name: "noticed", AtUnixMs: a.StartTime}, nil
		}
	}
	return nil, fmt.Errorf("the ResourceManager tells of no second attempt of %s", application)
}
