package format

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

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
	"holdfast/hdfsckpt/tfbundle"
)

// TensorFlow is PREFIX.index and PREFIX.data-SSSSS-of-NNNNN (V2).
const TensorFlow Kind = "tensorflow"

type tensorFlow struct{}

var _ interface {
	Pointer
	Contents
	Sweeper
} = tensorFlow{}

func (tensorFlow) Traits() Traits {
	return Traits{
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

// isPartsDir reports whether a directory is where a save collects its parts.
func isPartsDir(base string) bool { return strings.Contains(base, "_temp") }

func (tensorFlow) Owner(file string) (Owner, bool) {
	dir, base := path.Dir(file), path.Base(file)
	m := tfFile.FindStringSubmatch(base)
	if m == nil || m[2] == "meta" || strings.HasPrefix(file, hiddenPrefix) || store.IsTemporary(base) ||
		isPartsDir(path.Base(dir)) || isPlainDir(path.Base(dir)) {
		return Owner{}, false
	}
	return Owner{
		Checkpoint: path.Join(dir, m[1]), Rule: Rule{Format: TensorFlow}, InPlace: true,
		Series: path.Join(dir, "*"+indexSuffix),
	}, true
}

// bundle is the files that exist of one TensorFlow checkpoint.
type bundle struct {
	prefix string
	index  *store.Info
	data   map[int]map[int]store.Info // by number of shards, by shard
	files  []File
}

// bundles returns the bundles among the entries of a directory, by prefix.
func bundles(d *Dir) map[string]*bundle {
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
		b.files = append(b.files, FileOf(d.Name, e))
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

func (f tensorFlow) Claim(ctx context.Context, d *Dir) ([]Claim, error) {
	found := bundles(d)
	if len(found) == 0 {
		return nil, nil
	}
	current := ""
	if slices.ContainsFunc(d.Entries, func(e store.Info) bool { return e.Name == tfbundle.StateFile && e.Mode.IsRegular() }) {
		err := d.Do(func() error {
			at, err := f.ReadPointer(ctx, d.Store, d.Name)
			current = path.Base(at.Target)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var claims []Claim
	for _, b := range found {
		if b.index == nil && len(b.data) == 0 { // a graph alone
			continue
		}
		claims = append(claims, Claim{Check: func(ctx context.Context) (*Checkpoint, error) {
			c, err := b.check(ctx, d)
			if c != nil {
				c.Current = b.prefix == current
			}
			return c, err
		}})
	}
	return claims, nil
}

func (b *bundle) check(ctx context.Context, d *Dir) (*Checkpoint, error) {
	c := &Checkpoint{Name: path.Join(d.Name, b.prefix), Kind: TensorFlow, Step: StepAfterDash(b.prefix), Files: b.files, State: Torn}
	for of := range maps.Keys(b.data) {
		c.Shards = max(c.Shards, of)
	}
	if b.index == nil {
		c.Why = "it has no index: the save did not get that far"
		return c, nil
	}
	c.Marker = path.Join(d.Name, b.index.Name)
	x, err := readIndex(ctx, d.Store, c.Marker)
	if isContent(err) {
		c.Why = fmt.Sprintf("%s: %v", b.index.Name, err)
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	c.Shards = x.Header.Shards
	c.Files, c.Extra = b.split(x)
	if c.Why = b.lacks(x); c.Why == "" {
		c.State = Complete
	}
	return c, nil
}

// split parts the files of the save that the index is of from shards of another one,
// which had another number of them.
func (b *bundle) split(x *tfbundle.Index) (files, extra []File) {
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
	return lacking(need, have)
}

// ReadIndex reads the index of a TensorFlow checkpoint.
func ReadIndex(ctx context.Context, s store.Store, prefix string) (*tfbundle.Index, error) {
	return readIndex(ctx, s, tfbundle.IndexFile(prefix))
}

// readIndex reads an index by its name; contentError if the file was read and is no index.
func readIndex(ctx context.Context, s store.Store, name string) (*tfbundle.Index, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	w := &watchedReader{r: r}
	var x *tfbundle.Index
	cancelled := budgeted(ctx, r.Size(), func() error {
		x, err = tfbundle.Parse(w, r.Size())
		return nil
	})
	if cancelled != nil {
		return nil, cancelled
	}
	if err == nil {
		return x, nil
	}
	if w.failed() != nil {
		return nil, errors.Join(err, w.failed())
	}
	return nil, contentError{err}
}

// Tensors finds the tensors of a checkpoint by its index.
func (tensorFlow) Tensors(o *Opener, c *Checkpoint) ([]*Tensor, error) {
	if err := o.admitFile(tfbundle.IndexFile(c.Name)); err != nil {
		return nil, err
	}
	x, err := ReadIndex(o.ctx, o.s, c.Name)
	if err != nil {
		return nil, err
	}
	file := func(shard int) string { return tfbundle.DataFile(c.Name, shard, x.Header.Shards) }
	open := func(shard int) (io.ReaderAt, error) { return o.Open(file(shard)) }
	var all []*Tensor
	for _, e := range x.Tensors() {
		t := &Tensor{Name: e.Name, Kind: e.DType.Kind(), Shape: e.Shape, Bytes: x.Bytes(e), Pieces: max(1, len(e.Slices))}
		if !e.Partitioned() {
			t.File = file(e.Shard)
		}
		if t.Kind == tensor.StringKind {
			t.strings = func() ([]string, error) { return x.Strings(open, e) }
		} else {
			t.read = func() ([]byte, error) { return x.Read(open, e) }
			t.rows = func(int64) (io.Reader, error) { return x.Rows(open, e), nil }
			t.parts = func(int64) (io.Reader, error) { return x.Parts(open, e), nil }
			t.held = 2 * t.Bytes
		}
		all = append(all, t)
	}
	return all, nil
}

// Parts are the tensors: each has a checksum in the index.
func (tensorFlow) Parts(ctx context.Context, s store.Store, c *Checkpoint) ([]Part, []Problem, error) {
	name := tfbundle.IndexFile(c.Name)
	x, err := readIndex(ctx, s, name)
	switch {
	case isContent(err):
		return nil, []Problem{{File: name, Offset: -1, Text: err.Error()}}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil // the checkpoint's state says so
	case err != nil:
		return nil, nil, err
	}
	var parts []Part
	for i := range x.Entries {
		e := &x.Entries[i]
		if e.Partitioned() {
			continue
		}
		parts = append(parts, Part{
			File: tfbundle.DataFile(c.Name, e.Shard, x.Header.Shards), Offset: e.Offset, Size: e.Size, Tensor: e.Name,
			Check: func() Checker { return tfbundle.NewCheck(e) },
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

func (tensorFlow) Leftover(e store.Info) Leftover {
	switch {
	case e.IsDir() && tfPartsDir.MatchString(e.Name):
		return PartsDir
	case !e.IsDir() && tfTemporary.MatchString(e.Name):
		return TemporaryFile
	}
	return NoLeftover
}

func (tensorFlow) Part(e store.Info) bool { return !e.IsDir() && tfPart.MatchString(e.Name) }

// TensorFlow's pointer is a file `checkpoint` that can be read as a CheckpointState.

func (tensorFlow) PointerFile() string { return tfbundle.StateFile }

func (tensorFlow) ReadPointer(ctx context.Context, s store.Store, dir string) (Pointed, error) {
	p, err := readPointer(ctx, s, path.Join(dir, tfbundle.StateFile))
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
func stateOf(p Pointed) tfbundle.CheckpointState {
	state, err := tfbundle.ParseState(p.Text)
	if err != nil {
		return tfbundle.CheckpointState{}
	}
	return state
}

// WritePointer leaves absolute paths absolute.
func (tensorFlow) WritePointer(ctx context.Context, s store.Store, dir string, before Pointed, list []Checkpoint, to *Checkpoint) error {
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

func (tensorFlow) CopiedPointer(before Pointed, to *Checkpoint) []byte {
	state, name := stateOf(before), path.Base(to.Name)
	state.Current = name
	state.All = append(slices.DeleteFunc(state.All, func(s string) bool { return s == name }), name)
	return state.Bytes()
}

func (tensorFlow) RememberPointer(ctx context.Context, s store.Store, dir string) error {
	return rememberPointer(ctx, s, path.Join(dir, tfbundle.StateFile))
}

func (tensorFlow) KnownPointers(ctx context.Context, s store.Store) (map[string]bool, error) {
	return knownPointers(ctx, s, tfbundle.StateFile)
}
