package runtime

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/proto"
)

// The shim is a sitecustomize.py that stands in front of PYTHONPATH, so that
// every Python of the task runs it as it starts. It does nothing until
// TensorFlow is imported; then it does what these variables of the task's
// environment ask for:
//
//	HOLDFAST_RECOVERY_WAIT_SECS  seconds between two looks of SessionManager
//	                             at whether the model is ready
//	HOLDFAST_TF1                 1: `import tensorflow` gives TensorFlow 2's
//	                             compat.v1 with the behaviour of version 1
//
//go:embed shim/sitecustomize.py
var shim []byte

const (
	envRecoveryWait = "HOLDFAST_RECOVERY_WAIT_SECS"
	envTF1          = "HOLDFAST_TF1"
)

// WriteShim puts the shim into dir, which must exist; dir then belongs in front
// of a task's PYTHONPATH. It may be called again.
func WriteShim(dir string) error {
	path := filepath.Join(dir, "sitecustomize.py")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, shim) {
		return nil
	}
	f, err := os.CreateTemp(dir, ".sitecustomize-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // gone already if all went well
	_, err = f.Write(shim)
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

// shimSettings is what the shim is to do for the job.
func shimSettings(spec *proto.JobSpec) map[string]string {
	env := map[string]string{}
	if spec.Framework != "tensorflow" {
		return env
	}
	if !spec.KeepInterpreterWaits {
		env[envRecoveryWait] = "1"
	}
	if spec.Tf1 {
		env[envTF1] = "1"
	}
	return env
}
