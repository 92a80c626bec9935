package formats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/format/saves"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
	"holdfast/hdfsckpt/tfbundle"
)

// TensorFlow is PREFIX.index and PREFIX.data-SSSSS-of-NNNNN (V2).
const TensorFlow format.Kind = "tensorflow"

type tensorFlow struct{}

var _ interface {
	format.Pointer
	format.Contents
	format.Sweeper
	format.SaveRecorder
} = tensorFlow{}

func (tensorFlow) Traits() format.Traits {
	return format.Traits{
		Kind: TensorFlow,
		// Saver, Checkpoint and CheckpointManager, with parameter servers too.
		Last:           []string{"*" + indexSuffix, tfbundle.StateFile},
		CompleteWhen:   "PREFIX.index can be read, and every shard that it names is there with its length",
		Steady:         true,
		RepairsPointer: true,
		Spare:          ".meta", // a graph
	}
}

const indexSuffix = ".index"

// tfFile takes the name of a file of a TensorFlow checkpoint apart.
var tfFile = regexp.MustCompile(`^(.+)\.(index|meta|data-(\d{5})-of-(\d{5}))$`)

func (tensorFlow) Owners(file string) []format.Owner {
	dir, base := path.Dir(file), path.Base(file)
	m := tfFile.FindStringSubmatch(base)
	if m == nil || m[2] == "meta" || strings.HasPrefix(file, format.HiddenPrefix) || store.IsTemporary(base) ||
		format.IsPartsDir(path.Base(dir)) {
		return nil
	}
	name := path.Join(dir, m[1])
	return []format.Owner{{Checkpoint: name, Rule: format.Rule{Format: TensorFlow}, InPlace: true, Series: format.SeriesOf(name)}}
}

// bundle is the files that exist of one TensorFlow checkpoint.
type bundle struct {
	prefix string
	index  *store.Info
	data   map[int]map[int]store.Info // by number of shards, by shard
	files  []format.File
}

// bundles returns the bundles among the entries of a directory, by prefix.
func bundles(d *format.Dir) map[string]*bundle {
	found := map[string]*bundle{}
	for _, e := range d.Entries {
		m := tfFile.FindStringSubmatch(e.Name)
		if m == nil || e.IsDir() {
			continue
		}
		b := found[m[1]]
		if b == nil {
			b = &bundle{prefix: m[1], data: map[int]map[int]store.Info{}}
			found[m[1]] = b
		}
		b.files = append(b.files, format.FileOf(d.Name, e))
		switch {
		case m[2] == "index":
			b.index = &e
		case m[3] != "":
			shard, _ := strconv.Atoi(m[3])
			of, _ := strconv.Atoi(m[4])
			if b.data[of] == nil {
				b.data[of] = map[int]store.Info{}
			}
			b.data[of][shard] = e
		}
	}
	return found
}

func (f tensorFlow) Claim(ctx context.Context, d *format.Dir) ([]format.Claim, error) {
	found := bundles(d)
	if len(found) == 0 {
		return nil, nil
	}
	current := ""
	if slices.ContainsFunc(d.Entries, func(e store.Info) bool { return e.Name == tfbundle.StateFile && e.Mode.IsRegular() }) {
		at, err := f.ReadPointer(ctx, d.Store, d.Name)
		if err != nil {
			return nil, err
		}
		current = path.Base(at.Target)
	}
	place := d.Place
	if !place { // where the rule names this format, nobody has asked
		var err error
		if place, err = isPlace(d); err != nil {
			return nil, err
		}
	}
	var claims []format.Claim
	for _, b := range found {
		if b.index == nil && len(b.data) == 0 { // a graph alone
			continue
		}
		claims = append(claims, format.Claim{Check: func(ctx context.Context) (*format.Checkpoint, error) {
			c, err := b.check(ctx, d, place)
			if c != nil {
				c.Current = b.prefix == current
			}
			return c, err
		}})
	}
	return claims, nil
}

// check looks into a checkpoint; place says that the number of its directory is no step (isPlace).
func (b *bundle) check(ctx context.Context, d *format.Dir, place bool) (*format.Checkpoint, error) {
	c := &format.Checkpoint{Name: path.Join(d.Name, b.prefix), Kind: TensorFlow, Step: format.StepAfterDash(b.prefix), Files: b.files, State: format.Torn,
		Certain: d.Part} // no pointer leads to a part
	if c.Step == format.NoStep && !place && format.IsStepDir(path.Base(d.Name)) {
		c.Step = format.FileStep(c.Name, "")
	}
	for of := range maps.Keys(b.data) {
		c.Shards = max(c.Shards, of)
	}
	if b.index == nil {
		c.Why = "it has no index: the save did not get that far"
		return c, nil
	}
	c.Marker = path.Join(d.Name, b.index.Name)
	x, err := readIndex(ctx, d.Store, c.Marker)
	if look.IsDamaged(err) {
		if d.Part && len(b.data) == 0 {
			return nil, nil // TensorFlow's is written last: it is another program's
		}
		c.Why = fmt.Sprintf("%s: %v", b.index.Name, err)
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.Shards = x.Header.Shards
	c.Files, c.Extra = b.split(x)
	if c.Why = b.lacks(x); c.Why == "" {
		c.State = format.Complete
	}
	return c, nil
}

// split parts the files of the save that the index is of from shards of another one,
// which had another number of them.
func (b *bundle) split(x *tfbundle.Index) (files, extra []format.File) {
	for _, f := range b.files {
		m := tfFile.FindStringSubmatch(path.Base(f.Name))
		if of, err := strconv.Atoi(m[4]); err == nil && of != x.Header.Shards {
			extra = append(extra, f)
		} else {
			files = append(files, f)
		}
	}
	return files, extra
}

// lacks says which shard is missing or short; empty if none is.
func (b *bundle) lacks(x *tfbundle.Index) string {
	need, have := map[string]int64{}, map[string]int64{}
	for i, size := range x.ShardSizes() {
		name := tfbundle.DataFile(b.prefix, i, x.Header.Shards)
		need[name] = size
		if f, ok := b.data[x.Header.Shards][i]; ok {
			have[name] = f.Size
		}
	}
	return look.Lacking(need, have)
}

// ReadIndex reads the index of a TensorFlow checkpoint.
func ReadIndex(ctx context.Context, s store.Store, prefix string) (*tfbundle.Index, error) {
	return readIndex(ctx, s, tfbundle.IndexFile(prefix))
}

// readIndex reads an index by its name, as look.File does.
func readIndex(ctx context.Context, s store.Store, name string) (x *tfbundle.Index, err error) {
	err = look.File(ctx, s, name, tfbundle.Memory, func(r io.ReaderAt, size int64) (err error) {
		x, err = tfbundle.Parse(r, size)
		return err
	})
	return x, err
}

// Tensors finds the tensors of a checkpoint by its index.
func (tensorFlow) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	if err := o.AdmitFile(tfbundle.IndexFile(c.Name)); err != nil {
		return nil, err
	}
	x, err := ReadIndex(o.Context(), o.Store(), c.Name)
	if err != nil {
		return nil, err
	}
	file := func(shard int) string { return tfbundle.DataFile(c.Name, shard, x.Header.Shards) }
	open := func(shard int) (io.ReaderAt, error) { return o.Open(file(shard)) }
	var all []*format.Tensor
	for _, e := range x.Tensors() {
		t := &format.Tensor{Name: e.Name, Kind: e.DType.Kind(), Shape: e.Shape, Bytes: x.Bytes(e), Pieces: max(1, len(e.Slices))}
		if !e.Partitioned() {
			t.File = file(e.Shard)
		}
		if t.Kind == tensor.StringKind {
			t.Source.Strings = func() ([]string, error) { return x.Strings(open, e) }
		} else {
			t.Source.Read = func() ([]byte, error) { return x.Read(open, e) }
			t.Source.Rows = func(int64) (io.Reader, error) { return x.Rows(open, e), nil }
			t.Source.Parts = func(int64) (io.Reader, error) { return x.Parts(open, e), nil }
			t.Source.Held = 2 * t.Bytes
		}
		all = append(all, t)
	}
	return all, nil
}

// Parts are the tensors: each has a checksum in the index.
func (tensorFlow) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	name := tfbundle.IndexFile(c.Name)
	x, err := readIndex(ctx, s, name)
	switch {
	case look.IsDamaged(err):
		return nil, []format.Problem{{File: name, Offset: -1, Text: err.Error()}}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil // the checkpoint's state says so
	case err != nil:
		return nil, nil, err
	}
	var parts []format.Part
	for i := range x.Entries {
		e := &x.Entries[i]
		if e.Partitioned() {
			continue
		}
		parts = append(parts, format.Part{
			File: tfbundle.DataFile(c.Name, e.Shard, x.Header.Shards), Offset: e.Offset, Size: e.Size, Tensor: e.Name,
			Check: func() format.Checker { return tfbundle.NewCheck(e) },
		})
	}
	return parts, nil, nil
}

var (
	// PREFIX_temp/ and PREFIX_temp_UUID/ hold part-00000-of-00002... of a save.
	tfPartsDir = regexp.MustCompile(`^.+_temp(_[0-9a-f]+)?$`)
	tfPart     = regexp.MustCompile(`^part-\d{5}-of-\d{5}\.`)
	// checkpoint.tmpUUID becomes checkpoint; FILE.tempstateNNN becomes FILE.
	tfTemporary = regexp.MustCompile(`^checkpoint\.tmp[0-9a-f]+$|\.(index|data-\d{5}-of-\d{5})\.tempstate\d+$`)
)

func (tensorFlow) Leftover(e store.Info) format.Leftover {
	switch {
	case e.IsDir() && tfPartsDir.MatchString(e.Name):
		return format.PartsDir
	case !e.IsDir() && tfTemporary.MatchString(e.Name):
		return format.TemporaryFile
	}
	return format.NoLeftover
}

func (tensorFlow) Part(e store.Info) bool { return !e.IsDir() && tfPart.MatchString(e.Name) }

// TensorFlow's pointer is a file `checkpoint` that can be read as a CheckpointState.

func (tensorFlow) PointerFile() string { return tfbundle.StateFile }

func (tensorFlow) ReadPointer(ctx context.Context, s store.Store, dir string) (format.Pointed, error) {
	p, err := format.ReadPointerFile(ctx, s, path.Join(dir, tfbundle.StateFile))
	if err != nil || !p.Named() {
		return p, err
	}
	state, err := tfbundle.ParseState(p.Text)
	if p.Err = err; err == nil {
		p.Target = state.Current
	}
	return p, nil
}

// stateOf is what a pointer named; nothing if it is not readable.
func stateOf(p format.Pointed) tfbundle.CheckpointState {
	state, err := tfbundle.ParseState(p.Text)
	if err != nil {
		return tfbundle.CheckpointState{}
	}
	return state
}

// NamedBeside reads what may be the files of savers that have names of their own for theirs
// (latest_filename of tf.compat.v1.train.Saver.save).
func (tensorFlow) NamedBeside(ctx context.Context, s store.Store, dir string) (map[string]bool, error) {
	entries, err := s.List(ctx, dir)
	if err != nil && !store.Vanished(err) {
		return nil, err
	}
	named := map[string]bool{}
	for _, e := range entries {
		if e.Name == tfbundle.StateFile || e.IsDir() || tfFile.MatchString(e.Name) {
			continue
		}
		p, err := format.ReadPointerFile(ctx, s, path.Join(dir, e.Name))
		if err != nil {
			return nil, err
		}
		if state := stateOf(p); state.Current != "" {
			for _, name := range append(state.All, state.Current) {
				named[path.Base(name)] = true
			}
		}
	}
	return named, nil
}

// WritePointer leaves absolute paths absolute.
func (tensorFlow) WritePointer(ctx context.Context, s store.Store, dir string, before format.Pointed, list []format.Checkpoint, to *format.Checkpoint) error {
	whole := map[string]bool{}
	for _, c := range list {
		if c.Whole() {
			whole[path.Base(c.Name)] = true
		}
	}
	old := stateOf(before)
	state := tfbundle.CheckpointState{Current: path.Base(to.Name)}
	if d := path.Dir(old.Current); old.Current != "" && d != "." {
		state.Current = path.Join(d, state.Current)
	}
	for _, p := range old.All {
		if whole[path.Base(p)] && path.Base(p) != path.Base(to.Name) {
			state.All = append(state.All, p)
		}
	}
	state.All = append(state.All, state.Current)
	return store.WriteFile(ctx, s, path.Join(dir, tfbundle.StateFile), state.Bytes(), 0o644)
}

func (tensorFlow) CopiedPointer(before format.Pointed, to *format.Checkpoint) []byte {
	state, name := stateOf(before), path.Base(to.Name)
	state.Current = name
	state.All = append(slices.DeleteFunc(state.All, func(s string) bool { return s == name }), name)
	return state.Bytes()
}

func (tensorFlow) RememberPointer(ctx context.Context, s store.Store, dir string) error {
	return format.RememberPointerFile(ctx, s, path.Join(dir, tfbundle.StateFile))
}

func (tensorFlow) KnownPointers(ctx context.Context, s store.Store) (map[string]bool, error) {
	return format.KnownPointerFiles(ctx, s, tfbundle.StateFile)
}

// A saver writes the file `checkpoint` after the index of what it has saved. One that is killed
// between its first index and the first `checkpoint` leaves nothing that tells it from a program
// which writes no `checkpoint`, as tf.train.Checkpoint.write does not, or from what a user has put
// there: but for a record that a task was to make the index. A program that saves another step
// while there is no `checkpoint`, or that has ended by itself, is of the other kind.
//
//	.holdfast/first/FILE.json    FILE: `checkpoint` in that directory, an entry
var firstSaves = saves.Records{
	Dir: store.OwnDir + "/first", Suffix: indexSuffix,
	Shown: func(ctx context.Context, s store.Store, r saves.Record) (bool, error) {
		return store.Exists(ctx, s, r.File)
	},
}

func firstSave(name string) saves.Record {
	return saves.Record{File: path.Join(path.Dir(name), tfbundle.StateFile), Name: name}
}

// BeginsSave: it is only of saves that are called after their steps that a program finds the newest
// by `checkpoint`. What is a part of a save has an index, too.
func (tensorFlow) BeginsSave(name string, dir bool) bool {
	prefix, isIndex := strings.CutSuffix(path.Base(name), indexSuffix)
	return !dir && isIndex && format.StepAfterDash(prefix) != format.NoStep && len(OwnersOf(name)) > 0
}

func (tensorFlow) BeginSave(ctx context.Context, s store.Store, index string) error {
	r := firstSave(strings.TrimSuffix(index, indexSuffix))
	if there, err := store.Exists(ctx, s, r.File); err != nil || there {
		return err
	}
	return firstSaves.Begin(ctx, s, r)
}

func (tensorFlow) SavesEnded(ctx context.Context, s store.Store) error {
	return firstSaves.Ended(ctx, s)
}

func (tensorFlow) ForgetSaves(ctx context.Context, s store.Store) error {
	return firstSaves.Forget(ctx, s)
}

func (tensorFlow) IsFirst(ctx context.Context, s store.Store, c *format.Checkpoint) (bool, error) {
	return firstSaves.IsLast(ctx, s, firstSave(c.Name))
}
