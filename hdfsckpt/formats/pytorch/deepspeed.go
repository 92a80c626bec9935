package pytorch

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// DeepSpeed is a directory global_stepN of DeepSpeed, beside a file `latest` that names
// the last one whose save has ended (DeepSpeedEngine.save_checkpoint). Each rank writes
// its own files; how many there are stands in none of their names.
const DeepSpeed format.Kind = "deepspeed"

// DeepSpeedFormat is the format of kind DeepSpeed.
type DeepSpeedFormat struct{}

var (
	_ format.Pointer  = DeepSpeedFormat{}
	_ format.Contents = DeepSpeedFormat{}
)

// latest is the pointer.
const latest = "latest"

func (DeepSpeedFormat) Traits() format.Traits {
	return format.Traits{
		Kind: DeepSpeed, FoundBy: []format.Kind{Torch}, Last: []string{latest}, MayGrow: true, RankFile: deepSpeedFile.MatchString,
		Beside:       []string{latest, "global_step*"},
		CompleteWhen: "the files of model and optimizer in global_stepN are whole, and `latest` names it or a later one",
	}
}

var (
	deepSpeedDir = regexp.MustCompile(`^global_step\d+$`)
	// deepSpeedFile is what a rank writes: mp_rank_00_model_states.pt,
	// zero_pp_rank_1_mp_rank_00_optim_states.pt, layer_01-model_00-model_states.pt.
	deepSpeedFile = regexp.MustCompile(`_(model|optim)_states\.pt$|-model_states\.pt$`)
	// deepSpeedRank is the number of a rank in the name of its file; what is around it is
	// the same for all ranks.
	deepSpeedRank = regexp.MustCompile(`^(|.*_)zero_pp_rank_(\d+)(_mp_rank_\d+_(?:model|optim)_states\.pt)$`)
)

// Owners returns the directories global_stepN in which a file lies.
func (DeepSpeedFormat) Owners(file string) []format.Owner {
	return format.OwnedByStep(file, deepSpeedDir.MatchString)
}

// Claim takes the directories global_stepN which hold files by the names that ranks give
// them.
func (f DeepSpeedFormat) Claim(ctx context.Context, d *format.Dir) ([]format.Claim, error) {
	in := path.Base(d.Name)
	number := format.IsNumber(in)
	if format.IsStepDir(in) && !number || d.Depth >= format.MaxDepth {
		return nil, nil // a part of what that directory is
	}
	isSave := func(e store.Info) bool { // one of the directory's own step is a part of it, too
		return isDeepSpeedDir(e) && !(number && format.StepAtEnd(e.Name) == format.StepAtEnd(in))
	}
	if !slices.ContainsFunc(d.Entries, isSave) {
		return nil, nil
	}
	at, err := f.ReadPointer(ctx, d.Store, d.Name)
	if err != nil {
		return nil, err
	}
	saves := map[string][]store.Info{}
	for _, e := range d.Entries {
		if !isSave(e) || d.Only != "" && e.Name != path.Base(d.Only) && e.Name != at.Target {
			continue
		}
		contents, err := d.List(path.Join(d.Name, e.Name))
		if err != nil && !store.Vanished(err) {
			return nil, err
		}
		if slices.ContainsFunc(contents, isDeepSpeedFile) {
			saves[e.Name] = contents
		}
	}
	var claims []format.Claim
	for _, base := range slices.Sorted(maps.Keys(saves)) {
		claims = append(claims, format.Claim{Take: []string{base}, Check: func(ctx context.Context) (*format.Checkpoint, error) {
			name := path.Join(d.Name, base)
			c := &format.Checkpoint{Name: name, Kind: DeepSpeed, Step: format.StepAtEnd(base), State: format.Unchecked, Current: at.Named() && at.Target == base}
			if err := c.AddEntries(ctx, d.Store, name, saves[base]); err != nil {
				return nil, err
			}
			return c, checkDeepSpeed(ctx, d.Store, c, at, saves[at.Target])
		}})
	}
	return claims, nil
}

func isDeepSpeedDir(e store.Info) bool { return e.IsDir() && deepSpeedDir.MatchString(e.Name) }

func isDeepSpeedFile(e store.Info) bool { return !e.IsDir() && deepSpeedFile.MatchString(e.Name) }

// checkDeepSpeed judges a directory beside a pointer. current are the files of the
// directory that the pointer names: as how many ranks there are stands nowhere, one is
// complete only if it has those of as many.
func checkDeepSpeed(ctx context.Context, s store.Store, c *format.Checkpoint, at format.Pointed, current []store.Info) error {
	if c.TooDeep() != "" {
		c.Why = c.TooDeep()
		return nil
	}
	have := map[string]bool{}
	last := time.Time{}
	for _, f := range c.Files {
		have[strings.TrimPrefix(f.Name, c.Name+"/")] = true
		if f.ModTime.After(last) {
			last = f.ModTime
		}
	}
	state, why, err := deepSpeedFiles(ctx, s, c.Name, have)
	if err != nil || state != format.Complete {
		c.State, c.Why = state, why
		return err
	}
	switch other := notOfDeepSpeed(have, current); {
	case len(current) == 0 || format.StepAtEnd(at.Target) < c.Step:
		c.Why = "the file " + latest + " beside it names neither it nor a later one that is there: its save may not have ended"
	case last.After(at.Written):
		c.Why = "it was written to after the file " + latest + " beside it: its save may not have ended"
	case other != "":
		c.Why = fmt.Sprintf("it has no %s, which %s has: its save may not have ended", other, at.Target)
	default:
		c.State = format.Complete
	}
	return nil
}

// deepSpeedFiles judges what ranks have written into a directory by itself: torn if a file is
// cut off, or missing while that of a later rank is there; unchecked if that cannot be seen.
func deepSpeedFiles(ctx context.Context, s store.Store, dir string, have map[string]bool) (format.State, string, error) {
	for _, base := range slices.Sorted(maps.Keys(have)) {
		if !deepSpeedFile.MatchString(base) {
			continue
		}
		h, err := openTorch(ctx, s, path.Join(dir, base))
		switch {
		case err != nil:
			return format.Unchecked, "", err
		case h.empty:
			return format.Torn, base + " is empty", nil
		case h.damage != nil:
			return format.Torn, base + ": " + h.damage.Error(), nil
		case !h.archive:
			return format.Unchecked, "nothing shows whether " + base + " is whole", nil
		}
	}
	if missing := missingOfDeepSpeed(have); missing != "" {
		return format.Torn, missing + " is missing", nil
	}
	return format.Complete, "", nil
}

// notOfDeepSpeed is a file of ranks that others have, and that is not there; empty if
// there is none.
func notOfDeepSpeed(have map[string]bool, others []store.Info) string {
	for _, e := range others {
		if isDeepSpeedFile(e) && !have[e.Name] {
			return e.Name
		}
	}
	return ""
}

// missingOfDeepSpeed is a file that is not there while that of a later rank is, or all
// of a kind; empty if none is known to be missing.
func missingOfDeepSpeed(have map[string]bool) string {
	most := map[[2]string]int{} // the last rank, by what is around it in the names
	model := false
	for name := range have {
		model = model || strings.HasSuffix(name, "model_states.pt")
		if m := deepSpeedRank.FindStringSubmatch(name); m != nil {
			if n, err := strconv.Atoi(m[2]); err == nil {
				k := [2]string{m[1], m[3]}
				most[k] = max(most[k], n)
			}
		}
	}
	if !model {
		return "mp_rank_00_model_states.pt"
	}
	for _, k := range slices.SortedFunc(maps.Keys(most), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		for rank := range min(most[k], 1<<16) {
			if name := fmt.Sprintf("%szero_pp_rank_%d%s", k[0], rank, k[1]); !have[name] {
				return name
			}
		}
	}
	return ""
}

// deepSpeedModel is the file of a model: of one model parallel rank, or of one layer of a
// pipeline.
var deepSpeedModel = regexp.MustCompile(`^(mp_rank_\d+_|layer_\d+-model_\d+-)model_states\.pt$`)

// Tensors are those of the model's files; where there are several, with the name of the file
// before. Those of the optimizer are left out: a rank's file has parts of them, flat and
// without their names.
func (DeepSpeedFormat) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	var models []string
	for _, f := range c.Files {
		if deepSpeedModel.MatchString(path.Base(f.Name)) {
			models = append(models, f.Name)
		}
	}
	var all []*format.Tensor
	for _, name := range models {
		prefix := ""
		if len(models) > 1 {
			prefix = strings.TrimSuffix(path.Base(name), ".pt") + "."
		}
		more, err := torchTensors(o, name, prefix)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, more...)
	}
	return all, nil
}

// Parts are the records of all files.
func (DeepSpeedFormat) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	return savedParts(ctx, s, c.Files)
}

func (DeepSpeedFormat) PointerFile() string { return latest }

func (DeepSpeedFormat) ReadPointer(ctx context.Context, s store.Store, dir string) (format.Pointed, error) {
	p, err := format.ReadPointerFile(ctx, s, path.Join(dir, latest))
	if err != nil || !p.Named() {
		return p, err
	}
	if name := strings.TrimSpace(string(p.Text)); deepSpeedDir.MatchString(name) {
		p.Target = name
	} else {
		p.Err = fmt.Errorf("the file %s names no global_stepN", latest)
	}
	return p, nil
}

// NamedBeside returns none: DeepSpeed's pointer has no other name.
func (DeepSpeedFormat) NamedBeside(context.Context, store.Store, string) (map[string]bool, error) {
	return nil, nil
}

// WritePointer names a directory as DeepSpeed does, without an end of line.
func (f DeepSpeedFormat) WritePointer(ctx context.Context, s store.Store, dir string, before format.Pointed, _ []format.Checkpoint, to *format.Checkpoint) error {
	return store.WriteFile(ctx, s, path.Join(dir, latest), f.CopiedPointer(before, to), 0o644)
}

func (DeepSpeedFormat) CopiedPointer(_ format.Pointed, to *format.Checkpoint) []byte {
	return []byte(path.Base(to.Name))
}

func (DeepSpeedFormat) RememberPointer(ctx context.Context, s store.Store, dir string) error {
	return format.RememberPointerFile(ctx, s, path.Join(dir, latest))
}

// IsFirst is never so: its pointers are not changed.
func (DeepSpeedFormat) IsFirst(context.Context, store.Store, *format.Checkpoint) (bool, error) {
	return false, nil
}

func (DeepSpeedFormat) KnownPointers(ctx context.Context, s store.Store) (map[string]bool, error) {
	return format.KnownPointerFiles(ctx, s, latest)
}
