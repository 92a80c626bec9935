package am

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am/core"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
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
	// othersLive is how long another job, once seen to live, counts as living.
	othersLive = time.Minute
)

// keeper looks after the job's checkpoint directories.
type keeper struct {
	job   string
	specs []*proto.CheckpointSpec
	open  func(ctx context.Context, uri string) (store.Store, error)
	log   *logrus.Entry

	mu    sync.Mutex
	ends  bool                 // the job does: it writes no heartbeat any longer
	lived map[string]time.Time // when other jobs were seen to live, by directory and job
}

func newKeeper(cfg Config) *keeper {
	return &keeper{job: cfg.ID, specs: cfg.Spec.Checkpoints, open: cfg.OpenStore, log: cfg.Log, lived: map[string]time.Time{}}
}

// beat writes the job's heartbeat in each directory until ctx ends.
func (k *keeper) beat(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range k.specs {
		wg.Go(func() { k.beatIn(ctx, c.Uri) })
	}
	wg.Wait()
}

// ending tells whether the job is.
func (k *keeper) ending() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ends
}

// appear makes the directory whose modification time is the job's heartbeat.
func (k *keeper) appear(ctx context.Context, ckptStore store.Store) error {
	if k.ending() {
		return nil
	}
	return store.MkdirAll(ctx, ckptStore, hdfsckpt.WriterDir(proto.WriterName(k.job, proto.MasterContainer)), 0o755)
}

func (k *keeper) beatIn(ctx context.Context, uri string) {
	tick := time.NewTicker(hdfsckpt.HeartbeatEvery)
	defer tick.Stop()
	var store store.Store
	defer func() {
		if store != nil {
			store.Close()
		}
	}()
	me := proto.WriterName(k.job, proto.MasterContainer)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var err error
		if store == nil {
			store, err = k.open(ctx, uri)
		}
		if err == nil {
			err = hdfsckpt.Heartbeat(ctx, store, me)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) { // it may not have been made yet
			k.log.WithError(err).Warnf("cannot write the job's heartbeat in %s; other jobs may take it for lost", uri)
		}
	}
}

// secure makes every directory safe to start from, all at once. It says what
// it had to put right, and which directory it could not look at: the tasks are
// started all the same, since a store that does not answer will tell them so.
// The containers in gone have been given up, but what ran there may live: it is
// shut out first.
func (k *keeper) secure(ctx context.Context, allDown bool, gone []string) core.StorePrepared {
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
	var s core.StorePrepared
	for _, n := range notes {
		if n != "" {
			s.Notes = append(s.Notes, n)
		}
	}
	return s
}

// leave is secure at the job's end, when nobody writes: whose agent has not
// ended in order is shut out, for it may live. succeeded: the program has saved all
// that it wanted to.
func (k *keeper) leave(ctx context.Context, succeeded bool) {
	k.mu.Lock()
	k.ends = true
	k.mu.Unlock()
	for _, c := range k.specs {
		if err := k.leaveOne(ctx, c.Uri, succeeded); err != nil {
			k.log.WithError(err).Warn("what is left of this job's writers stays")
		}
	}
	for _, n := range k.secure(ctx, true, nil).Notes {
		k.log.Info(n)
	}
}

func (k *keeper) leaveOne(ctx context.Context, uri string, succeeded bool) error {
	store, err := k.open(ctx, uri)
	if err != nil {
		return err
	}
	defer store.Close()
	err = k.shutOutRest(ctx, store)
	if succeeded {
		err = errors.Join(err, hdfsckpt.SavesEnded(ctx, store))
	}
	return err
}

func (k *keeper) shutOutRest(ctx context.Context, ckptStore store.Store) error {
	writers, err := hdfsckpt.Writers(ctx, ckptStore)
	for _, w := range writers {
		switch job, container := proto.Writer(w); {
		case job != k.job:
		case container == proto.MasterContainer:
			err = errors.Join(err, store.RemoveDir(ctx, ckptStore, hdfsckpt.WriterDir(w)))
		default:
			err = errors.Join(err, hdfsckpt.ShutOut(ctx, ckptStore, w))
		}
	}
	return err
}

// others are the other jobs that live and write to a store too; told is what the
// job's story is to say of them. Those that were lost without a word are shut out.
// At the job's end nobody is watched for that, and all count as living.
func (k *keeper) others(ctx context.Context, store store.Store) (jobs []string, told []string, err error) {
	writers, err := hdfsckpt.Writers(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	unsure := false
	for _, w := range writers {
		if job := proto.WritersJob(w); job != k.job && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
			unsure = unsure || time.Since(k.seen(store, job)) > othersLive
		}
	}
	if !unsure || k.ending() {
		return jobs, nil, nil
	}
	living, lost, err := hdfsckpt.OtherJobs(ctx, store, k.job, proto.WritersJob, hdfsckpt.LostAfter)
	if err != nil {
		return nil, nil, err
	}
	k.mu.Lock()
	for _, job := range living {
		k.lived[store.URI()+" "+job] = time.Now()
	}
	k.mu.Unlock()
	if len(lost) > 0 {
		told = append(told, "shut out what was lost without a word and could still write here: "+strings.Join(lost, ", "))
		err = hdfsckpt.ShutOutJobs(ctx, store, lost, proto.WritersJob)
	}
	return living, told, err
}

func (k *keeper) seen(store store.Store, job string) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lived[store.URI()+" "+job]
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
	if err := k.appear(ctx, store); err != nil {
		return nil, err
	}
	others, done, err := k.others(ctx, store)
	if err != nil {
		return done, err
	}
	age := leftoverAge
	if allDown && len(others) == 0 {
		age = 0
	}
	makeSafe := hdfsckpt.MakeSafe
	if k.ending() {
		makeSafe = hdfsckpt.LeaveSafe
	}
	report, err := makeSafe(ctx, store, age)
	done = append(done, report.Lines()...)
	if len(others) > 0 {
		done = append(done, "another job writes here too, and what it may not have completed is left alone: "+strings.Join(others, ", "))
	}
	return done, err
}
