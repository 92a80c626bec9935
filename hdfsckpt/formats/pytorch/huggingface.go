package pytorch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/safetensors"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/torchfile"
)

// HuggingFace is a directory checkpoint-N of Hugging Face's Trainer: the model,
// the optimizer, the scheduler, each rank's random state and trainer_state.json,
// which the first rank writes last (Trainer._save_checkpoint).
const HuggingFace format.Kind = "huggingface"

// HuggingFaceFormat is the format of kind HuggingFace.
type HuggingFaceFormat struct{}

var _ format.Planned = HuggingFaceFormat{}

var (
	_ format.SaveRecorder = HuggingFaceFormat{}
	_ format.Contents     = HuggingFaceFormat{}
)

func (HuggingFaceFormat) Traits() format.Traits {
	return format.Traits{
		Kind: HuggingFace, FoundBy: []format.Kind{Torch, Safetensors},
		Last:         []string{trainerState, "rng_state_*.pth"}, // other ranks may come after the first
		CompleteWhen: "the directory checkpoint-N has trainer_state.json and its files of weights, with their lengths",
		MayGrow:      true, Summed: "those of torch.save",
	}
}

func (HuggingFaceFormat) Owners(file string) []format.Owner {
	return format.OwnedByStep(file, trainerDir.MatchString)
}

// trainerState is the file without which Trainer cannot go on from a directory.
const trainerState = "trainer_state.json"

// trainerArguments is the file of its arguments.
const trainerArguments = "training_args.bin"

var (
	trainerDir = regexp.MustCompile(`^checkpoint-\d+$`)
	// weightsFile is a file of the model's, an adapter's or a shard's values.
	weightsFile = regexp.MustCompile(`^(model|adapter_model|pytorch_model)(_fsdp)?(-\d+-of-\d+)?\.(safetensors|bin)$`)
	// weightsIndex names the shards of a model that was cut.
	weightsIndex = regexp.MustCompile(`\.(safetensors|bin)\.index\.json$`)
	rankState    = regexp.MustCompile(`^rng_state_(\d+)\.pth$`)
	// configs are written before the model.
	configs = map[string]bool{"config.json": true, "generation_config.json": true, "adapter_config.json": true, "README.md": true}
)

// isTrainers reports, by what is in a directory checkpoint-N, whether Trainer has
// written it: it has one of the files that only Trainer writes, or nothing but
// what Trainer writes before the model.
func isTrainers(entries []store.Info) bool {
	onlyConfigs, config := true, false
	for _, e := range entries {
		if e.Name == trainerState || e.Name == trainerArguments {
			return true
		}
		onlyConfigs = onlyConfigs && configs[e.Name]
		config = config || e.Name == "config.json" || e.Name == "adapter_config.json"
	}
	return onlyConfigs && config
}

// Claim judges the directories checkpoint-N of one directory together. One is Trainer's if
// its files show that, if another one's do, or, where it is the only one, if a task has begun
// it as Trainer would (isFirstSave). Otherwise they are searched like any other directory.
func (HuggingFaceFormat) Claim(ctx context.Context, d *format.Dir) ([]format.Claim, error) {
	var dirs []store.Info
	for _, e := range d.Entries {
		if e.IsDir() && trainerDir.MatchString(e.Name) {
			dirs = append(dirs, e)
		}
	}
	if len(dirs) == 0 || d.Depth >= format.MaxDepth {
		return nil, nil
	}
	contents, series, err := trainerContents(d, dirs)
	if err != nil {
		return nil, err
	}
	first := false
	if len(dirs) == 1 && !series && !isTrainers(contents[0]) {
		if first, err = isFirstSave(ctx, d.Store, path.Join(d.Name, dirs[0].Name), contents[0]); err != nil {
			return nil, err
		}
	}
	var claims []format.Claim
	for i, e := range dirs {
		if !series && !first && !isTrainers(contents[i]) {
			continue
		}
		claims = append(claims, format.Claim{Take: []string{e.Name}, Inside: true, Check: func(ctx context.Context) (*format.Checkpoint, error) {
			name := path.Join(d.Name, e.Name)
			c := &format.Checkpoint{Name: name, Kind: HuggingFace, Step: format.StepAtEnd(e.Name), State: format.Torn, Time: e.ModTime, Inferred: first}
			err := c.AddEntries(ctx, d.Store, name, contents[i])
			if err == nil {
				err = checkTrainer(ctx, d.Store, c)
			}
			return c, err
		}})
	}
	return claims, nil
}

// trainerContents lists directories checkpoint-N. series: by the store's rule, or by what
// is in one, all of them are Trainer's.
func trainerContents(d *format.Dir, dirs []store.Info) (contents [][]store.Info, series bool, err error) {
	contents = make([][]store.Info, len(dirs))
	series = d.Rule.Format == HuggingFace
	for i, e := range dirs {
		if contents[i], err = d.List(path.Join(d.Name, e.Name)); err != nil && !store.Vanished(err) {
			return nil, false, err
		}
		series = series || slices.ContainsFunc(contents[i], func(e store.Info) bool { return e.Name == trainerState })
	}
	return contents, series, nil
}

// checkTrainer judges a directory of Trainer's.
func checkTrainer(ctx context.Context, s store.Store, c *format.Checkpoint) error {
	sizes := map[string]int64{}
	for _, f := range c.Files {
		sizes[strings.TrimPrefix(f.Name, c.Name+"/")] = f.Size
	}
	if _, ok := sizes[trainerState]; !ok {
		c.Why, c.Certain = "it has no file "+trainerState+": the save did not get that far", true
		return nil
	}
	c.Marker = path.Join(c.Name, trainerState)
	if c.TooDeep() != "" {
		c.State, c.Why = format.Unchecked, c.TooDeep()
		return nil
	}
	whole, err := endsAsJSON(ctx, s, c.Marker)
	if err != nil {
		return err
	}
	if !whole {
		c.Why, c.Certain = trainerState+" is cut off", true
		return nil
	}
	weights, why, err := checkWeights(ctx, s, c, sizes)
	if err != nil {
		return err
	}
	missing, err := missingRank(ctx, s, c, sizes)
	switch {
	case err != nil:
		return err
	case why != "":
		c.Why, c.Certain = why, true
	case missing != "":
		c.Why = missing + " is missing" // another rank may still write it
	case weights == 0:
		c.State, c.Why = format.Unchecked, "it has no file of weights by a name that is known"
	default:
		c.State = format.Complete
	}
	return nil
}

// checkWeights counts the files of weights. sizes has the lengths of the directory's files
// by name. why says what is wrong with them; empty if nothing is.
func checkWeights(ctx context.Context, s store.Store, c *format.Checkpoint, sizes map[string]int64) (weights int, why string, err error) {
	need := map[string]int64{}
	for name := range sizes {
		if path.Dir(name) != "." || !weightsIndex.MatchString(name) {
			continue
		}
		if err := shardsOf(ctx, s, path.Join(c.Name, name), need); look.IsDamaged(err) {
			return 0, err.Error(), nil
		} else if err != nil {
			return 0, "", err
		}
	}
	for name := range sizes {
		if path.Dir(name) != "." {
			weights++ // of DeepSpeed or FSDP, which have directories of their own
			continue
		}
		if !weightsFile.MatchString(name) {
			continue
		}
		weights++
		why, err := cutOff(ctx, s, path.Join(c.Name, name))
		if err != nil {
			return 0, "", err
		}
		if why != "" {
			return weights, name + ": " + why, nil
		}
	}
	return weights, look.Lacking(need, sizes), nil
}

// missingRank is the random state of a rank that is not there; "" if none is missing. How many
// ranks there were says the file of arguments; without it, a later rank's file shows that one is
// missing.
func missingRank(ctx context.Context, s store.Store, c *format.Checkpoint, sizes map[string]int64) (string, error) {
	ranks := int64(0)
	for name := range sizes {
		if m := rankState.FindStringSubmatch(name); m != nil {
			if n, err := strconv.ParseInt(m[1], 10, 32); err == nil {
				ranks = max(ranks, n+1)
			}
		}
	}
	if _, ok := sizes[trainerArguments]; ok && ranks > 0 { // none are written of a model alone
		// TrainingArguments.distributed_state is Accelerate's PartialState.
		n, ok, err := savedNumber(ctx, s, path.Join(c.Name, trainerArguments), "distributed_state", "num_processes")
		if err != nil {
			return "", err
		}
		if ok && n > 1 { // one rank alone writes rng_state.pth
			ranks = max(ranks, n)
		}
	}
	for rank := range min(ranks, 1<<16) {
		name := fmt.Sprintf("rng_state_%d.pth", rank)
		if _, ok := sizes[name]; !ok {
			return name, nil
		}
	}
	return "", nil
}

// planEnd is how much of trainer_state.json is looked at, from its end: the keys are in order, and
// what grows with the training (log_history) is before max_steps.
const planEnd = 64 << 10

var maxSteps = regexp.MustCompile(`(?m)^  "max_steps": (\d+),?$`)

// TotalSteps implements format.Planned, by max_steps of trainer_state.json as Trainer writes it
// (TrainerState.save_to_json of transformers/trainer_callback.py).
func (HuggingFaceFormat) TotalSteps(ctx context.Context, s store.Store, c *format.Checkpoint) (int64, error) {
	i := slices.IndexFunc(c.Files, func(f format.File) bool { return f.Name == path.Join(c.Name, trainerState) })
	if i < 0 {
		return 0, nil
	}
	size := c.Files[i].Size
	from := max(0, size-planEnd)
	text, err := look.ReadAt(ctx, s, c.Files[i].Name, from, size-from)
	if err != nil {
		return 0, err
	}
	m := maxSteps.FindSubmatch(text)
	if m == nil {
		return 0, nil
	}
	n, _ := strconv.ParseInt(string(m[1]), 10, 64) // one that is too large is no plan
	return n, nil
}

// endsAsJSON reports whether a file ends as a JSON object does.
func endsAsJSON(ctx context.Context, s store.Store, name string) (bool, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return false, err
	}
	defer r.Close()
	tail := make([]byte, min(r.Size(), 64))
	n, err := r.ReadAt(tail, r.Size()-int64(len(tail)))
	if err != nil && err != io.EOF {
		return false, err
	}
	return bytes.HasSuffix(bytes.TrimSpace(tail[:n]), []byte("}")), nil
}

// shardsOf adds the shards that an index names (its weight_map) to need.
func shardsOf(ctx context.Context, s store.Store, name string, need map[string]int64) error {
	var index struct {
		Weights map[string]string `json:"weight_map"`
	}
	if err := look.JSON(ctx, s, name, &index); look.IsDamaged(err) {
		return look.Damaged(fmt.Errorf("%s: %w", path.Base(name), err))
	} else if err != nil {
		return err
	}
	for _, shard := range index.Weights {
		need[shard] = 1
	}
	return nil
}

// cutOff says what shows that a file of weights is not all there; "" if nothing
// does.
func cutOff(ctx context.Context, s store.Store, name string) (string, error) {
	if path.Ext(name) != SafetensorsSuffix {
		return cutTorch(ctx, s, name)
	}
	err := checkHeader(ctx, s, name)
	switch {
	case look.IsDamaged(err) && (safetensors.IsCut(err) || safetensors.IsForeign(err)):
		return err.Error(), nil
	case look.IsDamaged(err):
		return "", nil
	}
	return "", err
}

func cutTorch(ctx context.Context, s store.Store, name string) (string, error) {
	h, err := openTorch(ctx, s, name)
	switch {
	case err != nil:
		return "", err
	case h.empty:
		return "it is empty", nil
	case h.damage != nil:
		return h.damage.Error(), nil
	}
	return "", nil
}

// trainerOptimizer is the file of the optimizer's state.
const trainerOptimizer = "optimizer.pt"

// Tensors are those of the model, by their names in it, and those of the optimizer, with
// "optimizer." before; of FSDP and DeepSpeed those of their directories.
func (HuggingFaceFormat) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	var all []*format.Tensor
	var inner format.Checkpoint
	for _, f := range c.Files {
		dir, base := path.Split(f.Name)
		var more []*format.Tensor
		var err error
		switch dir = path.Clean(dir); {
		case dir != c.Name && base == torchfile.MetadataFile:
			more, err = DistributedFormat{}.Tensors(o, &format.Checkpoint{Name: dir})
		case dir != c.Name && deepSpeedDir.MatchString(path.Base(dir)):
			inner.Files = append(inner.Files, f)
		case dir != c.Name:
		case base == trainerOptimizer:
			more, err = torchTensors(o, f.Name, "optimizer.")
		case weightsFile.MatchString(base) && path.Ext(base) == SafetensorsSuffix:
			more, err = safetensorsOf(o, f.Name)
		case weightsFile.MatchString(base):
			more, err = torchTensors(o, f.Name, "")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		all = append(all, more...)
	}
	more, err := DeepSpeedFormat{}.Tensors(o, &inner)
	return append(all, more...), err
}

// Parts are the records of what torch.save wrote, of FSDP those in its directories; files of safetensors have no checksums.
func (HuggingFaceFormat) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	parts, problems, err := savedParts(ctx, s, c.Files)
	for _, f := range c.Files {
		if dir, base := path.Split(f.Name); err == nil && base == torchfile.MetadataFile {
			var more []format.Part
			var wrong []format.Problem
			more, wrong, err = DistributedFormat{}.Parts(ctx, s, &format.Checkpoint{Name: path.Clean(dir)})
			parts, problems = append(parts, more...), append(problems, wrong...)
		}
	}
	return parts, problems, err
}
