package runtime

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/proto"
	"holdfast/runtime/frameworks"
)

// The shim is a sitecustomize.py that stands in front of PYTHONPATH, so that
// every Python of the task runs it as it starts, and a package _holdfast with a
// module for each framework that needs one. It does nothing until
// the framework is imported; then it does what these variables of the task's
// environment ask for. The job's own environment comes before them, so that each can
// be switched off:
//
//	HOLDFAST_RECOVERY_WAIT_SECS  seconds between two looks of SessionManager
//	                             at whether the model is ready
//	HOLDFAST_NAME_LOST_PEERS     1: a step that failed since a peer was lost says
//	                             so, and not that it was cancelled
//	HOLDFAST_DEVICE_FILTERS      1: a worker's session sees the parameter servers
//	                             and the worker itself only, where the script sets
//	                             no device filters and its graph needs no others
//	HOLDFAST_LINGER              1: a worker stays at its end for as long as others
//	                             are at work whose sessions need all workers; the
//	                             agent puts the name of a FIFO in its place
//	HOLDFAST_COORDINATOR_EXIT    1: a program with a ClusterCoordinator that ends
//	                             does not wait for a worker that is lost
//	HOLDFAST_FAIL_FAST           1: calls to a server that is not there fail at
//	                             once, with versions of TensorFlow from 2.4 on
//	HOLDFAST_MODEL_KEPT          1: a chief goes on from what the parameter servers
//	                             hold, in place of the last checkpoint
//	HOLDFAST_JAX_CLUSTER         0: jax.distributed.initialize needs its arguments
//	HOLDFAST_XGBOOST_CLUSTER     0: xgboost.collective.init needs its arguments, and
//	                             the script starts the tracker
//	HOLDFAST_LIGHTGBM_CLUSTER    0: LightGBM needs its parameter machines
//	HOLDFAST_TORCHFT_CLUSTER     0: a replica group of torchft starts its store itself,
//	                             and its manager tells the node's own name
//	HOLDFAST_HOROVOD_RENDEZVOUS  0: the rendezvous of Horovod is served by somebody
//	                             else
//	HOLDFAST_DEEPSPEED_CLUSTER   0: DeepSpeed's launcher is told nothing of the job
//	HOLDFAST_ACCELERATE_CLUSTER  0: nor is Accelerate's, and ranks without an
//	                             accelerator do not meet
//	HOLDFAST_STACKS              0: SIGQUIT does not make the program write where
//	                             its threads stand (which needs no framework)
//	HOLDFAST_TF1                 1: `import tensorflow` gives TensorFlow 2's
//	                             compat.v1 with the behaviour of version 1
//	HOLDFAST_WARM                the module that a warm interpreter imports
//	                             (package container/warm); the main program
//	                             notes how it imports it
//
//go:embed python/*.py python/_holdfast/*.py
var shim embed.FS

// WriteShim puts the shim into dir, which must exist; dir then belongs in front
// of a task's PYTHONPATH. It may be called again.
func WriteShim(dir string) error {
	files, err := fs.Sub(shim, "python")
	if err != nil {
		return err
	}
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				return fmt.Errorf("making %s: %w", filepath.Join(dir, name), err)
			}
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return writeOnce(filepath.Join(dir, name), text)
	})
}

func writeOnce(path string, text []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".shim-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // gone already if all went well
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// Warm reports whether containers keep interpreters that have imported the
// framework, for attempts to come.
func Warm(spec *proto.JobSpec) bool { return frameworks.Of(spec).Warm != "" && !spec.Cold }
