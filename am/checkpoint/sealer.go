package checkpoint

import (
	"context"
	"fmt"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/mailbox"
	"holdfast/proto"
	"holdfast/runtime"
)

const (
	// settleTime is the wait for more commits of a save after one that may complete it.
	settleTime = 300 * time.Millisecond
	// maxUnknown bounds the bytes that are read to seal one checkpoint: those of files
	// whose checksums no agent computed, as in checkpoints from before the job.
	maxUnknown = 256 << 20
	// quietTime is how long nothing must have been written of a checkpoint without a
	// marker until its save counts as ended. Tasks that wait for that are stopped then.
	quietTime = 3 * time.Second
)

// Status is what a Sealer reports to, and asks about the job.
type Status interface {
	// SetCompleteStep sets the step of the newest complete checkpoint, which is complete now.
	SetCompleteStep(step int64)
	// FoundComplete sets the step of the newest complete checkpoint, which was complete already
	// when this application master began; at is the time of its last file.
	FoundComplete(step int64, at time.Time)
	// Saved says how long the save of a checkpoint that is complete now has taken.
	Saved(took time.Duration)
	// SetTotalSteps sets how many steps the program makes, as a checkpoint of a time says it.
	SetTotalSteps(steps int64, of time.Time)
	// LastRecovery describes the latest recovery of a task, for manifests; "" if there
	// was none.
	LastRecovery() string
}

// Sealer seals checkpoints that have become complete: it writes their manifests. Run
// does that on its own goroutine; the other methods do not block and may be called
// concurrently.
type Sealer struct {
	cfg    Config
	status Status
	todo   *mailbox.Mailbox[report]
	newest chan Newest   // capacity 1
	quiet  time.Duration // quietTime, or a test's
	began  time.Time     // no agent has reported before that

	// The steps of the newest complete checkpoint of each directory, as core was told, and the
	// files of one that may get more. All are Run's.
	known   map[string]int64
	told    map[string]int64 // as status was told, which those of known follow
	pending map[string]pendingFiles

	unread map[[2]string]bool // checkpoints, by directory and name, whose manifests were not read; Run's
}

// report is what an agent of a generation has committed, and when it said so. Without that it
// has every directory looked into: with seal set to seal what is complete, and otherwise to know
// what the job begins with.
type report struct {
	committed  *proto.Committed
	generation int
	at         time.Time
	seal       bool
}

// NewSealer returns a sealer. Run must be called for it to do anything.
func NewSealer(cfg Config, status Status) *Sealer {
	return &Sealer{
		cfg: cfg, status: status, quiet: quietTime, todo: mailbox.New[report](), newest: make(chan Newest, 1),
		began: time.Now(), known: map[string]int64{}, told: map[string]int64{}, pending: map[string]pendingFiles{},
		unread: map[[2]string]bool{},
	}
}

// pendingFiles are those of a checkpoint that may get more, and since when they have not
// changed.
type pendingFiles struct {
	checkpoint format.Checkpoint
	files      string
	since      time.Time
}

// Newest is what the newest checkpoint means for those who go on from it.
type Newest struct {
	FixedWorld bool // as many ranks are needed as have saved it
	// Saved: it has become complete now. Otherwise it was complete when this master began, or
	// is the newest since a newer one was removed.
	Saved bool
}

// Newest returns a channel that receives after another checkpoint was found to be the newest
// that is complete, and its save has ended.
func (s *Sealer) Newest() <-chan Newest { return s.newest }

// Committed takes in what an agent reports to have committed in a generation.
func (s *Sealer) Committed(c *proto.Committed, generation int) {
	s.todo.Put(report{committed: c, generation: generation, at: time.Now()})
}

// ScanAll seals what was committed before this master came, too.
func (s *Sealer) ScanAll() {
	s.todo.Put(report{seal: true})
}

// LookAll reports the checkpoints with which a job begins, before its tasks start. It seals
// nothing.
func (s *Sealer) LookAll() { s.todo.Put(report{}) }

// directory is a checkpoint directory, as Run knows it.
type directory struct {
	spec *proto.CheckpointSpec
	sums *sums
	// due is when it is to be scanned; zero: not before the next commit. changed is when
	// a file was last committed that may complete a checkpoint.
	due, changed time.Time
}

// take takes in a commit that was reported at a time.
func (d *directory) take(c *proto.Committed, at time.Time) {
	rule := runtime.CheckpointRule(d.spec)
	for _, f := range c.Files {
		d.sums.add(f, at)
		if !formats.MayComplete(rule, string(f.Name)) {
			continue
		}
		d.changed = time.Now()
		if next := d.changed.Add(settling(d.spec)); d.due.IsZero() || next.Before(d.due) {
			d.due = next
		}
	}
}

// Run seals until ctx ends, or until done is closed and what was committed by then is
// sealed.
func (s *Sealer) Run(ctx context.Context, done <-chan struct{}) {
	opened := stores{}
	defer opened.close()
	dirs := map[string]*directory{} // by path
	for _, c := range s.cfg.Checkpoints {
		dirs[c.Path] = &directory{spec: c, sums: newSums(s.began)}
	}
	generation := 0
	for last := false; !last; {
		select {
		case <-ctx.Done():
			return
		case <-done:
			last = true
		case <-s.todo.Ready():
		case <-soonest(dirs):
		}
		for _, r := range s.todo.Take() {
			if r.committed == nil && !r.seal {
				for _, d := range dirs {
					s.look(ctx, opened, d)
				}
				continue
			}
			if r.committed == nil {
				for _, d := range dirs {
					d.due = time.Now()
				}
				continue
			}
			generation = r.generation
			if d := dirs[r.committed.Path]; d != nil {
				d.take(r.committed, r.at)
			}
		}
		for _, d := range dirs {
			if !d.due.IsZero() && (last || !time.Now().Before(d.due)) {
				s.scan(ctx, opened, d, generation)
			}
		}
	}
}

// look reports the newest complete checkpoint of a directory in which no task has written yet.
func (s *Sealer) look(ctx context.Context, opened stores, d *directory) {
	store, err := opened.get(ctx, d.spec.Uri, s.cfg.OpenStore)
	var list []format.Checkpoint
	if err == nil {
		list, err = hdfsckpt.List(ctx, store)
	}
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.WithError(err).Warnf("cannot list the checkpoints in %s; the first save of the job does", d.spec.Uri)
	}
	if _, told := s.told[d.spec.Uri]; told {
		return // a task has saved meanwhile
	}
	if newest := format.NewestComplete(list); newest != nil && newest.Step > 0 {
		s.told[d.spec.Uri] = newest.Step
		s.status.FoundComplete(newest.Step, newest.Time)
	}
}

// scan seals what is complete in a directory, and sets when it is to be scanned again.
func (s *Sealer) scan(ctx context.Context, opened stores, d *directory, generation int) {
	if next := d.changed.Add(settling(d.spec)); next.After(d.due) { // there were more commits
		d.due = next
	} else {
		d.due = time.Time{}
	}
	again, err := s.seal(ctx, opened, d.spec.Uri, d.sums, generation)
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.WithError(err).Warnf("cannot seal checkpoints in %s; they are tried again at the next save", d.spec.Uri)
	}
	if !again.IsZero() && (d.due.IsZero() || again.Before(d.due)) {
		d.due = again
	}
}

// soonest returns a channel that receives when the first directory is to be scanned; nil if
// none is.
func soonest(dirs map[string]*directory) <-chan time.Time {
	var first time.Time
	for _, d := range dirs {
		if !d.due.IsZero() && (first.IsZero() || d.due.Before(first)) {
			first = d.due
		}
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first))
}

// settling returns how long after a commit a directory is scanned. Plain checkpoints may
// count as complete after a quiet time; a second is added, since files' modification
// times are taken from another clock.
func settling(c *proto.CheckpointSpec) time.Duration {
	if c.QuietSeconds == 0 {
		return settleTime
	}
	return time.Duration(c.QuietSeconds*float64(time.Second)) + time.Second
}

// stores are the open stores, by URI. An open store caches the manifests that it has read.
type stores map[string]store.Store

func (o stores) get(ctx context.Context, uri string, open func(context.Context, string) (store.Store, error)) (store.Store, error) {
	if s, ok := o[uri]; ok {
		return s, nil
	}
	s, err := open(ctx, uri)
	if err == nil {
		o[uri] = s
	}
	return s, err
}

func (o stores) close() {
	for _, s := range o {
		_ = s.Close() // nothing is being written
	}
}

// seal seals what is complete and not sealed yet. again is when to check once more
// whether a save has ended; zero if there is no need to.
func (s *Sealer) seal(ctx context.Context, opened stores, uri string, known *sums, generation int) (again time.Time, err error) {
	store, err := opened.get(ctx, uri, s.cfg.OpenStore)
	if err != nil {
		return again, err
	}
	list, err := hdfsckpt.List(ctx, store)
	if err != nil {
		return again, err
	}
	if newest := format.NewestComplete(list); newest != nil && newest.Step > 0 {
		if told, before := s.told[uri]; !before || told != newest.Step {
			s.told[uri] = newest.Step
			if known.isFresh(*newest) {
				s.status.SetCompleteStep(newest.Step)
			} else {
				s.status.FoundComplete(newest.Step, newest.Time)
			}
		}
		if step, known := s.known[uri]; newest.Planned() != nil && (!known || step != newest.Step) {
			total, err := newest.Planned().TotalSteps(ctx, store, newest)
			if err != nil {
				return again, err
			}
			s.status.SetTotalSteps(total, newest.Time)
		}
		announce := func(c format.Checkpoint) { s.announce(uri, c, list, known) }
		if again, err = s.saveEnded(ctx, store, uri, *newest, announce); err != nil {
			return again, err
		}
		if again.IsZero() {
			announce(*newest)
		}
	}
	if err := format.RememberPointers(ctx, store, list); err != nil {
		return again, err
	}
	var failed []error
	for _, c := range list {
		if c.State != format.Complete || unknownBytes(c, known.known) > maxUnknown || !s.worthSealing(uri, &c) {
			continue
		}
		_, err := hdfsckpt.Seal(ctx, store, c, manifest.Meta{Job: s.cfg.Job, Generation: int64(generation), After: s.status.LastRecovery()}, known.known)
		if ctx.Err() != nil {
			return again, err
		}
		if err != nil {
			failed = append(failed, err) // which is no reason not to seal the others
			continue
		}
		if took, known := known.saved(c); known {
			s.status.Saved(took)
		}
		s.cfg.Log.Debugf("sealed %s in %s", c.Name, uri)
	}
	switch len(failed) {
	case 0:
		return again, nil
	case 1:
		return again, failed[0]
	}
	return again, fmt.Errorf("%w; %d more cannot be sealed", failed[0], len(failed)-1)
}

// worthSealing reports whether a complete checkpoint is to be sealed. One whose manifest was not read is
// sealed anew once, which helps if the manifest is not what it was written as.
func (s *Sealer) worthSealing(uri string, c *format.Checkpoint) bool {
	if c.Why == "" {
		return true
	}
	of := [2]string{uri, c.Name}
	if s.unread[of] {
		return false
	}
	s.unread[of] = true
	s.cfg.Log.Warnf("%s in %s is complete; %s", c.Name, uri, c.Why)
	return true
}

// saveEnded returns zero if the save of the newest checkpoint has ended, and otherwise
// when to check again. Where nothing says which of its files is the last, the save has
// ended once nothing was written for the quiet time. It announces one before it that has.
func (s *Sealer) saveEnded(ctx context.Context, store store.Store, uri string, c format.Checkpoint, announce func(format.Checkpoint)) (again time.Time, err error) {
	if step, known := s.known[uri]; known && step == c.Step || c.EndsByMarker() {
		return again, nil
	}
	files, writing, err := hdfsckpt.Unfinished(ctx, store, c)
	if err != nil {
		return again, err
	}
	now := time.Now()
	before, pending := s.pending[uri]
	if pending && before.checkpoint.Step < c.Step && !writing {
		// A program that saves more often than that is never quiet for so long; but the save
		// before this one has ended, and nothing is being written now.
		announce(before.checkpoint)
	}
	if !pending || before.files != files || writing {
		s.pending[uri] = pendingFiles{c, files, now}
		return now.Add(s.quiet), nil
	} else if at := before.since.Add(s.quiet); now.Before(at) {
		return at, nil
	}
	delete(s.pending, uri)
	return again, nil
}

// announce signals Newest if the newest checkpoint, of a list, is another than before.
func (s *Sealer) announce(uri string, c format.Checkpoint, list []format.Checkpoint, sums *sums) {
	if before, known := s.known[uri]; known && c.Step == before {
		return
	}
	s.known[uri] = c.Step
	n := Newest{FixedWorld: c.FixedWorld, Saved: sums.isFresh(c)}
	sums.told(c, list)
	select {
	case before := <-s.newest: // the loop has not received the one before
		n.Saved = n.Saved || before.Saved
	default:
	}
	s.newest <- n
}

// unknownBytes returns how many bytes sealing a checkpoint would have to read.
func unknownBytes(c format.Checkpoint, known hdfsckpt.Known) int64 {
	var n int64
	for _, f := range c.Files {
		if _, ok := known.Of(f); !ok {
			n += f.Size
		}
	}
	return n
}
