package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
)

// Directory is a checkpoint directory.
type Directory struct {
	Path string // as the job's script spells it; empty if it was named by URI
	URI  string
}

// Browser shows checkpoint directories to many readers at a bounded cost. A listing is made
// once for all who ask within a short time, one at a time and within a time limit. Of data, one
// tensor is read at a time, and beside it one or two checkpoints to compare or verify; neither
// is held in memory. A store is open only while it is used. The methods may be called
// concurrently.
type Browser struct {
	dirs    []*directory
	open    func(ctx context.Context, uri string) (store.Store, error)
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	flights singleflight.Group
	turn    chan struct{} // has an element while a directory is listed or tensors are found
	running sync.WaitGroup

	summaries, long queue // of tensors; of whole checkpoints

	tensorsMu sync.Mutex
	tensors   tensorList
}

const (
	// listTimeout bounds a listing, and listingValid is how long it is shown at least. One
	// that took long is shown for listingCost times as long, up to listingOld.
	listTimeout  = 30 * time.Second
	listingValid = 5 * time.Second
	listingCost  = 20
	listingOld   = 2 * time.Minute
	// idleTime is how long a store stays open, and its listing in memory, after the last use;
	// but a listing at least as long as it is shown.
	idleTime = 30 * time.Second
)

// directory is a checkpoint directory with what is known of it.
type directory struct {
	Directory
	mu    sync.Mutex
	store store.Store // nil: not open
	users int         // of store
	idle  *time.Timer // closes store
	last  result
	// What the last listing has found that tasks continue from; nil: there was none yet.
	safe    *Safe
	safeOld time.Time // from then on, who asks for it has another listing made
	looking bool      // which is being made

	changing sync.Mutex // held while the directory is changed
	changes  int        // that have ended
}

// result is what a listing ended with, and until when it is shown.
type result struct {
	found *Found
	err   error
	until time.Time
}

// Found is what there was in a directory when it was listed. Nobody may change it.
type Found struct {
	Directory
	At          time.Time
	Checkpoints []Entry // the newest first
	// Unknown are the names of some files and directories, and Others is how many there are,
	// where there is no checkpoint of a known format.
	Unknown []string
	Others  int
}

// Entry is a checkpoint in a listing.
type Entry struct {
	Checkpoint
	of *format.Checkpoint // nil for what was moved aside
}

// NewBrowser returns a browser of directories, which are opened by open when they are looked
// at. The caller closes it.
func NewBrowser(dirs []Directory, open func(ctx context.Context, uri string) (store.Store, error)) *Browser {
	b := &Browser{open: open, turn: make(chan struct{}, 1)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	for _, d := range dirs {
		b.dirs = append(b.dirs, &directory{Directory: d})
	}
	return b
}

// Close ends what is being read and closes all stores. No other method may be called after it.
// It does nothing for nil.
func (b *Browser) Close() {
	if b == nil {
		return
	}
	b.cancel()
	b.running.Wait()
	for _, d := range b.dirs {
		d.mu.Lock()
		if d.idle != nil {
			d.idle.Stop()
		}
		d.close()
		d.mu.Unlock()
	}
}

// Directories returns the directories, which other methods name by their positions.
func (b *Browser) Directories() []Directory {
	all := make([]Directory, len(b.dirs))
	for i, d := range b.dirs {
		all[i] = d.Directory
	}
	return all
}

func (b *Browser) directory(i int) (*directory, error) {
	if i < 0 || i >= len(b.dirs) {
		return nil, missing{fmt.Sprintf("there is no checkpoint directory %d; there are %d, counted from 0", i, len(b.dirs))}
	}
	return b.dirs[i], nil
}

// List lists the checkpoints of a directory, with those that are retained or were moved aside:
// as of a short while ago. ctx ends the wait, but not the listing, which others may wait for.
func (b *Browser) List(ctx context.Context, dir int) (*Found, error) {
	d, err := b.directory(dir)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	last := d.last
	d.mu.Unlock()
	if time.Now().Before(last.until) {
		return last.found, last.err
	}
	done := b.flights.DoChan(strconv.Itoa(dir), func() (any, error) {
		b.running.Add(1)
		defer b.running.Done()
		return b.list(d)
	})
	select {
	case r := <-done:
		found, _ := r.Val.(*Found)
		return found, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Safe is what tasks that start now continue from in a directory, as of a time.
type Safe struct {
	At    time.Time
	From  *Checkpoint // nil: nothing is complete, and tasks begin anew
	Total int         // checkpoints in the directory
	Err   error       // why it is not known
}

const (
	// safeValid is how long Safe is taken for true at least, and safeCost for how many times
	// longer than a listing takes, up to listingOld: pages that are made often ask for it each
	// time.
	safeValid = 10 * time.Second
	safeCost  = 200
)

// Safe returns what tasks that start now continue from in a directory, as of a while ago; nil
// if that is not known yet. It does not wait: the listing that it takes is made meanwhile, and
// sooner where the directory has changed at a time since the last one.
func (b *Browser) Safe(dir int, changed time.Time) *Safe {
	d, err := b.directory(dir)
	if err != nil {
		return &Safe{Err: err}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	old := !now.Before(d.safeOld) || d.safe != nil && d.safe.At.Before(changed)
	if old && !d.looking && !now.Before(d.last.until) && b.ctx.Err() == nil {
		d.looking = true
		b.running.Add(1)
		go func() {
			defer b.running.Done()
			_, _ = b.List(b.ctx, dir) // it is in d.safe
			d.mu.Lock()
			defer d.mu.Unlock()
			d.looking = false
		}()
	}
	return d.safe
}

// learn takes in what a listing that took so long has found. d.mu is held.
func (d *directory) learn(found *Found, err error, took time.Duration) {
	now := time.Now()
	d.safe, d.safeOld = &Safe{At: now, Err: err}, now.Add(min(max(safeValid, safeCost*took), listingOld))
	if found == nil {
		return
	}
	d.safe.At, d.safe.Total = found.At, len(found.Checkpoints)
	for i := range found.Checkpoints {
		if c := found.Checkpoints[i].Checkpoint; c.Restart {
			d.safe.From = &c
		}
	}
}

// list lists a directory when its turn has come, and remembers the result. What is listed while the
// directory is changed is neither remembered nor returned: it is listed anew.
func (b *Browser) list(d *directory) (*Found, error) {
	ctx, cancel := context.WithTimeoutCause(b.ctx, listTimeout, fmt.Errorf("it took more than %v; yarn-submit ckpt ls %s waits longer", listTimeout, d.URI))
	defer cancel()
	for {
		d.mu.Lock()
		changes := d.changes
		d.mu.Unlock()
		begin, found, err := b.listOnce(ctx, d)
		took := time.Since(begin)
		d.mu.Lock()
		if d.changes != changes && ctx.Err() == nil {
			d.mu.Unlock()
			continue
		}
		d.last = result{found, err, time.Now().Add(min(max(listingValid, listingCost*took), listingOld))}
		d.learn(found, err, took)
		d.touch()
		d.mu.Unlock()
		return found, err
	}
}

// listOnce lists a directory, and returns when it has begun.
func (b *Browser) listOnce(ctx context.Context, d *directory) (begin time.Time, found *Found, err error) {
	begin = time.Now()
	select {
	case b.turn <- struct{}{}:
		begin = time.Now()
		err = b.use(ctx, d, func(s store.Store) (err error) {
			found, err = look(ctx, s, d.Directory)
			return err
		})
		<-b.turn
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return begin, nil, fmt.Errorf("cannot list the checkpoints in %s: %w", d.URI, err)
	}
	return begin, found, nil
}

// use calls f with a directory's store.
func (b *Browser) use(ctx context.Context, d *directory, f func(store.Store) error) error {
	d.mu.Lock()
	s := d.store
	d.users++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.users--
		d.touch()
		d.mu.Unlock()
	}()
	if s == nil {
		opened, err := b.open(ctx, d.URI)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the directory does not exist: %w", err)
		}
		if err != nil {
			return err
		}
		d.mu.Lock()
		if s = d.store; s == nil {
			s, d.store, opened = opened, opened, nil
		}
		d.mu.Unlock()
		if opened != nil { // another was faster
			opened.Close()
		}
	}
	return f(s)
}

// touch has the directory closed after a time without use. d.mu is held.
func (d *directory) touch() {
	after := max(idleTime, time.Until(d.last.until))
	if d.idle == nil {
		d.idle = time.AfterFunc(after, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.close()
		})
		return
	}
	d.idle.Reset(after)
}

// close closes the store, unless it is used, and drops the listing. d.mu is held.
func (d *directory) close() {
	d.last = result{}
	if d.store != nil && d.users == 0 {
		_ = d.store.Close() // nothing is being written
		d.store = nil
	}
}

// look lists what is in a store.
func look(ctx context.Context, s store.Store, d Directory) (*Found, error) {
	found := &Found{Directory: d, At: time.Now()}
	list, err := hdfsckpt.List(ctx, s)
	if err != nil {
		return nil, err
	}
	retained, err := retain.List(ctx, s)
	if err != nil {
		return nil, err
	}
	aside, err := hdfsckpt.ListAside(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, some := range [][]format.Checkpoint{list, retained} {
		for i, c := range Describe(d.URI, some, list) {
			found.Checkpoints = append(found.Checkpoints, Entry{c, &some[i]})
		}
	}
	for _, c := range DescribeAside(d.URI, aside) {
		found.Checkpoints = append(found.Checkpoints, Entry{Checkpoint: c})
	}
	slices.SortStableFunc(found.Checkpoints, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.step(), a.step()), b.Time.Compare(a.Time.Time))
	})
	if len(found.Checkpoints) == 0 {
		found.Unknown, found.Others, err = hdfsckpt.NotUnderstood(ctx, s)
	}
	return found, err
}

func (e Entry) step() int64 {
	if e.Step == nil {
		return format.NoStep
	}
	return *e.Step
}

// Find returns the entry with a location.
func (f *Found) Find(location string) (*Entry, error) {
	for i := range f.Checkpoints {
		if f.Checkpoints[i].Location == location {
			return &f.Checkpoints[i], nil
		}
	}
	return nil, missing{fmt.Sprintf("there is no checkpoint %s in %s", location, f.URI)}
}
