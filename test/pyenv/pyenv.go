// Package pyenv has the Pythons with the frameworks that tests and demos need:
// virtual environments made from PyPI, once per user and list of requirements,
// and for PyTorch the system's.
package pyenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/test/testcluster/cached"
)

var tensorflow = Environment{Requirements: []string{"tensorflow-cpu==2.21.0", "numpy==2.4.6"}}

// TensorFlow returns a Python interpreter that has TensorFlow.
func TensorFlow(ctx context.Context) (python string, err error) { return tensorflow.Make(ctx) }

// Older TensorFlows, the second of which is TensorFlow 1.
var (
	TensorFlow23  = Environment{Python: "3.8", Requirements: []string{"tensorflow-cpu==2.3.4", "protobuf==3.20.3"}}
	TensorFlow115 = Environment{Python: "3.7", Requirements: []string{"tensorflow-cpu==1.15.0", "protobuf==3.20.3"}}
)

// Torch returns a Python interpreter that has PyTorch: the one that TORCH_PYTHON
// names, or the system's.
func Torch(ctx context.Context) (python string, err error) {
	python = os.Getenv("TORCH_PYTHON")
	if python == "" {
		python = "/usr/bin/python3"
	}
	if out, err := run(ctx, nil, python, "-c", "import torch.distributed"); err != nil {
		return "", fmt.Errorf("%s has no PyTorch: %w (on Debian: apt-get install python3-torch; TORCH_PYTHON names another Python)\n%s", python, err, out)
	}
	return python, nil
}

var newestTorch = Environment{Requirements: []string{
	"torch==2.15.0", "lightning==2.6.6", "transformers==5.24.0", "accelerate==1.15.0", "deepspeed==0.19.8", "numpy==2.4.6", "torchft==0.2.0",
}}

// NewestTorch returns a Python interpreter that has PyTorch from PyPI, and what builds on
// it. CUDA comes along and is not used. Its environment takes 6 GB.
func NewestTorch(ctx context.Context) (python string, err error) { return newestTorch.Make(ctx) }

// Torch22 has PyTorch 2.2, with a launcher that works: that of Debian's 1.13 does not.
var Torch22 = Environment{Python: "3.11", Requirements: []string{"torch==2.2.2", "numpy==1.26.4"}}

var jax = Environment{Requirements: []string{"jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6"}}

// JAX returns a Python interpreter that has JAX.
func JAX(ctx context.Context) (python string, err error) { return jax.Make(ctx) }

// Orbax has JAX and Orbax, OlderOrbax those of a year before.
var (
	Orbax      = Environment{Requirements: []string{"jax==0.10.2", "jaxlib==0.10.2", "orbax-checkpoint==0.12.8", "numpy==2.4.6"}}
	OlderOrbax = Environment{Requirements: []string{"jax==0.8.1", "jaxlib==0.8.1", "orbax-checkpoint==0.11.30", "numpy==2.3.5"}}
)

// Fairseq has the newest fairseq, whose last wheel is for Python 3.8, and a PyTorch of its time.
var Fairseq = Environment{Python: "3.8", Requirements: []string{"fairseq==0.12.2", "torch==1.12.1", "torchaudio==0.12.1", "numpy==1.23.5"}}

// KerasOnJAX has Keras 3 with JAX below.
var KerasOnJAX = Environment{Requirements: []string{"keras==3.15.1", "jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6"}}

var boosting = Environment{Requirements: []string{"xgboost-cpu==3.2.0", "lightgbm==4.7.0", "numpy==2.4.6", "scipy==1.17.1"}}

// Boosting returns a Python interpreter that has XGBoost and LightGBM.
func Boosting(ctx context.Context) (python string, err error) { return boosting.Make(ctx) }

var ray = Environment{Requirements: []string{"ray[train]==2.60.0", "numpy==2.4.6"}}

// Ray returns a Python interpreter that has Ray with Ray Train.
func Ray(ctx context.Context) (python string, err error) { return ray.Make(ctx) }

var mxnet = Environment{Python: "3.8", Requirements: []string{"mxnet==1.9.1", "numpy==1.23.5"}}

// MXNet returns a Python interpreter that has MXNet.
func MXNet(ctx context.Context) (python string, err error) { return mxnet.Make(ctx) }

// horovod is built from its sources, which takes minutes: PyPI has no wheel of it.
// PyTorch is the newest with which it compiles, as later ones want C++17.
var horovod = Environment{
	Python:       "3.11",
	Requirements: []string{"torch==2.0.1", "numpy==1.26.4", "setuptools==69.5.1", "wheel==0.43.0", "packaging==24.0", "cloudpickle==3.0.0", "psutil==5.9.8", "pyyaml==6.0.1", "cffi==2.1.1"},
	Built:        []string{"horovod==0.28.1"},
	BuildEnv: []string{
		"HOROVOD_WITH_PYTORCH=1", "HOROVOD_WITHOUT_TENSORFLOW=1", "HOROVOD_WITHOUT_MXNET=1",
		"HOROVOD_WITH_GLOO=1", "HOROVOD_WITHOUT_MPI=1", "HOROVOD_CPU_OPERATIONS=GLOO", "MAKEFLAGS=-j2",
	},
}

// Horovod returns a Python interpreter that has Horovod for PyTorch. To build it there must
// be a C++ compiler and CMake.
func Horovod(ctx context.Context) (python string, err error) { return horovod.Make(ctx) }

// skein imports distutils, which Python 3.12 and later have from setuptools only,
// and names no versions.
var skein = Environment{Requirements: []string{"skein==0.8.2", "setuptools==80.9.0", "grpcio==1.85.1", "protobuf==7.36.2", "cryptography==50.0.2"}}

// Skein returns a Python interpreter that has skein, which runs applications on
// YARN: to compare with.
func Skein(ctx context.Context) (python string, err error) { return skein.Make(ctx) }

// Environment is a virtual environment: an interpreter, and what PyPI has for it.
type Environment struct {
	// Python is the interpreter's version, such as 3.7; empty: that of python3 on the
	// PATH. Others are looked for on the PATH and where pyenv has them.
	Python       string
	Requirements []string // as pip takes them, with their versions
	// Built are requirements that are built from their sources once the others are
	// there, with BuildEnv, NAME=VALUE, beside what the environment has.
	Built, BuildEnv []string
}

// Make returns the environment's interpreter. It makes the environment unless there is
// one already.
func (e Environment) Make(ctx context.Context) (python string, err error) {
	base, err := e.interpreter(ctx)
	if err != nil {
		return "", err
	}
	// The interpreter is in the digest, since an environment points to it.
	parts := slices.Concat([]string{base}, e.Requirements, e.Built, e.BuildEnv)
	digest := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	dir, err := cached.Dir(ctx, "venv-"+hex.EncodeToString(digest[:6]), func(ctx context.Context, dir string) error {
		return e.fill(ctx, base, dir)
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bin", "python"), nil
}

// interpreter is the Python of which the environment is made.
func (e Environment) interpreter(ctx context.Context) (string, error) {
	if e.Python == "" {
		python, err := exec.LookPath("python3")
		if err != nil {
			return "", errors.New("python3 is not on the PATH: install Python 3.10 or newer with venv (on Debian: apt-get install python3-venv)")
		}
		python, err = filepath.EvalSymlinks(python)
		if err != nil {
			return "", fmt.Errorf("finding Python: %w", err)
		}
		return python, nil
	}
	var candidates []string
	if found, err := exec.LookPath("python" + e.Python); err == nil {
		candidates = append(candidates, found)
	}
	root := os.Getenv("PYENV_ROOT")
	if home, err := os.UserHomeDir(); root == "" && err == nil {
		root = filepath.Join(home, ".pyenv")
	}
	others, err := filepath.Glob(filepath.Join(root, "versions", e.Python+".*", "bin", "python"+e.Python))
	if err != nil {
		return "", err
	}
	for _, c := range append(candidates, others...) {
		// What pyenv puts on the PATH may be there and yet not run.
		if found, err := run(ctx, nil, c, "-c", "import sys, venv; print(sys.executable)"); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no python%s with venv on the PATH, nor in %s: install it, or choose another version", e.Python, root)
}

// fill makes the environment in an empty directory.
func (e Environment) fill(ctx context.Context, base, dir string) error {
	if out, err := run(ctx, nil, base, "-m", "venv", dir); err != nil {
		return fmt.Errorf("making a virtual environment in %s: %w (on Debian: apt-get install python3-venv)\n%s", dir, err, out)
	}
	python := filepath.Join(dir, "bin", "python")
	if out, err := pip(ctx, nil, python, e.Requirements); err != nil {
		return fmt.Errorf("installing %s from PyPI: %w\n%s", strings.Join(e.Requirements, ", "), err, out)
	}
	if len(e.Built) == 0 {
		return nil
	}
	// Isolated builds do not see what is installed here.
	if out, err := pip(ctx, e.BuildEnv, python, e.Built, "--no-build-isolation"); err != nil {
		return fmt.Errorf("building %s: %w (on Debian: apt-get install g++ cmake)\n%s", strings.Join(e.Built, ", "), err, out)
	}
	return nil
}

func pip(ctx context.Context, env []string, python string, requirements []string, options ...string) (string, error) {
	args := append([]string{"-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"}, options...)
	return run(ctx, env, python, append(args, requirements...)...)
}

// run runs a program with env beside what this process has in its environment.
func run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PYTHON") && !strings.HasPrefix(kv, "VIRTUAL_ENV=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
