package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// committed is the name of the file that makes a checkpoint count.
const committed = "COMMITTED"

type shard struct {
	Step    int64     `json:"step"`
	Values  []float64 `json:"values"`
	Padding string    `json:"padding,omitempty"`
}

func padding(n int) string { return strings.Repeat("x", n) }

func stepDir(dir string, step int64) string {
	return filepath.Join(dir, "step-"+strconv.FormatInt(step, 10))
}

func shardPath(dir string, step int64, index int) string {
	return filepath.Join(stepDir(dir, step), fmt.Sprintf("ps-%d.json", index))
}

func writeShard(dir string, step int64, index int, s shard) error {
	return writeJSON(shardPath(dir, step, index), s)
}

func readShard(dir string, step int64, index int) (shard, error) {
	var s shard
	path := shardPath(dir, step, index)
	b, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("restoring step %d: %w", step, err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("restoring step %d: %s is no shard: %w", step, path, err)
	}
	if s.Step != step || len(s.Values) == 0 {
		return s, fmt.Errorf("restoring step %d: %s is a shard of step %d with %d values", step, path, s.Step, len(s.Values))
	}
	return s, nil
}

// commit makes the checkpoint of a step count.
func commit(dir string, step int64, shards int) error {
	return writeJSON(filepath.Join(stepDir(dir, step), committed), map[string]int64{"step": step, "shards": int64(shards)})
}

// writeJSON lets the file appear under its name when it is whole.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// newest is the step of the newest committed checkpoint, 0 if there is none.
func newest(dir string) (int64, error) {
	steps, err := list(dir)
	if err != nil {
		return 0, err
	}
	for _, s := range slices.Backward(steps) {
		if isCommitted(dir, s) {
			return s, nil
		}
	}
	return 0, nil
}

func isCommitted(dir string, step int64) bool {
	_, err := os.Stat(filepath.Join(stepDir(dir, step), committed))
	return err == nil
}

// list gives the steps that have a directory, in order.
func list(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for checkpoints: %w", err)
	}
	var steps []int64
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "step-")
		if n, err := strconv.ParseInt(name, 10, 64); ok && err == nil && n > 0 {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// prune removes all but the newest committed checkpoints, the marker of each
// first, so that none of them counts while it goes.
func prune(dir string, keep int) error {
	steps, err := list(dir)
	if err != nil {
		return err
	}
	kept := 0
	for _, s := range slices.Backward(steps) {
		if kept < keep {
			if isCommitted(dir, s) {
				kept++
			}
			continue
		}
		if err := os.Remove(filepath.Join(stepDir(dir, s), committed)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the checkpoint of step %d: %w", s, err)
		}
		if err := os.RemoveAll(stepDir(dir, s)); err != nil {
			return fmt.Errorf("removing the checkpoint of step %d: %w", s, err)
		}
	}
	return nil
}
