package hdfsckpt_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/retain"
	"holdfast/test/bound"
)

// FuzzDirectory lists a directory in which what the store keeps for itself is
// damaged, and a plain checkpoint's marker.
func FuzzDirectory(f *testing.F) {
	f.Add([]byte(`{"version": 1, "checkpoint": "model.ckpt-7", "kind": "tensorflow", "step": 7, "files": [{"name": "model.ckpt-7.index", "size": 9}]}`),
		[]byte(`{"format": "plain", "marker": "COMMITTED", "quiet": 1e300}`), []byte(`{"shards": 2}`))
	f.Add([]byte(`{"version": 1}`), []byte(`{"marker": "[", "quiet": -1}`), []byte(`{"shards": -1}`))
	f.Add([]byte(`{}`), []byte(`{"name": "model.ckpt-7", "how": "removed", "files": ["model.ckpt-7.index", "checkpoint"], "marker": "model.ckpt-7.index"}`), []byte(`{}`))
	f.Add([]byte(`null`), []byte(`null`), []byte(`null`))
	f.Fuzz(func(t *testing.T, manifest, rule, marker []byte) {
		dir := t.TempDir()
		for name, content := range map[string][]byte{
			".holdfast/manifests/model.ckpt-7.json":              manifest,
			".holdfast/retained/model.ckpt-7/manifest.json":      manifest,
			".holdfast/retained/model.ckpt-7/record.json":        rule,
			".holdfast/retained/model.ckpt-7/files/checkpoint":   marker,
			".holdfast/rule.json":                                rule,
			"step-60/COMMITTED":                                  marker,
			"model.ckpt-7.index":                                 marker,
			"model.ckpt-7.data-00000-of-00001":                   nil,
			"checkpoint":                                         marker,
			"model.pt":                                           marker,
			"dcp/.metadata":                                      marker,
			"70/_CHECKPOINT_METADATA":                            marker,
			"model.safetensors.index.json":                       rule,
			"latest":                                             rule,
			"global_step7/mp_rank_00_model_states.pt":            marker,
			"alone.safetensors":                                  manifest,
			"last.ckpt":                                          marker,
			"last-v1.ckpt/checkpoint/mp_rank_00_model_states.pt": marker,
			"last-v1.ckpt/latest":                                rule,
			"export/saved_model.pb":                              marker,
			"export/variables/variables.index":                   manifest,
			"checkpoint-9/trainer_state.json":                    rule,
			"checkpoint-9/training_args.bin":                     marker,
			"checkpoint-9/rng_state_0.pth":                       marker,
		} {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx := context.Background()
		s := openLocal(t, dir)
		defer s.Close()
		defer bound.Memory(t, len(manifest)+len(rule)+len(marker), 2000)()
		list, err := hdfsckpt.List(ctx, s)
		if err != nil {
			return
		}
		_, _ = retain.List(ctx, s)
		hdfsckpt.PlanPrune(list, 1, 0)
		for _, c := range list {
			_, _ = hdfsckpt.Verify(ctx, s, c, func(int64, int64) {})
		}
	})
}
