package hdfsckpt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/store"
)

// Kind is the form that a checkpoint's files have.
type Kind string

const (
	// TensorFlow is PREFIX.index and PREFIX.data-SSSSS-of-NNNNN (V2).
	TensorFlow Kind = "tensorflow"
	// Torch is a file of torch.save.
	Torch Kind = "torch"
	// Distributed is a directory that torch.distributed.checkpoint wrote:
	// *.distcp, and .metadata, which is written last.
	Distributed Kind = "dcp"
	// Plain is files of the program's own: a directory step-N, complete when it
	// has a file COMMITTED, which is written last; or what the store's Rule says.
	Plain Kind = "plain"
)

// State tells whether a checkpoint can be restored from.
type State string

const (
	// Sealed: complete, and with a manifest that its files still agree with.
	Sealed State = "sealed"
	// Complete: every file that belongs to it is there, with its length.
	Complete State = "complete"
	// Torn: it cannot be restored from; Checkpoint.Why says what is wrong.
	Torn State = "torn"
	// InProgress: not complete, and written to a short while ago.
	InProgress State = "in progress"
	// Unchecked: nothing in it tells whether it is complete; it counts as not
	// complete, and nothing removes it by itself. Why says more.
	Unchecked State = "unchecked"
)

// recent is how old the files of a save may be for it to count as in progress.
const recent = 2 * time.Minute

// NoStep is the step of a checkpoint whose name has none.
const NoStep = -1

// Checkpoint is a checkpoint in a store.
type Checkpoint struct {
	Name    string    // the prefix, directory or file, relative to the store's root
	Kind    Kind      //
	Step    int64     // NoStep if the name has none
	Time    time.Time // of its last file
	Size    int64     // bytes, all files together
	Shards  int       // files with values
	Files   []File    // sorted by name
	State   State     //
	Why     string    // what is wrong, unless complete
	Current bool      // the file `checkpoint` beside it names it

	Manifest *Manifest // of a sealed one

	last   string // the file that makes it count, if it is there
	surely bool   // it is of its kind beyond doubt, so that it may be moved aside if torn
	// supposed: that it is of its kind is concluded from how it began. While tasks run
	// it may be a program's own, and is let be.
	supposed bool
	former   string // of one that is kept as a unit: its name before
	tooDeep  string // something of it that was not looked at
}

// Whole tells whether the checkpoint can be restored from.
func (c *Checkpoint) Whole() bool { return c.State == Complete || c.State == Sealed }

// EndsByMarker tells whether the file that a save writes last is a part of its form.
// Of others, which are complete by what their files say, more may still come: the
// optimizer's file after the model's, other ranks' states.
func (c *Checkpoint) EndsByMarker() bool { return c.Kind != Torch && c.Kind != HuggingFace }

// isDir tells whether it is a directory with what is in it.
func (c *Checkpoint) isDir() bool {
	return len(c.Files) > 0 && strings.HasPrefix(c.Files[0].Name, c.Name+"/")
}

// isDirOf tells whether a unit of that name is a directory.
func (c *Checkpoint) isDirOf(unit string) bool { return path.Base(c.Files[0].Name) != path.Base(unit) }

// PointedAt tells whether the program goes on from the one that its file
// `checkpoint` names, so that a rollback can choose.
func (c *Checkpoint) PointedAt() bool { return c.Kind == TensorFlow }

// File is a file of a checkpoint.
type File struct {
	Name    string // relative to the store's root
	Size    int64
	ModTime time.Time
	Inode   uint64 // as in Info
}

const (
	maxDepth     = 5  // directories that are looked into
	parallelism  = 16 // calls at a time
	hiddenPrefix = "."
)

// Checkpoints lists the checkpoints in a store and in the directories below its
// root, the newest last: by step, then by time. It looks into every index and
// manifest, and reads none of the data.
func Checkpoints(ctx context.Context, s store.Store) ([]Checkpoint, error) {
	rule, err := readRule(ctx, s)
	if err != nil {
		return nil, err
	}
	return checkpoints(ctx, s, rule)
}

func checkpoints(ctx context.Context, s store.Store, rule Rule) ([]Checkpoint, error) {
	return (&lister{s: s, rule: rule}).list(ctx)
}

func (l *lister) list(ctx context.Context) ([]Checkpoint, error) {
	l.group, l.ctx = errgroup.WithContext(ctx)
	l.slots = make(chan struct{}, parallelism)
	var manifests map[string]*Manifest
	if l.root == "" {
		l.root = "."
		l.group.Go(func() (err error) { manifests, err = l.manifests(); return err })
	}
	l.group.Go(func() error { return l.directory(l.root, 0) })
	if err := l.group.Wait(); err != nil {
		return nil, err
	}
	l.doubtPlain()
	l.doubtRule()
	for i := range l.found {
		c := &l.found[i]
		if m := manifests[c.Name]; m != nil && c.State == Complete && m.fits(c) {
			c.State, c.Manifest = Sealed, m
		}
	}
	slices.SortFunc(l.found, func(a, b Checkpoint) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), a.Time.Compare(b.Time), strings.Compare(a.Name, b.Name))
	})
	return l.found, nil
}

// NewestComplete is the one to restore from: the complete one with the highest
// step, of several the youngest; nil if there is none.
func NewestComplete(list []Checkpoint) *Checkpoint {
	var best *Checkpoint
	for i := range list {
		c := &list[i]
		if !c.Whole() {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(c.Step, best.Step), c.Time.Compare(best.Time)) >= 0 {
			best = c
		}
	}
	return best
}

// lister goes through the directories. Its goroutines end with its group;
// slots bounds how many of them wait for the store.
type lister struct {
	s          store.Store
	rule       Rule
	root       string // where to begin, without a look at manifests; "": the store's root
	chosenFrom bool   // only those from which a program chooses by what is there
	group      *errgroup.Group
	ctx        context.Context
	slots      chan struct{}

	mu    sync.Mutex
	found []Checkpoint
}

func (l *lister) add(c Checkpoint) {
	slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if len(c.Files) > 0 {
		c.Time = time.Time{} // that of the directory counts only where nothing is in it
	}
	for _, f := range c.Files {
		c.Size += f.Size
		if f.ModTime.After(c.Time) {
			c.Time = f.ModTime
		}
	}
	if c.State == Torn && time.Since(c.Time) < recent {
		c.State = InProgress
	}
	l.mu.Lock()
	l.found = append(l.found, c)
	l.mu.Unlock()
}

// limited takes a slot for one use of the store.
func (l *lister) limited(f func() error) error {
	select {
	case l.slots <- struct{}{}:
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
	defer func() { <-l.slots }()
	return f()
}

// directory finds the checkpoints in one directory, and goes into those below.
func (l *lister) directory(dir string, depth int) error {
	var entries []store.Info
	err := l.limited(func() (err error) {
		entries, err = l.s.List(l.ctx, dir)
		return err
	})
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case l.rule.own():
		return l.byRule(dir, entries, depth)
	case l.rule.finds(Distributed) && isDistributed(entries):
		return l.limited(func() error { return l.distributed(dir, entries) })
	case l.rule.finds(Plain) && isPlainName(path.Base(dir)) && !holdsOthers(entries):
		return l.limited(func() error { return l.plain(dir, entries) })
	}
	if parts := belongs(dir, entries); parts != nil && (l.rule.finds(Torch) || l.rule.finds(Directory)) {
		if stepDir.MatchString(path.Base(dir)) {
			return l.limited(func() error { return l.unit(dir, parts) })
		}
		if err := l.unit(dir, parts); err != nil {
			return err
		}
		entries = without(entries, parts)
	}
	var trainers []store.Info
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case !e.IsDir() || strings.HasPrefix(e.Name, hiddenPrefix) || isTemporaryPart(e.Name) || depth >= maxDepth:
		case trainerDir.MatchString(e.Name) && (l.rule.finds(HuggingFace) || l.rule.Format == Torch):
			trainers = append(trainers, e)
		default:
			l.group.Go(func() error { return l.directory(name, depth+1) })
		}
	}
	if len(trainers) > 0 {
		l.group.Go(func() error { return l.trainers(dir, trainers, depth) })
	}
	if l.rule.finds(Torch) {
		l.torchFiles(dir, entries)
	}
	if l.rule.finds(TensorFlow) && !l.chosenFrom {
		return l.tensorflow(dir, entries)
	}
	return nil
}

// without leaves some entries of a directory out.
func without(entries, some []store.Info) []store.Info {
	out := map[string]bool{}
	for _, e := range some {
		out[e.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e store.Info) bool { return out[e.Name] })
}

// holdsOthers tells whether a directory step-N is only where a program keeps
// checkpoints that are known by themselves.
func holdsOthers(entries []store.Info) bool {
	others := false
	for _, e := range entries {
		if e.Name == Committed {
			return false
		}
		others = others || tfFile.MatchString(e.Name) || torchSuffixes[path.Ext(e.Name)] || path.Ext(e.Name) == safetensorsSuffix
	}
	return others
}

// vanished tells that a file was removed while it was being looked at.
func vanished(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESTALE)
}

// stepOf finds the step in a name: the number after its last dash.
func stepOf(name string) int64 {
	i := strings.LastIndexByte(name, '-')
	if n, err := strconv.ParseUint(name[i+1:], 10, 63); err == nil && i >= 0 {
		return int64(n)
	}
	return NoStep
}

var (
	// stepDir is a directory that is called after a step: 40, step_40,
	// checkpoint-500, global_step40.
	stepDir = regexp.MustCompile(`^((global_?)?step|checkpoint|ckpt|epoch|iter)?[-_=]?\d+$`)
	endsIn  = regexp.MustCompile(`(?:^|[-_=.]|step|checkpoint|ckpt|epoch|iter)(\d+)$`)
)

// numberAtEnd finds the step in a name that a program made up: the number that
// it ends in, as in step_40, epoch=3-step=400.
func numberAtEnd(name string) int64 {
	if m := endsIn.FindStringSubmatch(name); m != nil {
		if n, err := strconv.ParseUint(m[1], 10, 63); err == nil {
			return int64(n)
		}
	}
	return NoStep
}

// lacking says which of the files that a checkpoint needs are missing or too
// short; "" if none is.
func lacking(need, have map[string]int64) string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(need)) {
		switch size, ok := have[name]; {
		case !ok:
			wrong = append(wrong, name+" is missing")
		case size < need[name]:
			wrong = append(wrong, fmt.Sprintf("%s has %d bytes, %d are needed", name, size, need[name]))
		}
	}
	const most = 3
	if n := len(wrong) - most; n > 0 {
		wrong = append(wrong[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(wrong, ", ")
}

func fileOf(dir string, i store.Info) File {
	return File{Name: path.Join(dir, i.Name), Size: i.Size, ModTime: i.ModTime, Inode: i.Inode}
}
