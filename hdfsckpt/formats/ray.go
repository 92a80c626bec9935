package formats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
)

// Ray is a directory that Ray Train has copied a reported checkpoint into, with all that
// is in it: below a run's directory, which has a list of those whose copies have ended. A
// run goes on from the last in the list (ray/train/v2/_internal/execution/checkpoint/
// checkpoint_manager.py).
const Ray format.Kind = "ray"

type ray struct{}

var _ format.Lister = ray{}

// raySnapshot is the file with the list.
const raySnapshot = "checkpoint_manager_snapshot.json"

// rayDir is the name of a checkpoint, checkpoint_2026-11-25_15-38-52.901110, unless the
// program chooses another (StorageContext.make_default_checkpoint_dir_name).
var rayDir = regexp.MustCompile(`^checkpoint_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.\d+$`)

func (ray) Traits() format.Traits {
	return format.Traits{
		Kind: Ray, FoundBy: []format.Kind{pytorch.Torch, pytorch.Safetensors}, Last: []string{raySnapshot}, Beside: []string{raySnapshot},
		CompleteWhen: raySnapshot + " beside the directory lists it",
	}
}

func (ray) Owners(file string) (all []format.Owner) {
	for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if rayDir.MatchString(path.Base(dir)) {
			all = append(all, format.Owner{Checkpoint: dir, Series: format.SeriesOf(dir)})
		}
	}
	return all
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
		var err error
		if listed, why, err = readRaySnapshot(ctx, d.Store, path.Join(d.Name, raySnapshot)); err != nil {
			return nil, err
		}
	}
	var claims []format.Claim
	for _, e := range d.Entries {
		step, complete := listed[e.Name]
		if !e.IsDir() || !complete && !rayDir.MatchString(e.Name) {
			continue
		}
		claims = append(claims, format.Claim{Take: []string{e.Name}, Inside: true, Check: func(ctx context.Context) (*format.Checkpoint, error) {
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
			case c.State == format.Torn && err == nil:
				err = dropped(ctx, d.Store, c)
			}
			return c, err
		}})
	}
	return claims, nil
}

// dropped has one that the list does not name be no broken save if it is as it was when it was
// sealed: Ray drops what it is about to remove from its list first.
func dropped(ctx context.Context, s store.Store, c *format.Checkpoint) error {
	was, unread, err := c.WasSealed(ctx, s)
	switch {
	case err != nil:
		return err
	case unread != nil:
		c.State, c.Certain, c.Why = format.Unchecked, false, unread.Error()
	case was:
		c.State, c.Certain, c.Why = format.Unchecked, false, raySnapshot+" beside it does not list it any longer"
	}
	return nil
}

// readRaySnapshot returns the checkpoints that a list names, with the steps that the program
// reported with them, and why one that it does not name may not be complete.
func readRaySnapshot(ctx context.Context, s store.Store, file string) (listed map[string]int64, why string, err error) {
	var snapshot struct {
		Results []struct {
			Name    string                     `json:"checkpoint_dir_name"`
			Metrics map[string]json.RawMessage `json:"metrics"`
		} `json:"checkpoint_results"`
	}
	err = look.JSON(ctx, s, file, &snapshot)
	switch {
	case store.Vanished(err), limit.IsExceeded(err), errors.Is(err, fs.ErrPermission):
		return nil, raySnapshot + " beside it cannot be read: " + err.Error(), nil
	case look.IsDamaged(err):
		return nil, raySnapshot + " beside it is not readable: " + err.Error(), nil
	case err != nil:
		return nil, "", err
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
func stepOfMetrics(metrics map[string]json.RawMessage) int64 {
	for _, name := range []string{"step", "global_step", "iteration"} {
		var n *float64
		if json.Unmarshal(metrics[name], &n) == nil && n != nil && *n == math.Trunc(*n) && *n >= 0 && *n < 1<<53 {
			return int64(*n)
		}
	}
	return format.NoStep
}

func (ray) ListFile() string { return raySnapshot }

// rayList is a list, with all that is in it.
type rayList struct {
	all     map[string]json.RawMessage
	results []json.RawMessage
}

const (
	rayResults = "checkpoint_results"
	rayLatest  = "latest_checkpoint_result"
)

func parseRayList(text []byte) (l rayList, err error) {
	if err = json.Unmarshal(text, &l.all); err == nil {
		err = json.Unmarshal(l.all[rayResults], &l.results)
	}
	return l, err
}

// rayName is the directory that an element of a list is about; empty if it is about none.
func rayName(result json.RawMessage) string {
	var r struct {
		Name string `json:"checkpoint_dir_name"`
	}
	_ = json.Unmarshal(result, &r) // null, or of another version
	return r.Name
}

func (ray) ListEntry(text []byte, name string) json.RawMessage {
	l, err := parseRayList(text)
	if err != nil {
		return nil
	}
	for _, r := range l.results {
		if rayName(r) == name {
			return r
		}
	}
	return nil
}

func (ray) Relist(text []byte, gone func(name string) bool, back []json.RawMessage, last string) ([]byte, error) {
	l, err := parseRayList(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not readable: %w", raySnapshot, err)
	}
	var results []json.RawMessage
	var latest json.RawMessage
	for i, r := range slices.Concat(l.results, back) {
		listed := slices.ContainsFunc(results, func(o json.RawMessage) bool { return rayName(o) == rayName(r) })
		if i < len(l.results) && gone(rayName(r)) || i >= len(l.results) && listed {
			continue
		}
		results = append(results, r)
		if rayName(r) == last {
			latest = r
		}
	}
	if latest == nil {
		return nil, fmt.Errorf("%s does not list %s", raySnapshot, last)
	}
	if rayName(l.all[rayLatest]) == last && len(back) == 0 && len(results) == len(l.results) {
		return nil, nil
	}
	l.all[rayLatest] = latest
	if l.all[rayResults], err = json.Marshal(results); err != nil {
		return nil, err
	}
	return json.Marshal(l.all)
}
