package formats

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path"
	"regexp"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// Ray is a directory that Ray Train has copied a reported checkpoint into, with all that
// is in it: below a run's directory, which has a list of those whose copies have ended. A
// run goes on from the last in the list (ray/train/v2/_internal/execution/checkpoint/
// checkpoint_manager.py).
const Ray format.Kind = "ray"

type ray struct{}

var _ format.Format = ray{}

// raySnapshot is the file with the list.
const raySnapshot = "checkpoint_manager_snapshot.json"

// rayDir is the name of a checkpoint, checkpoint_2026-11-25_15-38-52.901110, unless the
// program chooses another (StorageContext.make_default_checkpoint_dir_name).
var rayDir = regexp.MustCompile(`^checkpoint_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.\d+$`)

func (ray) Traits() format.Traits {
	return format.Traits{
		Kind: Ray, FoundBy: []format.Kind{Torch, Safetensors}, Last: []string{raySnapshot},
		CompleteWhen: raySnapshot + " beside the directory lists it",
	}
}

func (ray) Owner(file string) (format.Owner, bool) {
	for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if rayDir.MatchString(path.Base(dir)) {
			return format.Owner{Checkpoint: dir, Series: format.SeriesOf(dir)}, true
		}
	}
	return format.Owner{}, false
}

// Claim takes the directories that the list names, and those that have a name of Ray's
// making.
func (ray) Claim(ctx context.Context, d *format.Dir) ([]format.Claim, error) {
	snapshot, candidate := false, false
	for _, e := range d.Entries {
		snapshot = snapshot || e.Name == raySnapshot && e.Mode.IsRegular()
		candidate = candidate || e.IsDir() && rayDir.MatchString(e.Name)
	}
	if !snapshot && !candidate || d.Depth >= format.MaxDepth {
		return nil, nil
	}
	var listed map[string]int64 // nil: it is not known which are
	why := "there is no " + raySnapshot + " beside it yet"
	if snapshot {
		err := d.Do(func() (err error) {
			listed, why, err = readRaySnapshot(ctx, d.Store, path.Join(d.Name, raySnapshot))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var claims []format.Claim
	for _, e := range d.Entries {
		step, complete := listed[e.Name]
		if !e.IsDir() || !complete && !rayDir.MatchString(e.Name) {
			continue
		}
		claims = append(claims, format.Claim{Take: []string{e.Name}, Check: func(ctx context.Context) (*format.Checkpoint, error) {
			name := path.Join(d.Name, e.Name)
			c := &format.Checkpoint{Name: name, Kind: Ray, Step: format.NoStep, State: format.Unchecked, Why: why}
			switch {
			case complete:
				c.Step, c.State, c.Why = step, format.Complete, ""
			case listed != nil:
				c.State, c.Certain = format.Torn, true
			}
			err := c.AddDir(ctx, d.Store, name)
			switch {
			case len(c.Files) == 0:
				c = nil
			case c.TooDeep() != "":
				c.State, c.Why = format.Unchecked, c.TooDeep()
			}
			return c, err
		}})
	}
	return claims, nil
}

// readRaySnapshot returns the checkpoints that a list names, with the steps that the program
// reported with them, and why one that it does not name may not be complete.
func readRaySnapshot(ctx context.Context, s store.Store, file string) (listed map[string]int64, why string, err error) {
	text, err := store.ReadFile(ctx, s, file)
	switch {
	case store.Vanished(err), errors.Is(err, syscall.EFBIG), errors.Is(err, fs.ErrPermission):
		return nil, raySnapshot + " beside it cannot be read: " + err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	var snapshot struct {
		Results []struct {
			Name    string         `json:"checkpoint_dir_name"`
			Metrics map[string]any `json:"metrics"`
		} `json:"checkpoint_results"`
	}
	if err := json.Unmarshal(text, &snapshot); err != nil {
		return nil, raySnapshot + " beside it is not readable: " + err.Error(), nil
	}
	listed = map[string]int64{}
	for _, r := range snapshot.Results {
		if r.Name != "" && !strings.Contains(r.Name, "/") {
			listed[r.Name] = stepOfMetrics(r.Metrics)
		}
	}
	return listed, raySnapshot + " beside it does not list it: its save has not ended", nil
}

// stepOfMetrics is the step among what a program reports; NoStep if there is none.
func stepOfMetrics(metrics map[string]any) int64 {
	for _, name := range []string{"step", "global_step", "iteration"} {
		if n, ok := metrics[name].(float64); ok && n == math.Trunc(n) && n >= 0 && n < 1<<53 {
			return int64(n)
		}
	}
	return format.NoStep
}
