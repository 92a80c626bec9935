package am

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am/core"
	"holdfast/hdfsckpt"
	"holdfast/proto"
)

const (
	// leftoverAge is how old the files of an unfinished save must be to be taken
	// for those of a broken one while tasks run that may be writing.
	leftoverAge = 10 * time.Minute
	// secureLimit bounds making a store safe, and securePause is the wait before
	// another try within it.
	secureLimit = 2 * time.Minute
	securePause = 2 * time.Second
)

// keeper looks after the job's checkpoint directories.
type keeper struct {
	job   string
	specs []*proto.CheckpointSpec
	open  func(ctx context.Context, uri string) (hdfsckpt.Store, error)
	log   *logrus.Entry
}

// secure makes every directory safe to start from, all at once. It says what
// it had to put right, and which directory it could not look at: the tasks are
// started all the same, since a store that does not answer will tell them so.
// The containers in gone have been given up, but what ran there may live: it is
// shut out first.
func (k *keeper) secure(ctx context.Context, allDown bool, gone []string) core.Secured {
	notes := make([]string, len(k.specs))
	var wg sync.WaitGroup
	for i, c := range k.specs {
		wg.Go(func() {
			done, err := k.secureOne(ctx, c, allDown, gone)
			switch {
			case err != nil:
				notes[i] = fmt.Sprintf("%s could not be made safe to start from: %v", c.Uri, err)
			case len(done) > 0:
				notes[i] = c.Uri + ": " + strings.Join(done, "; ")
			}
		})
	}
	wg.Wait()
	var s core.Secured
	for _, n := range notes {
		if n != "" {
			s.Notes = append(s.Notes, n)
		}
	}
	return s
}

// leave is secure at the job's end, when nobody writes: whose agent has not
// ended in order is shut out, for it may live.
func (k *keeper) leave(ctx context.Context) {
	for _, c := range k.specs {
		if err := k.shutOutRest(ctx, c.Uri); err != nil {
			k.log.WithError(err).Warn("what is left of this job's writers stays")
		}
	}
	for _, n := range k.secure(ctx, true, nil).Notes {
		k.log.Info(n)
	}
}

func (k *keeper) shutOutRest(ctx context.Context, uri string) error {
	store, err := k.open(ctx, uri)
	if err != nil {
		return err
	}
	defer store.Close()
	writers, err := hdfsckpt.Writers(ctx, store)
	for _, w := range writers {
		if job, _ := proto.Writer(w); job == k.job {
			err = errors.Join(err, hdfsckpt.ShutOut(ctx, store, w))
		}
	}
	return err
}

// others are the other jobs that write to a store too, or were lost without a
// word.
func (k *keeper) others(ctx context.Context, store hdfsckpt.Store) ([]string, error) {
	writers, err := hdfsckpt.Writers(ctx, store)
	var jobs []string
	for _, w := range writers {
		if job, _ := proto.Writer(w); job != k.job && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	return jobs, err
}

// secureOne tries again while the store does not answer, and says what it has done.
func (k *keeper) secureOne(ctx context.Context, c *proto.CheckpointSpec, allDown bool, gone []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, secureLimit)
	defer cancel()
	for {
		done, err := k.tryOne(ctx, c, allDown, gone)
		if err == nil {
			return done, nil
		}
		k.log.WithError(err).Warnf("cannot make %s safe to start from; trying again", c.Uri)
		select {
		case <-ctx.Done():
			return done, err
		case <-time.After(securePause):
		}
	}
}

func (k *keeper) tryOne(ctx context.Context, c *proto.CheckpointSpec, allDown bool, gone []string) ([]string, error) {
	store, err := k.open(ctx, c.Uri)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	for _, container := range gone {
		if err := hdfsckpt.ShutOut(ctx, store, proto.WriterName(k.job, container)); err != nil {
			return nil, err
		}
	}
	rule := hdfsckpt.Rule{Format: hdfsckpt.Kind(c.Format), Marker: c.Marker, Quiet: c.QuietSeconds}
	if err := hdfsckpt.SetRule(ctx, store, rule); err != nil {
		return nil, err
	}
	others, err := k.others(ctx, store)
	if err != nil {
		return nil, err
	}
	age := leftoverAge
	if allDown && len(others) == 0 {
		age = 0
	}
	report, err := hdfsckpt.MakeSafe(ctx, store, age)
	done := report.Lines()
	if len(others) > 0 {
		done = append(done, "another job writes here too, or was lost without a word, and what it may not have completed is left alone: "+strings.Join(others, ", "))
	}
	return done, err
}
