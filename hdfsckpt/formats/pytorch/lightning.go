package pytorch

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// Lightning is a directory NAME.ckpt of Lightning's DeepSpeed strategy: checkpoint/ with what
// each rank writes, and a file `latest`, which DeepSpeed writes last
// (lightning/pytorch/strategies/deepspeed.py). Its files NAME.ckpt are of torch.save, its
// directories of FSDP of torch.distributed.checkpoint.
const Lightning format.Kind = "lightning"

// LightningFormat is the format of kind Lightning.
type LightningFormat struct{}

var _ format.Contents = LightningFormat{}

// lightningTag is the directory with the ranks' files, which `latest` names.
const lightningTag = "checkpoint"

func (LightningFormat) Traits() format.Traits {
	return format.Traits{
		Kind: Lightning, FoundBy: []format.Kind{Torch, DeepSpeed}, Last: []string{latest}, MayGrow: true,
		CompleteWhen: "the files of model and optimizer in NAME.ckpt/checkpoint are whole, and `latest` beside that was written after them",
	}
}

// lightningFile is a file in a directory NAME.ckpt, of whatever strategy.
var lightningFile = regexp.MustCompile(`^(.*\.ckpt)/(checkpoint/[^/]+|latest|zero_to_fp32\.py|meta\.pt|\.metadata|[^/]+\.distcp)$`)

func (LightningFormat) Owners(file string) []format.Owner {
	m := lightningFile.FindStringSubmatch(file)
	if m == nil || format.IsHidden(file) {
		return nil
	}
	return []format.Owner{format.SavedInPlace(m[1])}
}

// Claim takes the directories NAME.ckpt which hold the directory of the ranks' files.
func (LightningFormat) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	saves := map[string][]store.Info{} // by name, what is in the directory of the ranks
	entries := map[string][]store.Info{}
	for _, e := range d.Entries {
		if !e.IsDir() || path.Ext(e.Name) != ".ckpt" || d.Depth >= format.MaxDepth {
			continue
		}
		all, err := d.List(path.Join(d.Name, e.Name))
		if err != nil && !store.Vanished(err) {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(e store.Info) bool { return e.IsDir() && e.Name == lightningTag }) {
			continue
		}
		ranks, err := d.List(path.Join(d.Name, e.Name, lightningTag))
		if err != nil && !store.Vanished(err) {
			return nil, err
		}
		if slices.ContainsFunc(ranks, isDeepSpeedFile) {
			saves[e.Name], entries[e.Name] = ranks, all
		}
	}
	var claims []format.Claim
	for base := range saves {
		claims = append(claims, format.Claim{Take: []string{base}, Check: func(ctx context.Context) (*format.Checkpoint, error) {
			c := &format.Checkpoint{Name: path.Join(d.Name, base), Kind: Lightning, Step: format.StepAtEnd(strings.TrimSuffix(base, ".ckpt")), State: format.Torn}
			err := c.AddEntries(ctx, d.Store, c.Name, entries[base])
			if err == nil {
				err = checkLightning(ctx, d.Store, c)
			}
			return c, err
		}})
	}
	return claims, nil
}

// checkLightning judges a directory by its files.
func checkLightning(ctx context.Context, s store.Store, c *format.Checkpoint) error {
	if c.TooDeep() != "" {
		c.State, c.Why = format.Unchecked, c.TooDeep()
		return nil
	}
	pointer := path.Join(c.Name, latest)
	var named, last time.Time
	have := map[string]bool{}
	for _, f := range c.Files {
		if f.Name == pointer {
			c.Marker, named = f.Name, f.ModTime
		}
		if base, ok := strings.CutPrefix(f.Name, path.Join(c.Name, lightningTag)+"/"); ok {
			have[base] = true
			if f.ModTime.After(last) {
				last = f.ModTime
			}
		}
	}
	if c.Marker == "" {
		c.Why, c.Certain = "it has no file "+latest+": the save did not get that far", true
		return nil
	}
	state, why, err := deepSpeedFiles(ctx, s, path.Join(c.Name, lightningTag), have)
	switch {
	case err != nil:
		return err
	case state != format.Complete:
		c.State, c.Why, c.Certain = state, why, state == format.Torn
	case last.After(named):
		c.State, c.Why = format.Unchecked, "it was written to after its file "+latest+": its save may not have ended"
	default:
		c.State = format.Complete
	}
	if c.State == format.Complete && c.Step == format.NoStep {
		return stepInside(ctx, s, c, path.Join(c.Name, lightningTag, "mp_rank_00_model_states.pt"))
	}
	return nil
}

// stepInside sets the step of a checkpoint that has none in its name, as last.ckpt has, by what
// Lightning writes into the file.
func stepInside(ctx context.Context, s store.Store, c *format.Checkpoint, file string) error {
	n, ok, err := savedNumber(ctx, s, file, "global_step")
	if ok && n >= 0 {
		c.Step, c.Unnumbered = n, true
	}
	return err
}

// Tensors are those of the model.
func (LightningFormat) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	return DeepSpeedFormat{}.Tensors(o, c)
}

// Parts are the records of all files.
func (LightningFormat) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	parts, problems, err := savedParts(ctx, s, c.Files)
	if err != nil {
		err = fmt.Errorf("%s: %w", c.Name, err)
	}
	return parts, problems, err
}
