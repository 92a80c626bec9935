package formats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// SavedModel is a directory that TensorFlow exported a model into, with all that is in it.
// variables/variables.* is a bundle as checkpoints are, and saved_model.pb is written behind
// it and the assets, and before fingerprint.pb (save_and_return_nodes of
// tensorflow/python/saved_model/save.py).
const SavedModel format.Kind = "savedmodel"

type savedModel struct{}

var _ interface {
	format.Contents
	format.Reviewer
} = savedModel{}

const (
	savedModelFile = "saved_model.pb"
	savedModelText = "saved_model.pbtxt"
	variablesDir   = "variables"
	variables      = variablesDir + "/variables" // the bundle's prefix
)

// savedModelOther are files that TensorFlow and Keras write beside saved_model.pb.
var savedModelOther = []string{"fingerprint.pb", "keras_metadata.pb"}

// inAssets is a file of the assets, behind the directory of the export.
var inAssets = regexp.MustCompile(`^(.+?)/assets(\.extra)?/`)

func (savedModel) Traits() format.Traits {
	return format.Traits{
		Kind: SavedModel, FoundBy: []format.Kind{TensorFlow}, Last: append([]string{savedModelFile, savedModelText}, savedModelOther...),
		CompleteWhen: "saved_model.pb, which is written after the variables, is whole, and every file of the variables is there with its length",
		MayGrow:      true, Summed: "the variables",
	}
}

// Owners returns the directory of which a file is a part by its name: saved_model.pb, or one
// of the variables or assets.
func (savedModel) Owners(file string) []format.Owner {
	dir, base := path.Dir(file), path.Base(file)
	switch m := tfFile.FindStringSubmatch(base); {
	case base == savedModelFile || base == savedModelText || slices.Contains(savedModelOther, base):
	case m != nil && m[1] == path.Base(variables) && path.Base(dir) == variablesDir:
		dir = path.Dir(dir)
	default:
		m := inAssets.FindStringSubmatch(file)
		if m == nil {
			return nil
		}
		dir = m[1]
	}
	if dir == "." || format.IsHidden(file) {
		return nil
	}
	return []format.Owner{format.SavedInPlace(dir)}
}

// Claim takes a directory with a saved_model.pb, or with variables by the name that only an
// export gives them.
func (savedModel) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	marker, hasVariables := "", false
	for _, e := range d.Entries {
		switch {
		case e.Mode.IsRegular() && (e.Name == savedModelFile || e.Name == savedModelText && marker == ""):
			marker = e.Name
		case e.IsDir() && e.Name == variablesDir:
			hasVariables = true
		}
	}
	if marker == "" && !hasVariables || d.Name == "." {
		return nil, nil
	}
	var inner []store.Info
	if hasVariables {
		var err error
		if inner, err = d.List(path.Join(d.Name, variablesDir)); err != nil && !store.Vanished(err) {
			return nil, err
		}
	}
	if marker == "" && !areOfExport(inner) {
		return nil, nil
	}
	return []format.Claim{{Whole: true, Check: func(ctx context.Context) (*format.Checkpoint, error) {
		c := &format.Checkpoint{Name: d.Name, Kind: SavedModel, Step: exportStep(path.Base(d.Name)), State: format.Unchecked}
		err := c.AddEntries(ctx, d.Store, d.Name, d.Entries)
		if err == nil {
			err = checkSavedModel(ctx, d, c, marker, inner)
		}
		return c, err
	}}}, nil
}

// areOfExport reports whether a directory called variables holds what an export writes there,
// and nothing that a saver would: other prefixes, or its file `checkpoint`.
func areOfExport(entries []store.Info) bool {
	found := false
	for _, e := range entries {
		m := tfFile.FindStringSubmatch(e.Name)
		switch {
		case m != nil && m[1] != path.Base(variables) || e.Name == tfbundle.StateFile:
			return false
		case m != nil:
			found = true
		}
	}
	return found
}

// exportStep is the step, epoch or version in the name of a directory. There is none in the
// names that Estimators give their exports, which are seconds since 1970.
func exportStep(base string) int64 {
	const y2001 = 1e9
	if step := format.StepAtEnd(base); step < y2001 {
		return step
	}
	return format.NoStep
}

// checkSavedModel judges a directory. marker is the base name of its saved_model.pb; empty if
// it has none. entries are what lies among the variables.
func checkSavedModel(ctx context.Context, d *format.Dir, c *format.Checkpoint, marker string, entries []store.Info) error {
	switch {
	case c.TooDeep() != "":
		c.Why = c.TooDeep()
		return nil
	case marker == "":
		c.Why = "it has no file " + savedModelFile + ", which is written last: the export did not get that far, unless the program gives a checkpoint of its own such names"
		return nil
	}
	c.Marker = path.Join(d.Name, marker)
	wrong, err := wrongInSavedModel(ctx, d.Store, c.Marker)
	var cut onefile.CutOffError
	switch {
	case err != nil:
		return err
	case errors.As(wrong, &cut):
		c.State, c.Why, c.Certain = format.Torn, marker+": "+wrong.Error(), true
		return nil
	case wrong != nil:
		c.Why = marker + ": " + wrong.Error()
		return nil
	}
	b := bundles(&format.Dir{Name: path.Join(d.Name, variablesDir), Entries: entries})[path.Base(variables)]
	if b == nil {
		c.Why = "it has no variables, and nothing shows whether it should"
		return nil
	}
	inner, err := b.check(ctx, &format.Dir{Store: d.Store, Name: path.Join(d.Name, variablesDir)}, false)
	switch {
	case err != nil:
		return err
	case inner.State == format.Torn:
		c.State, c.Why, c.Certain = format.Torn, variablesDir+": "+inner.Why, true
	case inner.State != format.Complete:
		c.Why = variablesDir + ": " + inner.Why
	case strings.HasPrefix(path.Base(d.Name), "temp-"): // of an Estimator, which renames it at the end
		c.State, c.Why = format.Torn, "its name is that of an export that has not ended"
	default:
		c.State = format.Complete
	}
	return nil
}

// Review has directories without saved_model.pb count as torn where those beside them show
// that the program exports there.
func (savedModel) Review(_ format.Rule, found []format.Checkpoint) {
	exports := map[string]bool{}
	for _, c := range found {
		if c.Kind == SavedModel && c.Marker != "" {
			exports[path.Dir(c.Name)+"/"+format.Shape(path.Base(c.Name))] = true
		}
	}
	for i := range found {
		c := &found[i]
		if c.Kind == SavedModel && c.Marker == "" && c.TooDeep() == "" && exports[path.Dir(c.Name)+"/"+format.Shape(path.Base(c.Name))] {
			c.Why, c.Certain = "it has no file "+savedModelFile+": the export did not get that far", true
			c.MarkTorn()
		}
	}
}

// wrongInSavedModel says what is wrong with a file saved_model.pb: a message SavedModel with its
// version and graphs (tensorflow/core/protobuf/saved_model.proto), whose fields fill the file.
func wrongInSavedModel(ctx context.Context, s store.Store, name string) (wrong, err error) {
	r, err := s.Open(ctx, name)
	if errors.Is(err, fs.ErrPermission) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	w := look.Watch(r)
	if path.Base(name) == savedModelText {
		_, end, _ := onefile.Ends(w, r.Size(), 64)
		if !strings.HasSuffix(strings.TrimSpace(string(end)), "}") {
			wrong = onefile.CutOff(errors.New("it does not end as a text of protocol buffers does"))
		}
		return wrong, w.Failed()
	}
	return judgeSavedModel(w, r.Size()), w.Failed()
}

// savedModelMost is how many fields are looked at: a graph for each set of tags.
const savedModelMost = 1 << 10

// judgeSavedModel walks the fields of a SavedModel, and reads none of the graphs.
func judgeSavedModel(r io.ReaderAt, size int64) error {
	if size == 0 {
		return onefile.CutOff(errors.New("it is empty"))
	}
	graphs := 0
	at := int64(0)
	for range savedModelMost {
		if at == size {
			if graphs == 0 {
				return onefile.CutOff(errors.New("it has no graph"))
			}
			return nil
		}
		head := make([]byte, min(size-at, 1+binary.MaxVarintLen64))
		if n, err := r.ReadAt(head, at); n < len(head) {
			return err
		}
		value, n := binary.Uvarint(head[1:])
		switch {
		case n < 0 || head[0] != 0x08 && head[0] != 0x12: // saved_model_schema_version, meta_graphs
			return errors.New("it does not look like TensorFlow's")
		case n == 0:
			return onefile.CutOff(errors.New("it ends in the middle of a field"))
		}
		at += int64(1 + n)
		if head[0] == 0x12 {
			graphs++
			if value > uint64(size-at) {
				return onefile.CutOff(fmt.Errorf("it has %d bytes, and a graph of it reaches to byte %d", size, uint64(at)+value))
			}
			at += int64(value)
		}
	}
	return fmt.Errorf("it has more than %d fields", savedModelMost)
}

// Tensors are the variables.
func (savedModel) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	return tensorFlow{}.Tensors(o, &format.Checkpoint{Name: path.Join(c.Name, variables)})
}

// Parts are the variables.
func (savedModel) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	return tensorFlow{}.Parts(ctx, s, &format.Checkpoint{Name: path.Join(c.Name, variables)})
}
